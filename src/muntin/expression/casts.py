"""CAST among the scalar types, as Spark's ANSI mode does it: a value that does not fit or read as the type is an error.

In: a call `cast` whose type is the target. Out: the row `CAST` of `functions.FUNCTIONS`.
Convention: numbers are truncated towards zero on the way to integers and rounded half up on the way to decimals; a TIMESTAMP as a
number is seconds since the epoch; NaN and infinities become NULL decimals, as in Spark.
Narrower than Spark: a time outside the years 1 to 9999 is an error, where Spark gives one or wraps around (see also `reading`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, time
from decimal import ROUND_HALF_EVEN, Context, Decimal
from typing import Any

from muntin.errors import DataError, TypeMismatch
from muntin.expression.coercion import is_decimal
from muntin.expression.numeric import INTEGRAL_DIGITS, fitted_decimal, fitted_integer, float32, nearest_float32, overflow
from muntin.expression.reading import (
    DATE_TEXT,
    TIMESTAMP_TEXT,
    read_boolean,
    read_date,
    read_decimal,
    read_floating,
    read_integer,
    read_timestamp,
    text_of,
)
from muntin.expression.signature import ONE, Function, Signature
from muntin.expression.tree import Call, Expression
from muntin.schema import BIGINT, BOOLEAN, DATE, DOUBLE, INTEGRAL_BITS, NULL, OTHER, STRING, TIMESTAMP, Kind, Type
from muntin.timeline import SECOND, datetime_of, instant_of

Conversion = Callable[[Any], Any]

#: The first and the last instant of the years 1 to 9999.
FIRST_INSTANT = instant_of(datetime(1, 1, 1, tzinfo=UTC))
LAST_INSTANT = instant_of(datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=UTC))
#: Spark multiplies a decimal of seconds in this context.
_SECONDS = Context(prec=34, rounding=ROUND_HALF_EVEN)
#: Spark casts a decimal of more digits than a long has to INT, SMALLINT and TINYINT by way of a double: 127.999999999999999999 is 128.
_LONG_DIGITS = 18


def castable(source: Type, target: Type) -> bool:
    """Whether Spark's ANSI mode has a cast between the two."""
    if OTHER in (source, target) or target == NULL:
        return False
    if STRING in (source, target) or source in (NULL, target):
        return True
    if source.numeric:
        return target.numeric or target in (BOOLEAN, TIMESTAMP)
    if source == TIMESTAMP:
        return target.numeric or target.temporal or target == DATE
    if source == BOOLEAN:
        return target.numeric
    return target.temporal or target == DATE


def cast_signature(source: Type, target: Type) -> Signature:
    if not castable(source, target):
        raise TypeMismatch(
            "a cast goes from a type to one it can be read as",
            values=f"CAST({source} AS {target})",
            way_out="cast to STRING first, or use a function such as unix_seconds or to_date",
        )
    return Signature((source,), target)


def _typed(args: Sequence[Expression]) -> Signature:
    raise TypeMismatch("a cast says its type", values=", ".join(map(str, args)), way_out="build it with `functions.cast`")


def can_fail(call: Call) -> bool:
    """Whether some value of the argument's type does not fit the target's."""
    source, target = call.args[0].type, call.type
    if target in (STRING, BOOLEAN, source) or source == NULL:
        return source == STRING and target != STRING
    if source == STRING:
        return True
    if is_decimal(target):
        return _loses_digits(source, target)
    if target.integral:
        return _outgrows(source, target)
    return target == TIMESTAMP and source.numeric and _whole_digits(source) > 10


def _whole_digits(source: Type) -> int:
    """Digits before the point that a value of a type can have."""
    if source.fractional:
        return 309
    if is_decimal(source):
        return source.precision - source.scale
    return 12 if source == TIMESTAMP else INTEGRAL_DIGITS.get(source.kind, 1)


def _loses_digits(source: Type, target: Type) -> bool:
    room = target.precision - target.scale
    rounds_up = is_decimal(source) and source.scale > target.scale  # 9.99 becomes 10.0
    return _whole_digits(source) + rounds_up > room


def _outgrows(source: Type, target: Type) -> bool:
    if source.integral:
        return INTEGRAL_BITS[source.kind] > INTEGRAL_BITS[target.kind]
    return _whole_digits(source) >= INTEGRAL_DIGITS[target.kind]


def _column(functions: Any, call: Call, column: Any) -> Any:
    source, target = call.args[0].type, call.type
    if not can_fail(call):
        return column.cast(str(target))
    result = column.try_cast(str(target))
    if source == STRING and (target == DATE or target.temporal):
        result = functions.when(column.rlike(DATE_TEXT if target == DATE else TIMESTAMP_TEXT), result)
    if is_decimal(source) and target == TIMESTAMP:  # Spark wraps around
        result = functions.when(column.between(FIRST_INSTANT // SECOND - 1, LAST_INSTANT // SECOND + 1), result)
    if target == TIMESTAMP:
        first, last = (functions.timestamp_micros(functions.lit(instant)) for instant in (FIRST_INSTANT, LAST_INSTANT))
        result = functions.when(result.between(first, last), result)
    return result


def _failure(functions: Any, call: Call, result: Any, column: Any) -> Any:
    if call.args[0].type.fractional and is_decimal(call.type):
        return result.isNull() & (functions.abs(column) < functions.lit(math.inf))
    return result.isNull()


def _unreadable(value: object, target: Type) -> DataError:
    return DataError(
        "a value that is cast reads as its new type",
        values=f"CAST({value!r} AS {target})",
        way_out="test the value first, with LIKE or CASE",
    )


def _value(call: Call) -> Conversion:
    source, target = call.args[0].type, call.type
    if source in (target, NULL):
        return lambda value: value
    if source == STRING:
        return _from_string(target)
    if target == STRING:
        return lambda value: text_of(value, source)
    if target == BOOLEAN:
        return bool
    if target.numeric:
        return _to_number(source, target)
    return _to_time(source, target)


def _from_string(target: Type) -> Conversion:
    read = _reader(target)

    def conversion(text: str) -> Any:
        value = read(text)
        if value is None:
            raise _unreadable(text, target)
        return value

    return conversion


def _reader(target: Type) -> Conversion:
    if target.integral:
        return lambda text: None if (number := read_integer(text)) is None else fitted_integer(number, target, repr(text))
    if is_decimal(target):
        return lambda text: None if (number := read_decimal(text)) is None else fitted_decimal(number, target, repr(text))
    if target.fractional:
        return lambda text: read_floating(text, target)
    if target.temporal:
        return lambda text: read_timestamp(text, target)
    return read_date if target == DATE else read_boolean


def _to_number(source: Type, target: Type) -> Conversion:
    if source == TIMESTAMP:
        return _from_timestamp(target)
    if target.integral:
        return _to_integer(source, target)
    if is_decimal(target):
        return _to_decimal(source, target)
    if target == DOUBLE:
        return float
    return float32 if source.fractional else nearest_float32


def _to_integer(source: Type, target: Type) -> Conversion:
    truncated = _truncated(target)
    if source.fractional:
        return truncated
    if source.precision > _LONG_DIGITS and target != BIGINT:
        return lambda value: truncated(float(value))
    return lambda value: fitted_integer(int(value), target, value)


def _to_decimal(source: Type, target: Type) -> Conversion:
    if source.fractional:  # a float counts with the digits it is written with
        return lambda value: fitted_decimal(Decimal(repr(value)), target, value) if math.isfinite(value) else None
    return lambda value: fitted_decimal(Decimal(value), target, value)


def _truncated(target: Type) -> Conversion:
    def conversion(value: float) -> int:
        if not math.isfinite(value):
            raise overflow(target, value)
        if target.kind is Kind.BIGINT and value == 2.0**63:  # Spark lets it pass as the greatest BIGINT
            return 2**63 - 1
        return fitted_integer(int(value), target, value)

    return conversion


def _from_timestamp(target: Type) -> Conversion:
    def seconds(moment: datetime) -> float:
        return float(instant_of(moment)) / SECOND

    if target.integral:
        return lambda moment: fitted_integer(instant_of(moment) // SECOND, target, moment)
    if is_decimal(target):
        return lambda moment: fitted_decimal(Decimal(instant_of(moment)).scaleb(-6), target, moment)
    return seconds if target == DOUBLE else lambda moment: float32(seconds(moment))


def _to_time(source: Type, target: Type) -> Conversion:
    if source.numeric:
        return lambda value: _moment(value, target)
    if source == DATE:
        return lambda day: datetime.combine(day, time(), UTC)
    return (lambda moment: moment.date()) if target == DATE else lambda moment: moment


def _moment(seconds: Any, target: Type) -> datetime:
    exact = isinstance(seconds, Decimal)
    micros = _SECONDS.multiply(seconds, Decimal(SECOND)) if exact else seconds * SECOND
    if FIRST_INSTANT - 1 < micros < LAST_INSTANT + 1:  # false for NaN
        return datetime_of(int(micros))
    raise overflow(target, seconds, "seconds since 1970")


CAST = Function("cast", ONE, _typed, _column, _value, can_fail, _failure)
