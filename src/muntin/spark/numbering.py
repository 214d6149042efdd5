"""Row numbers: the position of every row in the order of arrival, the same whenever the batch is computed again.

In: the rows of a batch, and how many came before. Out: the same rows with their numbers, and how many came now.
Convention: files come in order of their modification time and path, as Spark takes them; rows in their order in the file. A DataFrame
with columns that say the order (`positions.order_of`: Kafka's topic, partition and offset) comes in that order within a batch, wherever
Spark has its rows. Where the source says nothing (other DataFrames, the generator), rows come in the order of Spark's partitions and in
these as they are. Every row that is read has a number, dead letters too.
Rows of the stream are numbered where they are: what is collected is a count per file or partition. Rows of each value of PATTR, and of each
Kafka partition, are brought together, in the JVM, and numbered there; the aggregation that follows finds rows of PATTR where it wants
them, so they are moved once. What is collected is a count per value.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from muntin.aggregates.sums import row_numbers
from muntin.disorder import Key, Seen
from muntin.semantics import Attribute
from muntin.spark.positions import ARRIVED, arrival
from muntin.spark.rows import Rows, resolve
from muntin.spark.values import value_names, with_number
from muntin.timeline import Interval

_POSITION, _PART, _SHIFT = "_muntin_position", "_muntin_part", "_muntin_shift"
_COUNTED, _NUMBER = "_muntin_counted", "_muntin_number"

#: What was seen of the stream, or of each partition: how many rows, and their first and last number.
Numbers = dict[Key, Seen]


def numbered(
    rows: Rows, counters: Sequence[Attribute], came: Callable[[Attribute], Mapping[Key, int]]
) -> tuple[Rows, dict[Attribute, Numbers]]:
    """Rows with their numbers on each counter, counted on from how many `came` before. They are gone over once for each counter, and once
    more by whoever takes them: keep them in memory where reading them is dear.
    """
    frame, seen, order = _with_positions(rows.frame), dict[Attribute, Numbers](), [resolve(name) for name in rows.stream.order]
    for one in counters:
        if one.pattr:
            frame, seen[one] = _by_partition(frame, one.pattr, came(one), order or [F.col(ARRIVED), F.col(_POSITION)])
        else:
            first = came(one)[()]
            frame, count = _in_order(frame, order, first) if order else _as_they_are(frame, first)
            seen[one] = {(): Seen(count, first, first + count - 1)} if count else {}
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


def _as_they_are(frame: DataFrame, first: int) -> tuple[DataFrame, int]:
    """Numbered without being moved: positions, shifted part by part."""
    shifts, count = _shifts(frame, first)
    joined = frame.join(F.broadcast(shifts), on=[_PART, ARRIVED], how="left") if count else frame.withColumn(_SHIFT, F.lit(0))
    return joined.withColumn(row_numbers(), F.col(_POSITION) + F.col(_SHIFT)).drop(_SHIFT), count


def _shifts(frame: DataFrame, first: int) -> tuple[DataFrame, int]:
    """What is to be added to the positions of each part of a file, and how many rows there are."""
    parts = frame.groupBy(_PART, ARRIVED).agg(F.min(_POSITION).alias("least"), F.count(F.lit(1)).alias("rows")).collect()
    shifts, number = [], first
    for one in sorted(parts, key=lambda one: (*one[ARRIVED], one[_PART])):
        shifts.append((one[_PART], one[ARRIVED], number - one["least"]))
        number += one["rows"]
    schema = f"{_PART} int, {ARRIVED} struct<changed: bigint, path: string, start: bigint>, {_SHIFT} bigint"
    return frame.sparkSession.createDataFrame(shifts, schema), number - first


def _in_order(frame: DataFrame, order: Sequence[Column], first: int) -> tuple[DataFrame, int]:
    """Numbered by columns: one run after the other, a run being the rows that are equal in all but the last of them."""
    *run, last = order
    counts, before, number = _counts(frame, run), dict[Key, int](), first
    for key in sorted(counts, key=lambda key: [(part is not None, part) for part in key]):
        before[key], number = number, number + counts[key]
    return _numbered_within(frame, run, [last], before).withColumnRenamed(_NUMBER, row_numbers()), number - first


# -- of each partition --------------------------------------------------------------------------------------------------------------


def _by_partition(frame: DataFrame, pattr: Sequence[str], came: Mapping[Key, int], order: Sequence[Column]) -> tuple[DataFrame, Numbers]:
    columns = [resolve(name) for name in pattr]
    first = {key: (came.get(key, 0), rows) for key, rows in _counts(frame, columns).items()}
    numbers = _numbered_within(frame, columns, order, {key: before for key, (before, _) in first.items()})
    seen = {key: Seen(rows, before, before + rows - 1) for key, (before, rows) in first.items()}
    return numbers.withColumnRenamed(_NUMBER, row_numbers(tuple(pattr))), seen


def _counts(frame: DataFrame, columns: Sequence[Column]) -> dict[Key, int]:
    """How many rows of each value the batch has."""
    found = frame.groupBy(*(column.alias(name) for column, name in zip(columns, value_names(columns), strict=True))).agg(F.count(F.lit(1)))
    *keys, rows = (column.to_pylist() for column in found.toArrow().columns)
    counts = zip(zip(*keys, strict=True) if keys else [()] * len(rows), rows, strict=True)
    return {tuple(key): count for key, count in counts if count}


def _numbered_within(frame: DataFrame, columns: Sequence[Column], order: Sequence[Column], before: Mapping[Key, int]) -> DataFrame:
    """Each row numbered in the order of its value of some columns, counted on from how many came `before`."""
    position = F.row_number().over(Window.partitionBy(*columns).orderBy(*order)).cast("bigint") - F.lit(1)
    if not any(before.values()):
        return frame.withColumn(_NUMBER, position)
    return with_number(frame, columns, before, _COUNTED).withColumn(_NUMBER, position + F.col(_COUNTED)).drop(_COUNTED)
