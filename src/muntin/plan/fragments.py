"""Fragments on the fly: predicates taken apart, so that one search per expression tells a row's place against all of them.

In: the predicates of many queries. Out: axes, an expression and the constants that cut its values each; a row's position on every axis
is its cell, and `signatures` says which predicates hold there. Convention: a position counts the cuts a value has passed; two more
positions stand for NULL and for an expression that failed. A predicate that cannot be taken apart is an axis of its own, cut at TRUE.
Paper: on-the-fly-sharing-2006, section 4. There every predicate is evaluated on every row and the bitmap hashed; here a row costs one
binary search per expression, and predicates are evaluated once per distinct cell. Axes are larger than they need to be, so that a query
that comes or goes seldom changes the code that finds the position.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import Enum, IntEnum
from functools import lru_cache
from operator import eq, ge, gt, le, lt, ne
from typing import Any

from muntin.expression.tree import Call, Expression, Literal
from muntin.hashing import hashed_once
from muntin.schema import BOOLEAN


class Truth(IntEnum):
    """What a predicate is on a row. A failed predicate stops its query."""

    FALSE = 0
    TRUE = 1
    NULL = 2
    FAILED = 3


class Side(IntEnum):
    BELOW = 0  # passed by values at or above the constant
    ABOVE = 1  # passed by values above the constant


@dataclass(frozen=True)
class Cut:
    """A place between values of an expression, just below or just above a constant."""

    value: Any
    side: Side

    def sort_key(self) -> tuple[Any, Side]:
        return self.value, self.side


@dataclass(frozen=True)
class Stretch:
    """Values between two cuts; None where there is no bound."""

    low: Cut | None
    high: Cut | None


@dataclass(frozen=True)
class Test:
    """True for values of `expression` in one of the stretches; `null` is what it is for NULL."""

    expression: Expression
    stretches: tuple[Stretch, ...]
    null: Truth = Truth.NULL


@dataclass(frozen=True)
class Constant:
    truth: Truth


class Connective(Enum):
    AND = "and"
    OR = "or"
    NOT = "not"


@dataclass(frozen=True)
class Compound:
    connective: Connective
    parts: tuple[Predicate, ...]


Predicate = Test | Constant | Compound

_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "=", "<>": "<>", "<=>": "<=>"}


@lru_cache(maxsize=10_000)
def decomposed(expression: Expression) -> Predicate:
    """A predicate as tests of expressions against constants, joined by AND, OR and NOT."""
    match expression:
        case Literal(value=value):
            return Constant(Truth.NULL if value is None else Truth(int(bool(value))))
        case Call(function="and" | "or" | "not" as name, args=args):
            return Compound(Connective(name), tuple(map(decomposed, args)))
        case Call(function="is_null", args=(inner,)):
            return Test(inner, (), null=Truth.TRUE)
        case Call(function=name, args=(left, Literal() as right)) if name in _MIRRORED and is_plain(right):
            return compared(name, left, right.value)
        case Call(function=name, args=(Literal() as left, right)) if name in _MIRRORED and is_plain(left):
            return compared(_MIRRORED[name], right, left.value)
        case Call(function="in", args=(inner, *items)) if all(isinstance(item, Literal) and is_plain(item) for item in items):
            values = [item.value for item in items if isinstance(item, Literal)]
            return Test(inner, tuple(exactly(value) for value in values))
    return Test(expression, (Stretch(Cut(True, Side.BELOW), None),))


def is_plain(literal: Literal) -> bool:
    """Neither NULL nor NaN: a constant that values lie below, at or above."""
    return literal.value is not None and literal.value == literal.value


def around(value: Any) -> tuple[Cut, Cut]:
    """The cuts below and above a value. The cut above a whole number is the one below the next."""
    return Cut(value, Side.BELOW), Cut(value + 1, Side.BELOW) if isinstance(value, int) else Cut(value, Side.ABOVE)


def exactly(value: Any) -> Stretch:
    if isinstance(value, bool):  # one cut tells FALSE from TRUE
        between = Cut(True, Side.BELOW)
        return Stretch(between, None) if value else Stretch(None, between)
    return Stretch(*around(value))


_TRUE_OF_BOOLEANS: dict[str, Callable[[Any, Any], bool]] = {
    "<": lt, "<=": le, ">": gt, ">=": ge, "=": eq, "<=>": eq, "<>": ne,
}  # fmt: skip


def compared(operator: str, expression: Expression, value: Any) -> Test:
    null = Truth.FALSE if operator == "<=>" else Truth.NULL
    if isinstance(value, bool):
        holds = _TRUE_OF_BOOLEANS[operator]
        return Test(expression, tuple(exactly(one) for one in (False, True) if holds(one, value)), null)
    below, above = around(value)
    stretches = {
        "<": (Stretch(None, below),),
        "<=": (Stretch(None, above),),
        ">": (Stretch(above, None),),
        ">=": (Stretch(below, None),),
        "=": (Stretch(below, above),),
        "<=>": (Stretch(below, above),),
        "<>": (Stretch(None, below), Stretch(above, None)),
    }[operator]
    return Test(expression, stretches, null)


def tests_of(predicate: Predicate) -> Iterable[Test]:
    if isinstance(predicate, Test):
        yield predicate
    elif isinstance(predicate, Compound):
        for part in predicate.parts:
            yield from tests_of(part)


@dataclass(frozen=True)
class Scale:
    """The positions of an axis: as many for values as a binary search of so many steps tells apart, then those of NULL and of a failure.

    It is part of the code that finds a row's cell. So there are few of them: with room for 1, 3, 127, 1,023, … cuts.
    """

    steps: int

    @classmethod
    def of(cls, cuts: int) -> Scale:
        """The smallest with room for so many cuts."""
        steps = cuts.bit_length()
        return cls(steps if steps <= 2 else 7 + 3 * max(0, -(-(steps - 7) // 3)))

    @property
    def last(self) -> int:
        """The last position of values: past every cut, like all that no cut divides from it."""
        return self.null - 1

    @property
    def null(self) -> int:
        return 1 << self.steps

    @property
    def failed(self) -> int:
        return self.null + 1

    @property
    def size(self) -> int:
        return self.null + 2


@hashed_once
@dataclass(frozen=True)
class Axis:
    """An expression and the cuts that some predicate asks for, ascending."""

    expression: Expression
    cuts: tuple[Cut, ...]

    @property
    def scale(self) -> Scale:
        return Scale.of(len(self.cuts))

    def position(self, value: Any) -> int:
        """Where a value lies: the definition; Spark finds it by binary search."""
        if value is None:
            return self.scale.null
        if value != value:  # NaN is greater than every constant
            return len(self.cuts)
        return sum(1 for cut in self.cuts if (value > cut.value if cut.side is Side.ABOVE else value >= cut.value))

    def __str__(self) -> str:
        opaque = self.expression.type == BOOLEAN and len(self.cuts) <= 1
        constants = len({cut.value for cut in self.cuts})
        return f"{self.expression}" if opaque else f"{self.expression} cut by {constants} constant{'s' if constants != 1 else ''}"


@lru_cache(maxsize=10_000)
def touched(expression: Expression) -> tuple[Expression, ...]:
    """What a predicate tests, each once, in order of first appearance."""
    return tuple(dict.fromkeys(test.expression for test in tests_of(decomposed(expression))))


@lru_cache(maxsize=10_000)
def constants_in(expression: Expression) -> int:
    """How many constants a predicate compares with; each is a Column of its own where the predicate is evaluated as it is."""
    return sum(len(test.stretches) for test in tests_of(decomposed(expression)))


@lru_cache(maxsize=64)
def axes_of(predicates: tuple[Expression, ...]) -> tuple[Axis, ...]:
    """The axes of a set of predicates: each expression once, with every cut any of them asks for. Kept: a planner asks again and again."""
    cuts: dict[Expression, set[Cut]] = {}
    for predicate in predicates:
        for test in tests_of(decomposed(predicate)):
            wanted = cuts.setdefault(test.expression, set())
            wanted.update(cut for stretch in test.stretches for cut in (stretch.low, stretch.high) if cut is not None)
    return tuple(Axis(expression, tuple(sorted(wanted, key=Cut.sort_key))) for expression, wanted in cuts.items())
