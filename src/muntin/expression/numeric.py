"""Numbers as Spark's ANSI mode keeps them: integers of a width, exact decimals, 32-bit floats, and their texts.

In: Python numbers. Out: the number a column of the type would hold, or a `DataError` where it holds none.
Convention: decimals are rounded half up and carry exactly the scale of their type; a decimal zero has no sign.
Texts of floats, and so their casts to DECIMAL and `round`, have the fewest digits that read back, as Java 19 and later write
them. Java 17 writes another last digit for some doubles beyond 2^53 and FLOATs beyond 2^24: for 3 in 1,000 of all bit patterns,
for none of 600,000 ordinary prices and products.
"""

from __future__ import annotations

import ctypes
import math
import struct
from decimal import ROUND_DOWN, ROUND_HALF_UP, Context, Decimal
from fractions import Fraction

import numpy as np

from muntin.errors import DataError
from muntin.schema import INTEGRAL_BITS, Kind, Type

#: Wide enough for any exact sum, product or cast of 38-digit decimals.
WIDE = Context(prec=120, rounding=ROUND_HALF_UP)
CUT = Context(prec=120, rounding=ROUND_DOWN)
#: Spark cuts a product to 39 digits before it rounds it to its type.
PRODUCT = Context(prec=39, rounding=ROUND_DOWN)

#: Decimal digits of the largest value of an integral kind: a decimal with fewer whole digits always fits into it.
INTEGRAL_DIGITS = {Kind.TINYINT: 3, Kind.SMALLINT: 5, Kind.INT: 10, Kind.BIGINT: 19}


def integral_bounds(type_: Type) -> tuple[int, int]:
    """The least and the greatest value of an integral type."""
    bits = INTEGRAL_BITS[type_.kind]
    return -(1 << (bits - 1)), (1 << (bits - 1)) - 1


def overflow(type_: Type, *found: object) -> DataError:
    return DataError(
        f"a result fits its type, {type_}",
        values=" ".join(map(str, found)),
        way_out="cast an operand to a wider type first, such as BIGINT, DECIMAL(38, 0) or DOUBLE",
    )


def division_by_zero(*found: object) -> DataError:
    return DataError(
        "nothing is divided by zero",
        values=" ".join(map(str, found)),
        way_out="divide by NULLIF(divisor, 0), which gives NULL instead",
    )


def fitted_integer(value: int, type_: Type, *found: object) -> int:
    """`value`, or an error if an integral type is too narrow for it. `found` is what led to it, for the error."""
    low, high = integral_bounds(type_)
    if low <= value <= high:
        return value
    raise overflow(type_, *found)


def fitted_decimal(value: Decimal, type_: Type, *found: object) -> Decimal:
    """`value` rounded half up to the scale of `type_`; an error if it then has more digits than the type."""
    if not value:
        return Decimal((0, (0,), -type_.scale))
    if value.is_finite() and value.adjusted() <= type_.precision - type_.scale:
        rounded = value.quantize(Decimal((0, (1,), -type_.scale)), context=WIDE)
        if not rounded:
            return rounded.copy_abs()
        if rounded.adjusted() < type_.precision - type_.scale:
            return rounded
    raise overflow(type_, *found)


def quotient(dividend: Decimal, divisor: Decimal) -> Decimal:
    """The quotient cut after 39 places, as Spark cuts it before it rounds to the type of the result."""
    return CUT.divide(dividend, divisor).quantize(Decimal("1E-39"), context=CUT)


def float32(value: float) -> float:
    """The 32-bit float nearest to a double."""
    return ctypes.c_float(value).value


def nearest_float32(exact: Fraction | Decimal | int) -> float:
    """The 32-bit float nearest to an exact number, rounded once: going through a double rounds twice."""
    try:
        double = float(exact)
    except OverflowError:
        return math.inf if exact > 0 else -math.inf
    even = struct.unpack("<q", struct.pack("<d", double))[0] % 2 == 0
    inexact = math.isfinite(double) and Fraction(double) != Fraction(exact)
    if inexact and even:  # rounding to odd keeps what the second rounding needs to know
        double = math.nextafter(double, math.inf if Fraction(exact) > Fraction(double) else -math.inf)
    return float32(double)


def shortest(value: float, type_: Type) -> Decimal:
    """The decimal that Java's text of a finite float stands for."""
    if type_.kind is Kind.FLOAT:
        return Decimal(np.format_float_scientific(np.float32(value), unique=True))
    return Decimal(repr(value))


def float_text(value: float, type_: Type) -> str:
    """A float as Java writes it: `1.0`, `1.0E10`, `NaN`, `-Infinity`.

    >>> from muntin.schema import DOUBLE
    >>> float_text(12345678.0, DOUBLE), float_text(0.1, DOUBLE), float_text(5e-324, DOUBLE)
    ('1.2345678E7', '0.1', '4.9E-324')
    """
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    if value == 0:
        return str(value)
    digits = shortest(value, type_)
    if len(digits.normalize().as_tuple().digits) == 1:  # Java writes two digits at least, and takes the nearest such number
        digits = Decimal(f"{value:.1e}")
    if 1e-3 <= abs(value) < 1e7:
        text = format(digits.normalize(), "f")
        return text if "." in text else f"{text}.0"
    mantissa, exponent = f"{digits:e}".split("e")
    whole, _, fraction = mantissa.partition(".")
    return f"{whole}.{fraction.rstrip('0') or '0'}E{int(exponent)}"
