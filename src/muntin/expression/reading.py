"""Strings read as values, and values written as strings: the casts from and to STRING.

In: a text. Out: the value, or None where the text does not read as one. Convention: blanks and control characters around a
number, a truth value or a time do not count. Numbers are what Java reads (`1e3`, `1d`, `0x1p3`, `inf`), integers are digits only.
Times are read by one grammar in Python and in Spark: `TIMESTAMP_TEXT` and `DATE_TEXT`, written for both regular-expression engines.
Not supported, though Spark reads them: times without a date (they mean today, so a replay would differ), named zones (they
depend on the machine's tables), and years outside 0001 to 9999 (Python has none).
"""

from __future__ import annotations

import math
import re
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction

from muntin.expression.numeric import float_text, nearest_float32
from muntin.schema import MAX_PRECISION, Kind, Type

_BLANK = r"[\x00-\x20\x7f]*"
_END = r"(?![\s\S])"  # `$` would let a line break stand behind it
_DAY = r"(?!0000)([0-9]{4})(?:-([0-9]{1,2})(?:-([0-9]{1,2})"
_ZONE = r"(?: ?(Z|UTC|[+-][0-9]{1,2}(?::[0-9]{2})?|[+-][0-9]{4}))?"
_TIME = rf"(?:[ T]([0-9]{{1,2}})(?::([0-9]{{1,2}})(?::([0-9]{{1,2}})(?:\.([0-9]*))?{_ZONE})?)?)?"
DATE_TEXT = rf"\A{_BLANK}{_DAY}(?:[ T][\s\S]*)?)?)?{_BLANK}{_END}"
TIMESTAMP_TEXT = rf"\A{_BLANK}{_DAY}{_TIME})?)?{_BLANK}{_END}"

_DATE = re.compile(DATE_TEXT)
_TIMESTAMP = re.compile(TIMESTAMP_TEXT)
_INTEGER = re.compile(r"[+-]?[0-9]+")
_FLOATING = re.compile(r"([+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)[fFdD]?")
_HEXADECIMAL = re.compile(r"([+-]?0[xX](?:[0-9a-fA-F]+\.?[0-9a-fA-F]*|\.[0-9a-fA-F]+)[pP][+-]?[0-9]+)[fFdD]?")
_DECIMAL = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?")
_SPECIAL = {"inf": math.inf, "infinity": math.inf, "nan": math.nan, "-inf": -math.inf, "-infinity": -math.inf}
_SPECIAL |= {"+inf": math.inf, "+infinity": math.inf}
_CONTROL = "".join(map(chr, range(33)))
_TRUTH = dict.fromkeys(("t", "true", "y", "yes", "1"), True) | dict.fromkeys(("f", "false", "n", "no", "0"), False)
_LONGEST_OFFSET = 18 * 60


def read_boolean(text: str) -> bool | None:
    return _TRUTH.get(text.strip(_CONTROL + "\x7f").lower())


def read_integer(text: str) -> int | None:
    trimmed = text.strip(_CONTROL + "\x7f")
    return int(trimmed) if _INTEGER.fullmatch(trimmed) else None


def read_floating(text: str, type_: Type) -> float | None:
    """A DOUBLE or, rounded once, a FLOAT."""
    trimmed = text.strip(_CONTROL)
    if trimmed.lower() in _SPECIAL or trimmed in ("+NaN", "-NaN"):
        return _SPECIAL.get(trimmed.lower(), math.nan)
    if found := _FLOATING.fullmatch(trimmed):
        return float(found[1]) if type_.kind is Kind.DOUBLE else _nearest(Decimal(found[1]))
    if found := _HEXADECIMAL.fullmatch(trimmed):
        return _hexadecimal(found[1], type_)
    return None


def _nearest(exact: Decimal) -> float:
    if not exact or abs(exact.adjusted()) > 100:  # zero or infinite as a FLOAT: spare the long fraction
        return math.copysign(math.inf if exact.adjusted() > 100 and exact else 0.0, -1.0 if exact.is_signed() else 1.0)
    return nearest_float32(exact)


def _hexadecimal(text: str, type_: Type) -> float:
    try:
        double = float.fromhex(text)
    except OverflowError:
        return -math.inf if text.startswith("-") else math.inf
    return double if type_.kind is Kind.DOUBLE else nearest_float32(Fraction(double))


def read_decimal(text: str) -> Decimal | None:
    """An exact number, not yet rounded to a type. Java's exponents end at 2^31, and Spark's decimals at 38 whole digits."""
    trimmed = text.strip(_CONTROL)
    if not _DECIMAL.fullmatch(trimmed):
        return None
    exact = Decimal(trimmed)
    return exact if not exact or -(2**31) < exact.adjusted() < MAX_PRECISION else None


def read_date(text: str) -> date | None:
    found = _DATE.match(text)
    if found is None:
        return None
    try:
        return date(int(found[1]), int(found[2] or 1), int(found[3] or 1))
    except ValueError:
        return None


def read_timestamp(text: str, type_: Type) -> datetime | None:
    """A TIMESTAMP in its zone, UTC by default; a TIMESTAMP_NTZ takes no notice of the zone, as long as it is one."""
    found = _TIMESTAMP.match(text)
    offset = _offset(found[8]) if found else None
    if found is None or offset is None:
        return None
    micros = int((found[7] or "")[:6].ljust(6, "0"))
    fields = [int(found[group] or default) for group, default in ((1, 1), (2, 1), (3, 1), (4, 0), (5, 0), (6, 0))]
    try:
        local = datetime(*fields, micros, tzinfo=UTC)  # type: ignore[misc,arg-type]
        return local - timedelta(minutes=offset) if type_.kind is Kind.TIMESTAMP else local
    except (ValueError, OverflowError):
        return None


def _offset(zone: str | None) -> int | None:
    """Minutes east of UTC; None if there is no such zone."""
    if zone in (None, "Z", "UTC"):
        return 0
    assert zone is not None
    digits = zone[1:].replace(":", "")
    hours, minutes = (int(digits), 0) if len(digits) <= 2 else (int(digits[:-2]), int(digits[-2:]))
    total = 60 * hours + minutes
    return (-total if zone[0] == "-" else total) if minutes < 60 and total <= _LONGEST_OFFSET else None


def text_of(value: object, type_: Type) -> str:
    """A value as CAST(… AS STRING) writes it: `true`, `1.50`, `1.0E10`, `2026-01-05 01:02:03.5`."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return float_text(value, type_)
    if isinstance(value, Decimal):
        return format(value, "f")
    if isinstance(value, datetime):
        text = value.replace(tzinfo=None).isoformat(sep=" ")
        return text.rstrip("0") if "." in text else text
    return value.isoformat() if isinstance(value, date) else str(value)
