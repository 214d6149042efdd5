"""Comparisons, IS NULL, greatest and least.

In: operands brought to one type. Out: rows of `functions.FUNCTIONS`.
Convention: NaN equals NaN and is greater than every number; -0.0 equals 0.0; strings are ordered by code points.
`greatest` and `least` skip NULLs, keep the first of equals, and do not read strings as numbers.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

from muntin.expression.coercion import common, compared, wider
from muntin.expression.signature import MANY, ONE, TWO, Evaluation, Function, Signature, undefined
from muntin.expression.tree import Call, Expression
from muntin.schema import BOOLEAN

Comparison = Callable[[Any, Any], bool]


def _equal_floats(a: float, b: float) -> bool:
    return a == b or (a != a and b != b)


def _less_float(a: float, b: float) -> bool:
    return a < b or (b != b and a == a)


def _less(call: Call) -> Comparison:
    return _less_float if call.args[0].type.fractional else operator.lt


def _equal(call: Call) -> Comparison:
    return _equal_floats if call.args[0].type.fractional else operator.eq


def _not_equal(call: Call) -> Comparison:
    equal = _equal(call)
    return lambda a, b: not equal(a, b)


def _greater(call: Call) -> Comparison:
    less = _less(call)
    return lambda a, b: less(b, a)


def _at_most(call: Call) -> Comparison:
    less = _less(call)
    return lambda a, b: not less(b, a)


def _at_least(call: Call) -> Comparison:
    less = _less(call)
    return lambda a, b: not less(a, b)


def _same_or_both_null(call: Call) -> Comparison:
    equal = _equal(call)
    return lambda a, b: a is b if a is None or b is None else equal(a, b)


def _typed(name: str) -> Callable[[Sequence[Expression]], Signature]:
    def typed(args: Sequence[Expression]) -> Signature:
        type_ = compared(*args)
        if type_ is None:
            raise undefined(name, args, takes="two values of one type, or of types with a common one")
        return Signature((type_, type_), BOOLEAN)

    return typed


def _row(name: str, column: Callable[[Any, Any], Any], value: Callable[[Call], Comparison]) -> Function:
    return Function(name, TWO, _typed(name), lambda _functions, _call, a, b: column(a, b), value, beyond=True)


def _extreme_typed(name: str) -> Callable[[Sequence[Expression]], Signature]:
    def typed(args: Sequence[Expression]) -> Signature:
        type_ = common([arg.type for arg in args], wider)
        if type_ is None:
            raise undefined(name, args, takes="values of one type, or of types with a common one; strings count as strings")
        return Signature((type_,) * len(args), type_)

    return typed


def _extreme(name: str, better: Callable[[Call], Comparison]) -> Function:
    def value(call: Call) -> Callable[..., Any]:
        beats = better(call)

        def extreme(*values: Any) -> Any:
            best = None
            for candidate in values:
                if candidate is not None and (best is None or beats(candidate, best)):
                    best = candidate
            return best

        return extreme

    def column(functions: Any, _: Call, *columns: Any) -> Any:
        return getattr(functions, name)(*columns)

    return Function(name, range(2, MANY.stop), _extreme_typed(name), column, value, evaluation=Evaluation.ALL, beyond=True)


COMPARISONS: tuple[Function, ...] = (
    _row("=", operator.eq, _equal),
    _row("<>", operator.ne, _not_equal),
    _row("<", operator.lt, _less),
    _row("<=", operator.le, _at_most),
    _row(">", operator.gt, _greater),
    _row(">=", operator.ge, _at_least),
    Function(
        "<=>",
        TWO,
        _typed("<=>"),
        lambda _functions, _call, a, b: a.eqNullSafe(b),
        _same_or_both_null,
        evaluation=Evaluation.ALL,
        beyond=True,
    ),
    Function(
        "is_null",
        ONE,
        lambda args: Signature((args[0].type,), BOOLEAN),
        lambda _functions, _call, column: column.isNull(),
        lambda _: lambda value: value is None,
        evaluation=Evaluation.ALL,
        beyond=True,
    ),
    _extreme("greatest", _greater),
    _extreme("least", _less),
)
