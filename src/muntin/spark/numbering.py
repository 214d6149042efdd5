"""Row numbers: the position of every row in the order of arrival, the same whenever the batch is computed again.

In: the rows of a batch, and how many came before. Out: the same rows with their numbers, and how many came now.
Convention: files come in order of their modification time and path, as Spark takes them; rows in their order in the file. Where the
source says no more (a DataFrame of the user's own, the generator), rows come in the order of Spark's partitions and in these as they are.
Every row that is read has a number, dead letters too. Rows of the stream are numbered where they are: what is collected is a count per file
or partition. Rows of each value of PATTR are brought together, in the JVM, and numbered there; the aggregation that follows finds
them where it wants them, so they are moved once. What is collected is a count per value.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from operator import and_

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from muntin.aggregates.sums import row_numbers
from muntin.disorder import Key, Seen
from muntin.semantics import Attribute
from muntin.spark.positions import ARRIVED, arrival
from muntin.spark.rows import Rows, resolve
from muntin.timeline import Interval

_POSITION, _PART, _SHIFT, _COUNTED = "_muntin_position", "_muntin_part", "_muntin_shift", "_muntin_counted"

#: What was seen of the stream, or of each partition: how many rows, and their first and last number.
Numbers = dict[Key, Seen]


def numbered(
    rows: Rows, counters: Sequence[Attribute], came: Callable[[Attribute], Mapping[Key, int]]
) -> tuple[Rows, dict[Attribute, Numbers]]:
    """Rows with their numbers on each counter, counted on from how many `came` before. They are gone over once for each counter, and once
    more by whoever takes them: keep them in memory where reading them is dear.
    """
    frame, seen = _with_positions(rows.frame), dict[Attribute, Numbers]()
    for one in counters:
        frame, seen[one] = _by_partition(frame, one.pattr, came(one)) if one.pattr else _of_stream(frame, came(one)[()])
    return replace(rows, frame=frame.drop(_POSITION, _PART)), seen


def number_span(numbers: Numbers) -> Interval | None:
    """Where the numbers of a batch lie."""
    return Interval(min(one.least for one in numbers.values()), max(one.greatest for one in numbers.values()) + 1) if numbers else None


def _with_positions(frame: DataFrame) -> DataFrame:
    """Positions ascend in each of Spark's partitions, with gaps between them; a file, or a part of one, lies in one partition, in one
    piece. So rows are in order of arrival by what orders their files, then by position. Found before anything moves the rows.
    """
    nothing = arrival(F.lit(0).cast("bigint"), F.lit(""), F.lit(0).cast("bigint"))
    arrived = F.col(ARRIVED) if ARRIVED in frame.columns else nothing
    return frame.withColumns({ARRIVED: arrived, _POSITION: F.monotonically_increasing_id(), _PART: F.spark_partition_id()})


# -- of the stream ------------------------------------------------------------------------------------------------------------------


def _of_stream(frame: DataFrame, first: int) -> tuple[DataFrame, Numbers]:
    shifts, count = _shifts(frame, first)
    joined = frame.join(F.broadcast(shifts), on=[_PART, ARRIVED], how="left") if count else frame.withColumn(_SHIFT, F.lit(0))
    with_numbers = joined.withColumn(row_numbers(), F.col(_POSITION) + F.col(_SHIFT)).drop(_SHIFT)
    return with_numbers, {(): Seen(count, first, first + count - 1)} if count else {}


def _shifts(frame: DataFrame, first: int) -> tuple[DataFrame, int]:
    """What is to be added to the positions of each part of a file, and how many rows there are."""
    parts = frame.groupBy(_PART, ARRIVED).agg(F.min(_POSITION).alias("least"), F.count(F.lit(1)).alias("rows")).collect()
    shifts, number = [], first
    for one in sorted(parts, key=lambda one: (*one[ARRIVED], one[_PART])):
        shifts.append((one[_PART], one[ARRIVED], number - one["least"]))
        number += one["rows"]
    schema = f"{_PART} int, {ARRIVED} struct<changed: bigint, path: string, start: bigint>, {_SHIFT} bigint"
    return frame.sparkSession.createDataFrame(shifts, schema), number - first


# -- of each partition --------------------------------------------------------------------------------------------------------------


def _by_partition(frame: DataFrame, pattr: Sequence[str], came: Mapping[Key, int]) -> tuple[DataFrame, Numbers]:
    columns = [resolve(name) for name in pattr]
    seen = _counts(frame, columns, came)
    before = {key: one.least for key, one in seen.items() if one.least}
    frame = _with_counts(frame, columns, before) if before else frame.withColumn(_COUNTED, F.lit(0).cast("bigint"))
    in_order = Window.partitionBy(*columns).orderBy(ARRIVED, _POSITION)
    number = F.row_number().over(in_order).cast("bigint") - F.lit(1) + F.coalesce(F.col(_COUNTED), F.lit(0))
    return frame.withColumn(row_numbers(tuple(pattr)), number).drop(_COUNTED), seen


def _counts(frame: DataFrame, columns: Sequence[Column], came: Mapping[Key, int]) -> Numbers:
    """How many rows of each partition the batch has, and their numbers."""
    found = frame.groupBy(*(column.alias(name) for column, name in zip(columns, _values(columns), strict=True))).agg(F.count(F.lit(1)))
    seen: Numbers = {}
    for *key, rows in zip(*(column.to_pylist() for column in found.toArrow().columns), strict=True):
        first = came.get(tuple(key), 0)
        seen[tuple(key)] = Seen(rows, first, first + rows - 1)
    return seen


def _with_counts(frame: DataFrame, columns: Sequence[Column], before: Mapping[Key, int]) -> DataFrame:
    """Each row with how many of its partition came before the batch; NULL is a partition."""
    names = _values(columns)
    types = [field.dataType.simpleString() for field in frame.select(*columns).schema.fields]
    schema = ", ".join(f"{name} {type}" for name, type in zip(names, types, strict=True)) + f", {_COUNTED} bigint"
    counted = frame.sparkSession.createDataFrame([(*key, count) for key, count in before.items()], schema)
    on = reduce(and_, [column.eqNullSafe(F.col(name)) for column, name in zip(columns, names, strict=True)])
    return frame.join(F.broadcast(counted), on=on, how="left").drop(*names)


def _values(columns: Sequence[Column]) -> list[str]:
    """Names for the values of PATTR."""
    return [f"_muntin_v{at}" for at in range(len(columns))]
