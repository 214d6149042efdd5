"""The constants that cut an axis, in the form Spark searches them in.

In: an axis. Out: its expression in the searched form, and its constants in the same.
Convention: exact for every type: constants are compared in the expression's own type.
A cut becomes the least value that passes it, so that one comparison, `value >= constant`, tells on which side a value lies.
"""

from __future__ import annotations

import math
from datetime import date, datetime
from decimal import Decimal
from typing import Any

from pyspark.sql import Column
from pyspark.sql import functions as F

from muntin.plan.fragments import Axis, Cut, Side
from muntin.schema import INTEGRAL_BITS, Kind, Type
from muntin.timeline import instant_of

_EPOCH_DAY = date(1970, 1, 1).toordinal()
_LONGEST = 2**63 - 1
#: Cuts that a few steps find as fast as a grid.
FEW_CUTS = 3


def searched(column: Column, type: Type) -> tuple[Column, str]:
    """An expression in the form its constants are held in, and that form's Spark type."""
    if type.temporal:
        return F.unix_micros(column.cast("timestamp")), "bigint"
    if type.kind is Kind.DATE:
        return F.unix_date(column).cast("bigint"), "bigint"
    if type.kind is Kind.BOOLEAN or type.kind in INTEGRAL_BITS:
        return column.cast("bigint"), "bigint"
    return (column.cast("double"), "double") if type.fractional else (column, str(type))


def at_least(cut: Cut, type: Type) -> Any:
    """The least value that passes a cut, in the searched form; None if no value does."""
    value = cut.value
    if isinstance(value, datetime):
        value = instant_of(value)
    elif isinstance(value, date):
        value = value.toordinal() - _EPOCH_DAY
    if cut.side is Side.BELOW:
        value = int(value) if isinstance(value, bool) else value
        return None if isinstance(value, int) and value > _LONGEST else value
    if isinstance(value, str):
        return value + "\0"
    if isinstance(value, Decimal):
        following = value + Decimal(1).scaleb(-type.scale)
        return following if abs(following) < Decimal(10) ** (type.precision - type.scale) else None
    if isinstance(value, float):
        return math.nextafter(value, math.inf) if value < math.inf else None
    return int(value) + 1 if int(value) < _LONGEST else None


def constants_of(axis: Axis) -> tuple[Any, ...]:
    """Ascending; None, which no value passes, comes last."""
    return tuple(at_least(cut, axis.expression.type) for cut in axis.cuts)
