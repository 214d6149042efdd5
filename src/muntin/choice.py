"""Kinds that users name by a word.

In: an enumeration whose values are words, and a word in any case. Out: the member. Convention: any other is refused with all there are.
"""

from __future__ import annotations

from enum import Enum
from typing import TypeVar

from muntin.errors import Refusal

Kind = TypeVar("Kind", bound=Enum)


def named(kind: type[Kind], word: str | Kind, law: str, *, found: str = "", error: type[Refusal] = Refusal) -> Kind:
    """`law` says what the word is for, `found` how it was given. A member is itself.

    >>> class Shape(Enum):
    ...     ROUND = "round"
    ...     SQUARE = "square"
    >>> named(Shape, "Round", "a table has a shape")
    <Shape.ROUND: 'round'>
    """
    if isinstance(word, kind):
        return word
    member = next((one for one in kind if one.value == str(word).lower()), None)
    if member is None:
        raise error(law, values=found or repr(word), way_out=f"choose one of {', '.join(str(one.value) for one in kind)}")
    return member
