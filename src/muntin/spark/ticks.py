"""Ticks of windowing attributes in Spark: `Measure.tick`, as a Column.

In: an attribute of a stream. Out: a BIGINT Column, NULL where a row has no place on the attribute.
Convention: the same ticks as `semantics.measure` gives, to the last double. Numbers of 10^18 ticks and more, doubles of 2^53, NaN and
infinities have no tick, so that windows around those that have one stay inside 64 bits.
"""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F

from muntin.semantics import Measure, Unit
from muntin.semantics.measure import MOST_DIGITS, MOST_DOUBLE_TICKS


def micros(column: Column) -> Column:
    """Microseconds since the epoch; a TIMESTAMP without zone is read as UTC, the session's zone."""
    return F.unix_micros(column.cast("timestamp"))


def number_ticks(column: Column, measure: Measure) -> Column:
    """Ticks of a number that is not a row number."""
    if measure.unit is Unit.DOUBLE:
        return _double_ticks(column.cast("double"), measure.per_one)
    ticks = (column * F.lit(measure.per_one)).cast("bigint") if measure.scale else column.cast("bigint")
    most = F.lit(10**MOST_DIGITS)
    return F.when((ticks > -most) & (ticks < most), ticks)


def _double_ticks(value: Column, per_one: int) -> Column:
    """The greatest k with `k / per_one <= value` in doubles: the product may be off by one either way."""
    most = MOST_DOUBLE_TICKS // per_one
    near = F.floor(value * F.lit(float(per_one))).cast("bigint")

    def is_below(tick: Column) -> Column:
        return tick.cast("double") / F.lit(float(per_one)) <= value

    exact = F.when(is_below(near + 1), near + 1).when(is_below(near), near).otherwise(near - 1)
    return F.when((value > F.lit(float(-most))) & (value < F.lit(float(most))), exact)
