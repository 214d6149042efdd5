"""Expressions evaluated in Python, one row at a time: select lists and HAVING over the values of a closed window.

In: an expression, and a `Scope` with what it may refer to. Out: the value Spark's ANSI mode would give; NULL is None.
Convention: `compiled` builds nested closures once, with types, bounds and patterns already chosen; `evaluate` is for a single use.
AND, OR, CASE, COALESCE and IN evaluate only what they need; what fails raises `DataError`.
A time outside the years 1 to 9999 is a `Beyond`; only functions that say they take one are given it.
Values of TIMESTAMP_NTZ are aware datetimes in UTC, like those of TIMESTAMP; one without zone is read so.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from muntin.errors import DataError
from muntin.expression.beyond import Beyond, beyond_years, is_time
from muntin.expression.functions import FUNCTIONS
from muntin.expression.numeric import fitted_decimal
from muntin.expression.signature import Evaluation, Function, LazyFunction, Thunk
from muntin.expression.tree import AggregateCall, Bound, Call, Column, Expression, GroupKey, Literal, OwnCall, WindowBound
from muntin.schema import Kind
from muntin.timeline import datetime_of, format_instant


@dataclass(frozen=True, slots=True)
class Scope:
    """What an expression may refer to: a row's columns, or a window's groups, aggregates and bounds.

    Bounds that are times come as instants, others as values.
    """

    columns: Mapping[str, object] = field(default_factory=dict)
    groups: Sequence[object] = ()
    aggregates: Mapping[AggregateCall, object] = field(default_factory=dict)
    start: Any = 0
    end: Any = 0


def evaluate(expression: Expression, scope: Scope) -> object:
    """The value of an expression in one scope."""
    return compiled(expression)(scope)


def holds(condition: Expression, scope: Scope) -> bool:
    """Whether a condition is true; NULL is not, and neither is one that fails."""
    try:
        return evaluate(condition, scope) is True
    except DataError:
        return False


def compiled(expression: Expression) -> Callable[[Scope], Any]:
    """A function from a scope to the expression's value."""
    if isinstance(expression, Call):
        return _call(expression)
    if isinstance(expression, OwnCall):
        return _strict(expression.function.value(), tuple(map(_of_years, expression.args)))
    if isinstance(expression, Literal):
        value = _literal_value(expression)
        return lambda _: value
    if isinstance(expression, WindowBound):
        return _bound(expression)
    leaf = _leaf(expression)
    return _in_utc(leaf) if expression.type.temporal else leaf


def _leaf(expression: Column | GroupKey | AggregateCall) -> Thunk:
    if isinstance(expression, Column):
        name = expression.name
        return lambda scope: scope.columns[name]
    if isinstance(expression, GroupKey):
        index = expression.index
        return lambda scope: scope.groups[index]
    return lambda scope: scope.aggregates[expression]


def _literal_value(literal: Literal) -> Any:
    if literal.type.kind is Kind.DECIMAL and isinstance(literal.value, Decimal):
        return fitted_decimal(literal.value, literal.type, literal.value)
    if isinstance(literal.value, datetime):
        return _aware(literal.value)
    return literal.value


def _aware(moment: Any) -> Any:
    return moment.replace(tzinfo=UTC) if isinstance(moment, datetime) and moment.tzinfo is None else moment


def _in_utc(leaf: Thunk) -> Thunk:
    return lambda scope: _aware(leaf(scope))


def _bound(expression: WindowBound) -> Thunk:
    bound = expression.bound
    if not expression.type.temporal:
        return lambda scope: scope.start if bound is Bound.START else scope.end

    def moment(scope: Scope) -> datetime | None:
        instant = scope.start if bound is Bound.START else scope.end
        if instant is None:  # a landmark window starts with the stream
            return None
        try:
            return datetime_of(instant)
        except OverflowError:
            raise DataError(
                "a window bound used as a value lies in the years 1 to 9999",
                values=f"{bound.value} {format_instant(instant)}",
                way_out="leave it out of the expression",
            ) from None

    return moment


def _call(call: Call) -> Thunk:
    row = FUNCTIONS[call.function]
    takes_all = isinstance(row, LazyFunction) or row.beyond
    thunks = tuple(map(compiled if takes_all else _of_years, call.args))
    thunk = row.lazily(thunks) if isinstance(row, LazyFunction) else _eager(row, call, thunks)
    return _constant(thunk) if all(isinstance(arg, Literal) for arg in call.args) else thunk


def _of_years(argument: Expression) -> Thunk:
    """An argument of a function that has no meaning for times outside the years 1 to 9999: it fails on one."""
    thunk = compiled(argument)
    if not is_time(argument.type):
        return thunk

    def value(scope: Scope) -> Any:
        found = thunk(scope)
        if isinstance(found, Beyond):
            raise beyond_years(argument, found)
        return found

    return value


def _constant(thunk: Thunk) -> Thunk:
    """A call on literals is worked out now; if it fails, it fails each time it is reached."""
    try:
        value = thunk(Scope())
    except DataError:
        return thunk
    return lambda _: value


def _eager(row: Function, call: Call, thunks: tuple[Thunk, ...]) -> Thunk:
    function = row.value(call)
    if row.evaluation is Evaluation.ALL:
        return lambda scope: function(*[thunk(scope) for thunk in thunks])
    if row.evaluation is Evaluation.RIGHT_TO_NULL:
        left, right = thunks
        return _binary(lambda b, a: function(a, b), right, left)
    return _strict(function, thunks)


def _strict(function: Callable[..., Any], thunks: tuple[Thunk, ...]) -> Thunk:
    """Arguments are evaluated from the left up to the first NULL, which is then the result."""
    if len(thunks) == 1:
        return _unary(function, *thunks)
    return _binary(function, *thunks) if len(thunks) == 2 else _up_to_null(function, thunks)


def _unary(function: Callable[..., Any], argument: Thunk) -> Thunk:
    def thunk(scope: Scope) -> Any:
        value = argument(scope)
        return None if value is None else function(value)

    return thunk


def _binary(function: Callable[..., Any], first: Thunk, second: Thunk) -> Thunk:
    def thunk(scope: Scope) -> Any:
        a = first(scope)
        if a is None:
            return None
        b = second(scope)
        return None if b is None else function(a, b)

    return thunk


def _up_to_null(function: Callable[..., Any], thunks: tuple[Thunk, ...]) -> Thunk:
    def thunk(scope: Scope) -> Any:
        values = []
        for argument in thunks:
            value = argument(scope)
            if value is None:
                return None
            values.append(value)
        return function(*values)

    return thunk
