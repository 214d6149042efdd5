"""AND, OR, NOT, CASE, COALESCE and IN: three-valued logic, and the arguments that are not always evaluated.

In: conditions and values. Out: rows of `functions.FUNCTIONS`.
Convention: arguments are evaluated from the left, as Spark does, and only as far as the result needs: FALSE AND x never
evaluates x, so x cannot fail there; NULL AND x does. `case` takes (condition, value)… and last, if there is one, the ELSE value.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from muntin.expression.coercion import common, wider_with_strings
from muntin.expression.signature import MANY, ONE, TWO, Function, LazyFunction, Signature, Thunk, either, only_where, undefined
from muntin.expression.tree import Call, Expression
from muntin.schema import BOOLEAN, NULL, STRING, Type


def _conditions(name: str, args: Sequence[Expression]) -> tuple[Type, ...]:
    if all(arg.type in (BOOLEAN, STRING, NULL) for arg in args):
        return (BOOLEAN,) * len(args)
    raise undefined(name, args, takes="conditions", way_out="compare the value with something")


def _connective(name: str, args: Sequence[Expression]) -> Signature:
    return Signature(_conditions(name, args), BOOLEAN)


def _and_lazily(thunks: tuple[Thunk, ...]) -> Thunk:
    left, right = thunks

    def conjunction(scope: Any) -> Any:
        a = left(scope)
        if a is False:
            return False
        b = right(scope)
        return False if b is False else None if a is None or b is None else True

    return conjunction


def _or_lazily(thunks: tuple[Thunk, ...]) -> Thunk:
    left, right = thunks

    def disjunction(scope: Any) -> Any:
        a = left(scope)
        if a is True:
            return True
        b = right(scope)
        return True if b is True else None if a is None or b is None else False

    return disjunction


def _true(functions: Any, condition: Any) -> Any:
    return functions.coalesce(condition, functions.lit(False))


def _and_failed(functions: Any, columns: Sequence[Any], failures: Sequence[Any]) -> Any:
    return _failed_before(functions, [~functions.coalesce(column, functions.lit(True)) for column in columns], failures)


def _or_failed(functions: Any, columns: Sequence[Any], failures: Sequence[Any]) -> Any:
    return _failed_before(functions, [_true(functions, column) for column in columns], failures)


def _failed_before(functions: Any, decided: Sequence[Any], failures: Sequence[Any]) -> Any:
    """Where one of any number of conditions fails before one has decided. One CASE: as long as the list, and no deeper for it."""
    branches = functions
    for at in range(max(at for at, failure in enumerate(failures) if failure is not None) + 1):
        if at:
            branches = branches.when(decided[at - 1], functions.lit(False))
        if failures[at] is not None:
            branches = branches.when(failures[at], functions.lit(True))
    return branches.otherwise(functions.lit(False))


def _common(name: str, args: Sequence[Expression]) -> Type:
    type_ = common([arg.type for arg in args], wider_with_strings)
    if type_ is None:
        raise undefined(name, args, takes="values of one type, or of types with a common one")
    return type_


def _case_typed(args: Sequence[Expression]) -> Signature:
    pairs = len(args) // 2 * 2
    conditions, values = args[0:pairs:2], (*args[1:pairs:2], *args[pairs:])
    _conditions("CASE WHEN", conditions)
    type_ = _common("CASE", values)
    cast = tuple(BOOLEAN if position < pairs and position % 2 == 0 else type_ for position in range(len(args)))
    return Signature(cast, type_)


def _case_column(functions: Any, _: Call, *columns: Any) -> Any:
    pairs = len(columns) // 2 * 2
    result = functions
    for position in range(0, pairs, 2):
        result = result.when(columns[position], columns[position + 1])
    return result.otherwise(columns[pairs]) if pairs < len(columns) else result


def _case_lazily(thunks: tuple[Thunk, ...]) -> Thunk:
    pairs = len(thunks) // 2 * 2
    branches = tuple((thunks[position], thunks[position + 1]) for position in range(0, pairs, 2))
    otherwise = thunks[pairs] if pairs < len(thunks) else lambda _: None

    def case(scope: Any) -> Any:
        for condition, value in branches:
            if condition(scope) is True:
                return value(scope)
        return otherwise(scope)

    return case


def _case_failed(functions: Any, columns: Sequence[Any], failures: Sequence[Any]) -> Any:
    pairs = len(columns) // 2 * 2
    later = failures[pairs] if pairs < len(columns) else None
    for position in range(pairs - 2, -1, -2):
        condition, own = columns[position], failures[position + 1]
        if own is not None and later is not None:
            later = functions.when(condition, own).otherwise(later)
        else:
            reached = _true(functions, condition)
            later = either(only_where(reached, own), only_where(~reached, later))
        later = either(failures[position], later)
    return later


def _coalesce_typed(args: Sequence[Expression]) -> Signature:
    type_ = _common("coalesce", args)
    return Signature((type_,) * len(args), type_)


def _coalesce_lazily(thunks: tuple[Thunk, ...]) -> Thunk:
    def coalesce(scope: Any) -> Any:
        for thunk in thunks:
            value = thunk(scope)
            if value is not None:
                return value
        return None

    return coalesce


def _coalesce_failed(_: Any, columns: Sequence[Any], failures: Sequence[Any]) -> Any:
    later = None
    for column, own in zip(reversed(columns), reversed(failures), strict=True):
        later = either(own, only_where(column.isNull(), later))
    return later


def _in_typed(args: Sequence[Expression]) -> Signature:
    return Signature((_common("IN", args),) * len(args), BOOLEAN)


def _in_lazily(thunks: tuple[Thunk, ...]) -> Thunk:
    needle, *items = thunks

    def contained(scope: Any) -> Any:
        value = needle(scope)
        if value is None:
            return None
        result: bool | None = False
        for item in items:
            candidate = item(scope)
            if candidate is None:
                result = None
            elif candidate == value or (candidate != candidate and value != value):  # NaN is in a list with NaN
                return True
        return result

    return contained


def _in_failed(functions: Any, columns: Sequence[Any], failures: Sequence[Any]) -> Any:
    """An item is reached if the value is not NULL and equals no item before it."""
    value, later = columns[0], None
    for item, own in zip(reversed(columns[1:]), reversed(failures[1:]), strict=True):
        later = either(own, only_where(~_true(functions, value == item), later))
    return either(failures[0], only_where(value.isNotNull(), later))


LOGIC: tuple[Function | LazyFunction, ...] = (
    Function(
        "not", ONE, lambda args: _connective("NOT", args), lambda _functions, _call, column: ~column, lambda _: lambda value: not value
    ),
    LazyFunction("and", TWO, lambda args: _connective("AND", args), lambda _functions, _call, a, b: a & b, _and_lazily, _and_failed),
    LazyFunction("or", TWO, lambda args: _connective("OR", args), lambda _functions, _call, a, b: a | b, _or_lazily, _or_failed),
    LazyFunction("case", range(2, MANY.stop), _case_typed, _case_column, _case_lazily, _case_failed),
    LazyFunction(
        "coalesce",
        MANY,
        _coalesce_typed,
        lambda functions, _call, *columns: functions.coalesce(*columns),
        _coalesce_lazily,
        _coalesce_failed,
    ),
    LazyFunction("in", range(2, MANY.stop), _in_typed, lambda _functions, _call, value, *items: value.isin(*items), _in_lazily, _in_failed),
)
