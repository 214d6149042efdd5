"""Typed expressions: what a checked query computes, as small frozen trees.

In: built by `query.check` from SQL, by `functions.call` from parts. Out: walked by `evaluate` (one row, in Python) and by
`spark.columns` (as Spark Columns). Convention: two expressions are equal if they compute the same thing the same way; the
position in the text does not take part, so equal sub-expressions of different queries are shared.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum

from muntin.errors import Span
from muntin.expression.own import OwnFunction
from muntin.hashing import hashed_once
from muntin.schema import TIMESTAMP, Type


@hashed_once
@dataclass(frozen=True)
class Column:
    """A column of the stream, or of a static table that the query joins (`close.cp`)."""

    name: str
    type: Type
    at: Span | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        return self.name


@hashed_once
@dataclass(frozen=True)
class Literal:
    """A constant; `value` is None for NULL. 1 and TRUE are different literals, since their types differ."""

    value: object
    type: Type
    at: Span | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        if self.value is None:
            return "NULL"
        return "'" + self.value.replace("'", "''") + "'" if isinstance(self.value, str) else str(self.value)


@hashed_once
@dataclass(frozen=True)
class Call:
    """A scalar function or operator of `functions.FUNCTIONS` applied to arguments."""

    function: str
    args: tuple[Expression, ...]
    type: Type
    at: Span | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        if not self.function[0].isalpha() and len(self.args) == 2:
            return f"({self.args[0]} {self.function} {self.args[1]})"
        return f"{self.function}({', '.join(map(str, self.args))})"


@hashed_once
@dataclass(frozen=True)
class OwnCall:
    """A user's own scalar function applied to arguments. It carries the function itself: there is no register of them."""

    function: OwnFunction
    args: tuple[Expression, ...]
    type: Type
    at: Span | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        return f"{self.function.name}({', '.join(map(str, self.args))})"


@hashed_once
@dataclass(frozen=True)
class AggregateCall:
    """An aggregate over the rows of a window and group. Only in select lists and HAVING; arguments hold no aggregate."""

    aggregate: str
    args: tuple[Expression, ...]
    type: Type
    at: Span | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        return f"{self.aggregate}({', '.join(map(str, self.args)) or '*'})"


@dataclass(frozen=True)
class GroupKey:
    """The value of the query's GROUP BY item number `index`. Only in select lists and HAVING."""

    index: int
    type: Type
    at: Span | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        return f"group[{self.index}]"


class Bound(Enum):
    START = "window_start"
    END = "window_end"


@dataclass(frozen=True)
class WindowBound:
    """The start or the end of the window. Only in select lists and HAVING."""

    bound: Bound
    type: Type = TIMESTAMP
    at: Span | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        return self.bound.value


Expression = Column | Literal | Call | OwnCall | AggregateCall | GroupKey | WindowBound


def children(expression: Expression) -> tuple[Expression, ...]:
    return expression.args if isinstance(expression, Call | OwnCall | AggregateCall) else ()


def walk(expression: Expression) -> Iterator[Expression]:
    """The expression and everything below it, outermost first."""
    yield expression
    for child in children(expression):
        yield from walk(child)


def columns_of(expression: Expression) -> set[str]:
    return {node.name for node in walk(expression) if isinstance(node, Column)}


def with_columns(expression: Expression, names: Mapping[str, str]) -> Expression:
    """The expression over columns of other names; those that `names` leaves out stay as they are."""
    if isinstance(expression, Column):
        return replace(expression, name=names.get(expression.name, expression.name))
    if isinstance(expression, Call | OwnCall | AggregateCall):
        return replace(expression, args=tuple(with_columns(arg, names) for arg in expression.args))
    return expression


def replaced(expression: Expression, known: Mapping[Expression, Expression]) -> Expression:
    """The expression with others in the place of some of its parts; arguments of aggregates stay as they are."""
    if expression in known:
        return known[expression]
    if isinstance(expression, Call | OwnCall):
        return replace(expression, args=tuple(replaced(arg, known) for arg in expression.args))
    return expression


def aggregates_of(expression: Expression) -> tuple[AggregateCall, ...]:
    """The distinct aggregate calls in an expression, in order of appearance."""
    return tuple(dict.fromkeys(node for node in walk(expression) if isinstance(node, AggregateCall)))
