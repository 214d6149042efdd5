"""Implicit casts: the types that Spark 4 in ANSI mode brings operands to.

In: types, or expressions where it matters whether one is a literal. Out: the common type, or None where there is none.
Convention: an integer meets a decimal as DECIMAL(3|5|10|20, 0), an integer literal in an operator with as many digits as it has;
where more than 38 digits would be needed the scale gives way. So DECIMAL(38,18) = DECIMAL(38,0) compares whole numbers: a rule
of Spark's that is kept here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from muntin.expression.tree import Expression, Literal
from muntin.schema import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    INTEGRAL_BITS,
    MAX_PRECISION,
    NULL,
    OTHER,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    Kind,
    Type,
    decimal,
)

Widening = Callable[[Type, Type], Type | None]

_INTEGRAL_DECIMALS = {Kind.TINYINT: decimal(3, 0), Kind.SMALLINT: decimal(5, 0), Kind.INT: decimal(10, 0), Kind.BIGINT: decimal(20, 0)}
#: Date and time types, narrowest first.
_DATETIMES = (DATE, TIMESTAMP_NTZ, TIMESTAMP)


def is_decimal(type_: Type) -> bool:
    return type_.kind is Kind.DECIMAL


def as_decimal(type_: Type) -> Type:
    """The decimal that holds every value of an integral type; a decimal itself."""
    return _INTEGRAL_DECIMALS.get(type_.kind, type_)


def operand_decimal(operand: Expression) -> Type:
    """As `as_decimal`, but an integer literal counts with its own digits. Spark does not do so for TINYINT literals."""
    shortened = (Kind.SMALLINT, Kind.INT, Kind.BIGINT)
    if isinstance(operand, Literal) and operand.type.kind in shortened and isinstance(operand.value, int):
        return decimal(len(str(abs(operand.value))), 0)
    return as_decimal(operand.type)


def wider_decimal(a: Type, b: Type) -> Type:
    """The decimal with the whole digits and the places of both; beyond 38 digits, places are given up."""
    scale = max(a.scale, b.scale)
    precision = max(a.precision - a.scale, b.precision - b.scale) + scale
    return decimal(precision, max(0, scale - max(0, precision - MAX_PRECISION)))


def wider(a: Type, b: Type) -> Type | None:
    """The type both widen to without reading strings."""
    if a == b or b.kind is Kind.NULL:
        return a
    if a.kind is Kind.NULL:
        return b
    if a in _DATETIMES and b in _DATETIMES:
        return max(a, b, key=_DATETIMES.index)
    return _wider_number(a, b) if a.numeric and b.numeric else None


def _wider_number(a: Type, b: Type) -> Type:
    if a.fractional or b.fractional:  # also INT with FLOAT: a FLOAT would lose digits of the INT
        return DOUBLE
    if is_decimal(a) or is_decimal(b):
        return wider_decimal(as_decimal(a), as_decimal(b))
    return max(a, b, key=lambda type_: INTEGRAL_BITS[type_.kind])


def wider_with_strings(a: Type, b: Type) -> Type | None:
    """As `wider`; a string that meets another type is read as that type."""
    found = wider(a, b)
    if found is None and STRING in (a, b):
        return read_as(b if a == STRING else a)
    return found


def read_as(type_: Type) -> Type | None:
    """What a string is read as where it meets `type_`."""
    if type_.numeric:
        return BIGINT if type_.integral else DOUBLE
    return type_ if type_ == BOOLEAN or type_ in _DATETIMES else None


def as_parameter(arg: Expression, type_: Type) -> bool:
    """Whether an argument is cast to a declared type by itself: to a wider one, from a string where it is read so, to a string."""
    if arg.type == OTHER:
        return False
    if is_decimal(type_) and arg.type.numeric and not arg.type.fractional:
        return wider_decimal(operand_decimal(arg), type_) == type_
    return type_ == STRING or wider_with_strings(arg.type, type_) == type_


def common(types: Sequence[Type], widening: Widening) -> Type | None:
    """The common type of any number of arguments, folded from the left as Spark folds it."""
    result: Type | None = NULL
    for type_ in types:
        result = widening(result, type_) if result is not None else None
    return result


def compared(left: Expression, right: Expression) -> Type | None:
    """The type two operands of a comparison are cast to."""
    if {is_decimal(left.type), is_decimal(right.type)} == {True, False} and left.type.numeric and right.type.numeric:
        a, b = operand_decimal(left), operand_decimal(right)
        return wider_decimal(a, b) if is_decimal(a) and is_decimal(b) else DOUBLE
    return wider_with_strings(left.type, right.type)
