"""Hashes computed once, and equal objects kept once: for frozen trees that are looked up again and again.

In: a frozen dataclass, or an object of one. Out: the same class, whose objects remember their hash; of equal objects the first.
Convention: the hash is not part of what is pickled, since the hash of a string differs from process to process.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, TypeVar, cast

#: Objects kept, so that equal ones are one.
MOST_KEPT = 100_000

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
        try:
            found: int = self._remembered_hash
        except AttributeError:
            found = self.__dict__[_HASH] = compute(self)
        return found

    def state(self: Any) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != _HASH}

    cls.__hash__ = remembered  # type: ignore[method-assign]
    cls.__getstate__ = state  # type: ignore[method-assign]
    return cls


def shared(value: Frozen) -> Frozen:
    """The first of all objects equal to this one: a look-up among objects made so compares none of them in depth."""
    return cast(Frozen, _first(value))


@lru_cache(maxsize=MOST_KEPT)
def _first(value: Any) -> Any:
    return value
