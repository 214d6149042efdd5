"""`round`, `floor` and `ceil`.

In: a number (a string is read as a double). Out: rows of `functions.FUNCTIONS`.
Convention: `round` rounds half away from zero, a float by the digits it is written with; a rounded decimal has one more whole digit.
`floor` and `ceil` of a double are BIGINT: outside it they fail, of NaN they are 0, as in Spark.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from decimal import ROUND_HALF_UP, Context, Decimal
from typing import Any

from muntin.expression.coercion import is_decimal
from muntin.expression.mathematics import number
from muntin.expression.numeric import fitted_decimal, fitted_integer, float32, integral_bounds, overflow
from muntin.expression.signature import ONE, Function, Signature, undefined
from muntin.expression.tree import Call, Expression, Literal
from muntin.schema import BIGINT, DOUBLE, FLOAT, INT, MAX_PRECISION, Type, decimal

_LONG = 2.0**63
#: Wide enough for the digits of any double.
_ROUNDING = Context(prec=800, rounding=ROUND_HALF_UP)


def _round_typed(args: Sequence[Expression]) -> Signature:
    type_ = number("round", args[:1])
    if len(args) == 1:
        return Signature((type_,), _rounded_type(type_, 0))
    places = args[1]
    if not isinstance(places, Literal) or not isinstance(places.value, int) or not places.type.integral:
        raise undefined("round", args, takes="a number and a literal number of places", way_out="write the places as an integer")
    return Signature((type_, INT), _rounded_type(type_, places.value))


def _rounded_type(type_: Type, places: int) -> Type:
    if not is_decimal(type_):
        return type_
    whole = type_.precision - type_.scale + 1  # 9.9 rounds to 10
    return decimal(max(whole, 1 - places), 0) if places < 0 else decimal(whole + min(type_.scale, places), min(type_.scale, places))


def places_of(call: Call) -> int:
    """The places of a `round`; beyond 400 either way nothing changes any more."""
    places = call.args[1].value if len(call.args) == 2 and isinstance(call.args[1], Literal) else 0
    assert isinstance(places, int)
    return max(-400, min(places, 400))


def _bounds(type_: Type) -> tuple[int, int]:
    return integral_bounds(type_) if type_.integral else (1 - 10**type_.precision, 10**type_.precision - 1)


def _roundable(call: Call) -> tuple[int, int]:
    """The least and the greatest whole number whose rounding fits the type, for negative places."""
    unit = 10 ** -places_of(call)
    least, greatest = (min(abs(bound), abs(bound) // unit * unit + unit // 2 - 1) for bound in _bounds(call.type))
    return -least, greatest


def _round_can_fail(call: Call) -> bool:
    type_ = call.args[0].type
    widest = type_.integral or (is_decimal(type_) and type_.precision - type_.scale == MAX_PRECISION)
    return widest and places_of(call) < 0 and _roundable(call) != _bounds(call.type)


def _round_column(functions: Any, call: Call, column: Any, *_: Any) -> Any:
    if is_decimal(call.type) and places_of(call) >= 0:
        return column.cast(str(call.type))
    rounded = functions.round(column, places_of(call))
    if not _round_can_fail(call):
        return rounded
    low, high = (functions.lit(Decimal(bound)).cast(str(call.type)) for bound in _roundable(call))
    return functions.when(column.between(low, high), rounded)


def _round_value(call: Call) -> Callable[..., Any]:
    type_, places = call.type, places_of(call)
    unit = Decimal((0, (1,), -places))
    if type_.fractional:
        return lambda x, *_: _rounded_float(x, unit, type_)
    if places >= 0:
        return (lambda x, *_: fitted_decimal(x, type_, x)) if is_decimal(type_) else (lambda x, *_: x)

    def rounded(x: Any, *_: Any) -> Any:
        whole = Decimal(x).quantize(unit, context=_ROUNDING)
        return fitted_decimal(whole, type_, "round of", x) if is_decimal(type_) else fitted_integer(int(whole), type_, "round of", x)

    return rounded


def _rounded_float(value: float, unit: Decimal, type_: Type) -> float:
    """Rounds the digits that Java would print, as Spark does: 2.345 becomes 2.35, though the double lies below it."""
    if not math.isfinite(value):
        return value
    digits = Decimal(repr(value))
    rounded = digits.quantize(unit, context=_ROUNDING)
    result = (value if rounded == digits else float(rounded)) + 0.0  # -0.0 becomes 0.0
    return float32(result) if type_ == FLOAT else result


def _floor_typed(name: str) -> Callable[[Sequence[Expression]], Signature]:
    def typed(args: Sequence[Expression]) -> Signature:
        type_ = number(name, args)
        if is_decimal(type_):
            return Signature((type_,), decimal(type_.precision - type_.scale + 1, 0) if type_.scale else type_)
        return Signature((BIGINT if type_.integral else DOUBLE,), BIGINT)

    return typed


def _of_double(call: Call) -> bool:
    return call.args[0].type == DOUBLE


def _floor_row(name: str, whole: Callable[[Any], int]) -> Function:
    def column(functions: Any, call: Call, argument: Any) -> Any:
        result = getattr(functions, name)(argument)
        if not _of_double(call):
            return result
        inside = argument.between(functions.lit(-_LONG), functions.lit(math.nextafter(_LONG, 0)))
        return functions.when(inside | functions.isnan(argument), result)

    def value(call: Call) -> Callable[[Any], Any]:
        def of_double(x: float) -> int:
            if math.isnan(x):
                return 0
            if -_LONG <= x < _LONG:
                return whole(x)
            raise overflow(BIGINT, name, "of", x)

        if is_decimal(call.type):
            return lambda x: fitted_decimal(Decimal(whole(x)), call.type, x)
        return of_double if _of_double(call) else whole

    return Function(name, ONE, _floor_typed(name), column, value, _of_double)


ROUNDING: tuple[Function, ...] = (
    Function("round", range(1, 3), _round_typed, _round_column, _round_value, _round_can_fail),
    _floor_row("floor", math.floor),
    _floor_row("ceil", math.ceil),
)
