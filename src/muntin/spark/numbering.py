"""Row numbers: the position of every row in the order of arrival, the same whenever the batch is computed again.

In: the rows of a batch, and how many came before. Out: the same rows with their numbers, and the span of these.
Convention: files come in order of their modification time and path, as Spark takes them; rows in their order in the file. Where the
source says no more (a DataFrame of the user's own, the generator), rows come in the order of Spark's partitions and in these as they are.
Every row that is read has a number, dead letters too. Rows are numbered where they are: what is collected is a count per file or partition.
"""

from __future__ import annotations

from dataclasses import replace

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from muntin.aggregates.sums import ROW_NUMBERS
from muntin.spark.positions import ARRIVED, arrival
from muntin.spark.rows import Rows
from muntin.timeline import Interval

_POSITION, _PART, _SHIFT = "_muntin_position", "_muntin_part", "_muntin_shift"


def numbered(rows: Rows, first: int) -> tuple[Rows, Interval]:
    """Rows with their numbers, counted on from `first`. Gone over twice: keep them in memory where reading them is dear."""
    arrived = F.col(ARRIVED) if ARRIVED in rows.frame.columns else arrival(F.lit(0).cast("bigint"), F.lit(""), F.lit(0).cast("bigint"))
    # Positions ascend in each of Spark's partitions, with gaps between them; a file, or a part of one, lies in one partition, in one piece.
    frame = rows.frame.withColumns({ARRIVED: arrived, _POSITION: F.monotonically_increasing_id(), _PART: F.spark_partition_id()})
    shifts, count = _shifts(frame, first)
    joined = frame.join(F.broadcast(shifts), on=[_PART, ARRIVED], how="left") if count else frame.withColumn(_SHIFT, F.lit(0))
    with_numbers = joined.withColumn(ROW_NUMBERS, F.col(_POSITION) + F.col(_SHIFT)).drop(_POSITION, _PART, _SHIFT)
    return replace(rows, frame=with_numbers), Interval(first, first + count)


def _shifts(frame: DataFrame, first: int) -> tuple[DataFrame, int]:
    """What is to be added to the positions of each part of a file, and how many rows there are."""
    parts = frame.groupBy(_PART, ARRIVED).agg(F.min(_POSITION).alias("least"), F.count(F.lit(1)).alias("rows")).collect()
    shifts, number = [], first
    for one in sorted(parts, key=lambda one: (*one[ARRIVED], one[_PART])):
        shifts.append((one[_PART], one[ARRIVED], number - one["least"]))
        number += one["rows"]
    schema = f"{_PART} int, {ARRIVED} struct<changed: bigint, path: string, start: bigint>, {_SHIFT} bigint"
    return frame.sparkSession.createDataFrame(shifts, schema), number - first
