"""Times that Python has no object for: those outside the years 1 to 9999. Spark has them, and one wrong clock sends them.

In: Arrow arrays. Out: Python values, with a `Beyond` for each such time; and Arrow arrays of values.
Convention: a `Beyond` has its place in the order of times, so comparisons and IS NULL are right for it, and it comes out of CASE,
COALESCE and `greatest` as it went in. A function that needs the fields of a time fails on it (`evaluate`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import total_ordering
from typing import Any

import pyarrow as pa

from muntin.columnar import arrow_type
from muntin.errors import DataError
from muntin.schema import DATE, Type
from muntin.timeline import DAY, instant_of, iso_text


@total_ordering
@dataclass(frozen=True)
class Beyond:
    """An instant, or the midnight of a date.

    >>> Beyond(10**18) > datetime(9999, 12, 31)
    True
    """

    micros: int

    def __lt__(self, other: object) -> bool:
        return self.micros < (other.micros if isinstance(other, Beyond) else 0)  # Python's times are all on one side of it

    def __str__(self) -> str:
        return iso_text(self.micros)


def is_time(type_: Type) -> bool:
    return type_.temporal or type_ == DATE


def micros_of(moment: datetime | Beyond) -> int:
    return moment.micros if isinstance(moment, Beyond) else instant_of(moment)


def values_of(array: pa.Array) -> list[Any]:
    """What `to_pylist` gives, and `Beyond` where that fails."""
    try:
        return list(array.to_pylist())
    except OverflowError:
        unit = DAY if pa.types.is_date32(array.type) else 1
        return [_value(scalar, unit) for scalar in array]


def _value(scalar: pa.Scalar, unit: int) -> Any:
    try:
        return scalar.as_py()
    except OverflowError:
        return Beyond(scalar.value * unit)


def array_of(values: Sequence[Any], type_: Type) -> pa.Array:
    """The inverse of `values_of`."""
    if is_time(type_):
        unit = DAY if type_ == DATE else 1
        values = [value.micros // unit if isinstance(value, Beyond) else value for value in values]
    return pa.array(values, type=arrow_type(type_))


def beyond_years(argument: object, value: Beyond) -> DataError:
    return DataError(
        "a function is given times of the years 1 to 9999",
        values=f"{argument} = {value}",
        way_out="leave such rows out (WHERE), or test the time first: CASE, FILTER",
    )
