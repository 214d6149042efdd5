"""Functions of one number: sign, size, roots, logarithms, powers.

In: a number (a string is read as a double). Out: rows of `functions.FUNCTIONS`.
Convention: `ln` and `log10` are NULL at and below zero; `sqrt` of a negative number is NaN. `exp`, `ln`, `log10` and `pow` in
Python may differ from Java's in the last bit.
Where Spark loses digits, we do not: it rounds `-x` and `abs(x)` of a decimal over 34 digits to 34; here both are exact.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any

from muntin.expression.coercion import is_decimal
from muntin.expression.numeric import fitted_decimal, fitted_integer
from muntin.expression.signature import ONE, TWO, Function, Signature, undefined
from muntin.expression.tree import Call, Expression
from muntin.schema import DOUBLE, NULL, STRING, Type

#: Spark negates decimals in a 34-digit context.
_NEGATED_EXACTLY = 34


def number(name: str, args: Sequence[Expression]) -> Type:
    """The type of the first argument, a number; strings and NULL are read as doubles."""
    type_ = args[0].type
    if type_.numeric:
        return type_
    if type_ in (STRING, NULL):
        return DOUBLE
    raise undefined(name, args, takes="a number")


def _same(name: str) -> Callable[[Sequence[Expression]], Signature]:
    return lambda args: Signature((number(name, args),), number(name, args))


def _of_integers(call: Call) -> bool:
    return call.type.integral


def _wide(type_: Type) -> bool:
    return is_decimal(type_) and type_.precision > _NEGATED_EXACTLY


def _negative_column(functions: Any, call: Call, column: Any) -> Any:
    if call.type.integral:
        return functions.try_subtract(functions.lit(0).cast(str(call.type)), column)
    if _wide(call.type):
        signed = functions.concat(functions.lit("-"), column.cast("string"))
        return functions.replace(signed, functions.lit("--"), functions.lit("")).cast(str(call.type))
    return functions.negative(column)


def _negative_value(call: Call) -> Callable[[Any], Any]:
    type_ = call.type
    if type_.integral:
        return lambda x: fitted_integer(-x, type_, "-", x)
    return (lambda x: fitted_decimal(x.copy_negate(), type_)) if is_decimal(type_) else (lambda x: -x)


def _abs_column(functions: Any, call: Call, column: Any) -> Any:
    if call.type.integral:
        return functions.when(column < 0, _negative_column(functions, call, column)).otherwise(column)
    if _wide(call.type):
        return functions.replace(column.cast("string"), functions.lit("-"), functions.lit("")).cast(str(call.type))
    return functions.abs(column)


def _abs_value(call: Call) -> Callable[[Any], Any]:
    type_ = call.type
    if type_.integral:
        return lambda x: fitted_integer(abs(x), type_, "abs of", x)
    return Decimal.copy_abs if is_decimal(type_) else abs  # `abs` would round a decimal to the 28 digits of Python's context


def _of_doubles(name: str, spark_name: str, function: Callable[..., Any], arity: range = ONE) -> Function:
    def typed(args: Sequence[Expression]) -> Signature:
        for arg in args:
            number(name, (arg,))
        return Signature((DOUBLE,) * len(args), DOUBLE)

    return Function(name, arity, typed, lambda functions, _, *columns: getattr(functions, spark_name)(*columns), lambda _: function)


def _signum(x: float) -> float:
    return x if x == 0 or math.isnan(x) else math.copysign(1.0, x)


def _sqrt(x: float) -> float:
    return math.sqrt(x) if x >= 0 else math.nan


def _exp(x: float) -> float:
    try:
        return math.exp(x)
    except OverflowError:
        return math.inf


def _logarithm(function: Callable[[float], float]) -> Callable[[float], float | None]:
    return lambda x: None if x <= 0 else function(x)


def _pow(x: float, y: float) -> float:
    if math.isnan(y) or (abs(x) == 1 and math.isinf(y)):  # C gives 1 in both
        return math.nan
    try:
        return math.pow(x, y)
    except OverflowError:
        return -math.inf if x < 0 and y % 2 == 1 else math.inf
    except ValueError:
        if x == 0:  # to a negative power
            return math.copysign(math.inf, x) if y % 2 == 1 else math.inf
        return math.nan


MATHEMATICS: tuple[Function, ...] = (
    Function("negative", ONE, _same("-"), _negative_column, _negative_value, _of_integers),
    Function("abs", ONE, _same("abs"), _abs_column, _abs_value, _of_integers),
    _of_doubles("sign", "signum", _signum),
    _of_doubles("sqrt", "sqrt", _sqrt),
    _of_doubles("exp", "exp", _exp),
    _of_doubles("ln", "ln", _logarithm(math.log)),
    _of_doubles("log10", "log10", _logarithm(math.log10)),
    _of_doubles("pow", "pow", _pow, TWO),
)
