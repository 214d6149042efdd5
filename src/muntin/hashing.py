"""Hashes computed once: for frozen trees that are looked up again and again.

In: a frozen dataclass. Out: the same class, whose objects remember their hash. Convention: the hash is not part of what is pickled,
since the hash of a string differs from process to process.
"""

from __future__ import annotations

from typing import Any, TypeVar

_HASH = "_remembered_hash"
Frozen = TypeVar("Frozen")


def hashed_once(cls: type[Frozen]) -> type[Frozen]:
    """
    >>> from dataclasses import dataclass
    >>> @hashed_once
    ... @dataclass(frozen=True)
    ... class Pair:
    ...     left: int
    ...     right: int
    >>> hash(Pair(1, 2)) == hash(Pair(1, 2)), Pair(1, 2) == Pair(1, 2)
    (True, True)
    """
    compute = cls.__hash__

    def remembered(self: Any) -> int:
        known = self.__dict__.get(_HASH)
        if known is None:
            known = self.__dict__[_HASH] = compute(self)
        return int(known)

    def state(self: Any) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != _HASH}

    cls.__hash__ = remembered  # type: ignore[method-assign]
    cls.__getstate__ = state  # type: ignore[method-assign]
    return cls
