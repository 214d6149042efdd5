"""Partials in the JVM: one Spark aggregation per grouping and micro-batch. The papers' pane-level query.

In: the rows of a batch as a DataFrame. Out: `Partials` per grouping, and what the batch says about itself: rows, greatest time,
dead letters. Convention: rows never reach Python; a row whose time is NULL, unparsable or too far ahead falls into the slice NULL,
where it is counted, and is written out by a second, rare pass.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from muntin.columnar import integers
from muntin.expression.tree import Expression
from muntin.plan.shared import Failures, Grouping, PartialColumn
from muntin.query.model import StreamDefinition
from muntin.spark.columns import Compiled, compile_column
from muntin.spark.slicekey import KeyKind, SliceKey, key_kind, moving
from muntin.spark.sources import CORRUPT
from muntin.timeline import BEGINNING, Interval
from muntin.windows.store import Partials

_MICROS, _AT, _ROWS, _LAST = "_muntin_micros", "_muntin_at", "_muntin_rows", "_muntin_last"


@dataclass(frozen=True)
class BatchFacts:
    """Rows read, the greatest time among the good ones, and how many were dead letters."""

    rows: int
    last: int
    dead: int


@dataclass(frozen=True)
class Rows:
    """The rows of a batch with what makes them good: `limit` is the latest instant that is not too far ahead."""

    frame: DataFrame
    stream: StreamDefinition
    limit: int

    def resolve(self, name: str) -> Column:
        return self.frame[f"`{name.replace('`', '``')}`"]

    def micros(self) -> Column:
        return F.unix_micros(self.resolve(self.stream.time).cast("timestamp"))

    def good(self, micros: Column) -> Column:
        """Not a dead letter. NULL time compares as NULL, which `coalesce` turns into false."""
        timely = F.coalesce(micros <= moving(self.limit, micros), F.lit(False))
        return timely & self.resolve(CORRUPT).isNull() if CORRUPT in self.frame.columns else timely

    def dead_letters(self) -> DataFrame:
        """The bad rows with the reason for each."""
        micros = self.micros()
        reason = F.when(micros.isNull(), F.lit("no time")).otherwise(F.lit("time too far ahead"))
        if CORRUPT in self.frame.columns:
            reason = F.when(self.resolve(CORRUPT).isNotNull(), F.lit("unparsable")).otherwise(reason)
        return self.frame.where(~self.good(micros)).withColumn("reason", reason)


def partial_columns(rows: Rows, column: PartialColumn, good: Column) -> tuple[Column, ...]:
    """The Spark aggregates of one partial column, over the rows that satisfy its predicate."""
    where = compile_column(column.where, rows.resolve) if column.where is not None else None
    if isinstance(column.partial, Failures):
        return (F.count(F.when(good & failed(rows, column.args, where), F.lit(1))),)
    args = [compile_column(arg, rows.resolve).value for arg in column.args]
    if where is None:
        return column.partial.lift(F, *args)
    return column.partial.lift(F, *[F.when(where.value, arg) for arg in args or [F.lit(1)]])


def failed(rows: Rows, args: tuple[Expression, ...], where: Compiled | None) -> Column:
    """True for rows on which the predicate fails, or that satisfy it and on which an argument fails."""
    compiled = [compile_column(arg, rows.resolve) for arg in args]
    parts = [one.failed for one in compiled if one.failed is not None]
    anywhere = reduce(lambda a, b: a | b, parts) if parts else F.lit(False)
    if where is None:
        return anywhere
    inside = F.coalesce(where.value, F.lit(False)) & anywhere
    return inside if where.failed is None else where.failed | inside


def prefix(column: int) -> str:
    """How the names of a partial column's Spark columns begin."""
    return f"p{column}_"


def partial_frame(rows: Rows, grouping: Grouping, span: Interval | None) -> DataFrame:
    """The aggregation of one grouping: instant, group columns, rows, greatest time, then the partial columns."""
    micros = rows.micros()
    good = rows.good(micros)
    at = F.when(good, SliceKey(grouping.slice_manager(), span).column(micros)).alias(_AT)
    keys = [F.when(good, compile_column(key, rows.resolve).value).alias(f"k{number}") for number, key in enumerate(grouping.keys)]
    lifted = [
        lane.alias(f"{prefix(at)}{number}")
        for at, column in enumerate(grouping.columns)
        for number, lane in enumerate(partial_columns(rows, column, good))
    ]
    return rows.frame.groupBy(at, *keys).agg(
        F.count(F.lit(1)).alias(_ROWS),
        F.max(F.when(good, micros)).alias(_LAST),
        *lifted,
    )


def decoded(table: pa.Table, grouping: Grouping) -> tuple[Partials, BatchFacts]:
    """What Spark returned, as partials and facts."""
    counts = integers(table[_ROWS], null=0)
    bad = table[_AT].is_null().combine_chunks().to_numpy(zero_copy_only=False).astype(bool)
    last = integers(table[_LAST], null=BEGINNING)
    facts = BatchFacts(int(counts.sum()), int(last.max(initial=BEGINNING)), int(counts[bad].sum()))
    kept = table.filter(pa.array(~bad)) if bad.any() else table
    states = tuple(
        column.partial.decode(*(kept[name] for name in kept.column_names if name.startswith(prefix(at))))
        for at, column in enumerate(grouping.columns)
    )
    keys = tuple(kept[f"k{number}"].combine_chunks() for number in range(len(grouping.keys)))
    return Partials(integers(kept[_AT], null=0), keys, states), facts


def collect(rows: Rows, groupings: tuple[Grouping, ...], span: Interval | None) -> tuple[list[Partials], BatchFacts]:
    """Run the aggregations. With several groupings the batch is kept in memory between them, so that the source is read once."""
    if len(groupings) > 1:
        rows.frame.persist()
    try:
        found = [decoded(partial_frame(rows, grouping, span).toArrow(), grouping) for grouping in groupings]
    finally:
        if len(groupings) > 1:
            rows.frame.unpersist()
    return [partials for partials, _ in found], found[0][1]


def span_of(rows: Rows, groupings: tuple[Grouping, ...]) -> Interval | None:
    """The span of bounded rows, found by a pass of its own, and only where a ring needs it."""
    if not any(key_kind(grouping.slice_manager()) is KeyKind.RING for grouping in groupings):
        return None
    micros = rows.micros()
    good = F.when(rows.good(micros), micros)
    ends = rows.frame.agg(F.min(good), F.max(good)).toArrow()
    low, high = (column.to_pylist()[0] for column in ends.columns)
    return None if low is None else Interval(low, high + 1)
