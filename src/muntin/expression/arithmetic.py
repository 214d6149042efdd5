"""The operators + - * / %, as Spark's ANSI mode computes them.

In: two operands. Out: rows of `functions.FUNCTIONS`. Convention: / of anything but decimals is of doubles; division by zero
fails for doubles too; a decimal result has Spark's precision and scale. / and % look at the divisor first: NULL / 0 is NULL.
Not supported: arithmetic on dates and times; decimal % decimal whose quotient may need more than 39 digits, since Spark's
`try_mod` raises there instead of giving NULL and would fail the shared batch.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

from muntin.expression.coercion import is_decimal, operand_decimal, read_as, wider
from muntin.expression.numeric import PRODUCT, WIDE, division_by_zero, fitted_decimal, float32, integral_bounds, overflow, quotient
from muntin.expression.signature import TWO, Evaluation, Function, Signature, undefined
from muntin.expression.tree import Call, Expression, Literal
from muntin.schema import DOUBLE, FLOAT, MAX_PRECISION, NULL, STRING, Type, adjusted_decimal

#: Precision and scale of a decimal result before they are cut to 38 digits.
Digits = Callable[[Type, Type], tuple[int, int]]
Typing = Callable[[Sequence[Expression]], Signature]
Binding = Callable[[Call], Callable[[Any, Any], Any]]
Operator = Callable[[Any, Any], Any]


def _whole(type_: Type) -> int:
    return type_.precision - type_.scale


def _sum_digits(a: Type, b: Type) -> tuple[int, int]:
    scale = max(a.scale, b.scale)
    return max(_whole(a), _whole(b)) + scale + 1, scale


def _product_digits(a: Type, b: Type) -> tuple[int, int]:
    return a.precision + b.precision + 1, a.scale + b.scale


def _quotient_digits(a: Type, b: Type) -> tuple[int, int]:
    scale = max(6, a.scale + b.precision + 1)
    return _whole(a) + b.scale + scale, scale


def _remainder_digits(a: Type, b: Type) -> tuple[int, int]:
    scale = max(a.scale, b.scale)
    return min(_whole(a), _whole(b)) + scale, scale


def _operands(name: str, args: Sequence[Expression]) -> tuple[Type, Type]:
    """The types the operands are cast to."""
    left, right = args
    types = {left.type, right.type}
    if STRING in types:
        number = read_as(right.type if left.type == STRING else left.type)
        if number is not None and number.numeric:
            return number, number
    if types == {NULL}:
        return DOUBLE, DOUBLE
    if all(type_.numeric or type_ == NULL for type_ in types):
        return _numbers(left, right)
    raise undefined(name, args, takes="two numbers")


def _numbers(left: Expression, right: Expression) -> tuple[Type, Type]:
    if is_decimal(left.type) or is_decimal(right.type):
        a, b = operand_decimal(left), operand_decimal(right)
        if is_decimal(a) and is_decimal(b):
            return a, b
    common = wider(left.type, right.type)
    assert common is not None  # two numbers, or a number and NULL
    return common, common


def _signature(a: Type, b: Type, digits: Digits) -> Signature:
    return Signature((a, b), adjusted_decimal(*digits(a, b)) if is_decimal(a) else a)


def _typed(name: str, digits: Digits) -> Typing:
    return lambda args: _signature(*_operands(name, args), digits)


def _typed_quotient(args: Sequence[Expression]) -> Signature:
    a, b = _operands("/", args)
    if STRING in (args[0].type, args[1].type) and a.integral:  # Spark reads it as a BIGINT first: '1.5' / 2 fails
        raise undefined("/", args, takes="two numbers", way_out="cast the string to DOUBLE")
    if not is_decimal(a) or args[0].type == NULL:  # Spark reads NULL / x as a division of doubles, whatever x is
        a = b = DOUBLE
    return _signature(a, b, _quotient_digits)


def _typed_remainder(args: Sequence[Expression]) -> Signature:
    signature = _typed("%", _remainder_digits)(args)
    a, b = signature.arguments
    if is_decimal(a) and _whole(a) + b.scale > MAX_PRECISION + 1:
        raise undefined("%", args, takes="decimals whose whole quotient has 39 digits at most", way_out="cast them to fewer digits")
    return signature


def _may_overflow(digits: Digits) -> Callable[[Call], bool]:
    """Integers can; floats cannot; decimals only where the exact result may have more digits than 38."""

    def may_overflow(call: Call) -> bool:
        if is_decimal(call.type):
            return digits(call.args[0].type, call.args[1].type)[0] > MAX_PRECISION
        return call.type.integral

    return may_overflow


def _may_divide_by_zero(digits: Digits) -> Callable[[Call], bool]:
    def may_fail(call: Call) -> bool:
        divisor = call.args[1]
        safe = isinstance(divisor, Literal) and divisor.value is not None and divisor.value != 0
        return not safe or (is_decimal(call.type) and _may_overflow(digits)(call))

    return may_fail


def _bound(symbol: str, plain: Operator, exact: Operator) -> Binding:
    """The operator on the values of the call's type, chosen once."""

    def bind(call: Call) -> Callable[[Any, Any], Any]:
        type_ = call.type
        if is_decimal(type_):
            return lambda a, b: fitted_decimal(exact(a, b), type_, a, symbol, b)
        if type_ == FLOAT:
            return lambda a, b: float32(plain(a, b))
        if type_ == DOUBLE:
            return plain
        low, high = integral_bounds(type_)

        def integral(a: int, b: int) -> int:
            result: int = plain(a, b)
            if low <= result <= high:
                return result
            raise overflow(type_, a, symbol, b)

        return integral

    return bind


def _guarded(symbol: str, bind: Binding) -> Binding:
    """`bind`, with an error where the divisor is zero."""

    def guarded(call: Call) -> Callable[[Any, Any], Any]:
        operation = bind(call)

        def divide(a: Any, b: Any) -> Any:
            if b == 0:
                raise division_by_zero(a, symbol, b)
            return operation(a, b)

        return divide

    return guarded


def _remainder(a: Any, b: Any) -> Any:
    """The remainder with the sign of the dividend, of integers or floats."""
    if isinstance(a, int):
        return abs(a) % abs(b) if a >= 0 else -(abs(a) % abs(b))
    return math.nan if math.isinf(a) or math.isnan(a) else math.fmod(a, b)


def _column(plain: Operator, trying: str, can_fail: Callable[[Call], bool]) -> Callable[..., Any]:
    def column(functions: Any, call: Call, left: Any, right: Any) -> Any:
        return getattr(functions, trying)(left, right) if can_fail(call) else plain(left, right)

    return column


def _plus_column(functions: Any, call: Call, left: Any, right: Any) -> Any:
    """A constant is negated and subtracted, to keep Spark from gathering constants: it does so in `try_add` too, and makes
    (x + 2147483647) + 1 the sum of x and an overflow, which is NULL even where x is -5."""
    if call.type.integral:
        for constant, other in zip(call.args, (right, left), strict=True):
            if isinstance(constant, Literal) and isinstance(constant.value, int) and constant.value > integral_bounds(call.type)[0]:
                return functions.try_subtract(other, functions.lit(-constant.value).cast(str(call.type)))
    return _column(operator.add, "try_add", _may_overflow(_sum_digits))(functions, call, left, right)


def _times_column(functions: Any, call: Call, left: Any, right: Any) -> Any:
    """A product in a product hides behind a difference with zero, for the same reason."""
    if not call.type.integral:
        return _column(operator.mul, "try_multiply", _may_overflow(_product_digits))(functions, call, left, right)
    zero = functions.lit(0).cast(str(call.type))
    nested = [isinstance(arg, Call) and arg.function == "*" for arg in call.args]
    factors = zip((left, right), nested, strict=True)
    return functions.try_multiply(*(functions.try_subtract(factor, zero) if hide else factor for factor, hide in factors))


def _summing(symbol: str, digits: Digits, column: Callable[..., Any], plain: Operator, exact: Operator) -> Function:
    return Function(symbol, TWO, _typed(symbol, digits), column, _bound(symbol, plain, exact), _may_overflow(digits))


def _dividing(symbol: str, digits: Digits, typed: Typing, trying: str, plain: Operator, bind: Binding) -> Function:
    can_fail = _may_divide_by_zero(digits)
    value = _guarded(symbol, bind)
    return Function(symbol, TWO, typed, _column(plain, trying, can_fail), value, can_fail, evaluation=Evaluation.RIGHT_TO_NULL)


ARITHMETIC: tuple[Function, ...] = (
    _summing("+", _sum_digits, _plus_column, operator.add, WIDE.add),
    _summing("-", _sum_digits, _column(operator.sub, "try_subtract", _may_overflow(_sum_digits)), operator.sub, WIDE.subtract),
    _summing("*", _product_digits, _times_column, operator.mul, PRODUCT.multiply),
    _dividing("/", _quotient_digits, _typed_quotient, "try_divide", operator.truediv, _bound("/", operator.truediv, quotient)),
    _dividing("%", _remainder_digits, _typed_remainder, "try_mod", operator.mod, _bound("%", _remainder, WIDE.remainder)),
)
