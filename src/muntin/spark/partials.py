"""Partials in the JVM: one Spark aggregation per grouping and micro-batch. The papers' pane-level query.

In: the rows of a batch. Out: `Partials` per grouping, and what the batch says about itself: rows, greatest time, dead letters.
Convention: rows never reach Python; a row whose time is NULL, unparsable or too far ahead falls into the slice NULL, where it is
counted, and is written out by a second, rare pass. Columns are built once: each costs round trips to the JVM.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, reduce

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from muntin.columnar import integers
from muntin.expression.tree import Expression
from muntin.plan.shared import Failures, Grouping, PartialColumn
from muntin.query.model import StreamDefinition
from muntin.spark.cells import CellSearch
from muntin.spark.columns import Compiled, compile_column
from muntin.spark.rows import Rows, micros_of, resolve
from muntin.spark.slicekey import KeyKind, SliceKey
from muntin.timeline import BEGINNING, Interval
from muntin.windows.store import Partials

_AT, _ROWS, _LAST = "_muntin_at", "_muntin_rows", "_muntin_last"


@dataclass(frozen=True)
class BatchFacts:
    """Rows read, the greatest time among the good ones, and how many were dead letters."""

    rows: int
    last: int
    dead: int


@dataclass(frozen=True)
class PartialAggregation:
    """The aggregation of one grouping, ready for any batch."""

    stream: StreamDefinition
    grouping: Grouping

    @cached_property
    def key(self) -> SliceKey:
        return SliceKey(self.grouping.slice_manager(), grouped=bool(self.grouping.keys))

    @cached_property
    def cells(self) -> CellSearch:
        return CellSearch(self.grouping.axes)

    @cached_property
    def keys(self) -> list[Column]:
        """The cell, where there are axes, and the group columns; NULL for dead letters, which must not make groups of their own."""
        keys = [self.cells.cell(self.grouping.axes)] if self.grouping.axes else []
        keys += [compile_column(key, resolve).value for key in self.grouping.keys]
        return [F.when(good(), key).alias(f"k{number}") for number, key in enumerate(keys)]

    @cached_property
    def aggregates(self) -> list[Column]:
        last = F.max(F.when(good(), micros_of(self.stream)))
        lifted = [
            lane.alias(f"{prefix(at)}{number}")
            for at, column in enumerate(self.grouping.columns)
            for number, lane in enumerate(partial_columns(column))
        ]
        return [F.count(F.lit(1)).alias(_ROWS), last.alias(_LAST), *lifted]

    def frame(self, rows: Rows, span: Interval | None) -> DataFrame:
        """Instant, group columns, rows, greatest time, then the partial columns."""
        micros = micros_of(self.stream)
        at = F.when(rows.good(micros), self.key.column(micros, span))
        frame = rows.frame.withColumn(_AT, at)
        return (self.cells.positions(frame) if self.grouping.axes else frame).groupBy(F.col(_AT), *self.keys).agg(*self.aggregates)

    def collected(self, rows: Rows, span: Interval | None) -> tuple[Partials, BatchFacts]:
        table = self.frame(rows, span).toArrow()
        counts = integers(table[_ROWS], null=0)
        bad = table[_AT].is_null().combine_chunks().to_numpy(zero_copy_only=False).astype(bool)
        last = int(integers(table[_LAST], null=BEGINNING).max(initial=BEGINNING))
        kept = table.filter(pa.array(~bad)) if bad.any() else table
        return self.decoded(kept), BatchFacts(int(counts.sum()), last, int(counts[bad].sum()))

    def decoded(self, table: pa.Table) -> Partials:
        """What Spark returned, as partials."""
        states = tuple(
            column.partial.decode(*(table[name] for name in table.column_names if name.startswith(prefix(at))))
            for at, column in enumerate(self.grouping.columns)
        )
        keys = tuple(table[f"k{number}"].combine_chunks() for number in range(len(self.keys)))
        return Partials(integers(table[_AT], null=0), keys, states)


def good() -> Column:
    """The row has a slice: it is not a dead letter."""
    return F.col(_AT).isNotNull()


def prefix(column: int) -> str:
    """How the names of a partial column's Spark columns begin."""
    return f"p{column}_"


def partial_columns(column: PartialColumn) -> tuple[Column, ...]:
    """The Spark aggregates of one partial column, over the rows that satisfy its predicate."""
    where = compile_column(column.where, resolve) if column.where is not None else None
    if isinstance(column.partial, Failures):
        return (F.count(F.when(good() & failed(column.args, where), F.lit(1))),)
    args = [compile_column(arg, resolve).value for arg in column.args]
    if where is None:
        return column.partial.lift(F, *args)
    return column.partial.lift(F, *[F.when(where.value, arg) for arg in args or [F.lit(1)]])


def failed(args: Sequence[Expression], where: Compiled | None) -> Column:
    """True for rows on which the predicate fails, or that satisfy it and on which an argument fails."""
    parts = [one for arg in args if (one := compile_column(arg, resolve).failed) is not None]
    anywhere = reduce(lambda a, b: a | b, parts) if parts else F.lit(False)
    if where is None:
        return anywhere
    inside = F.coalesce(where.value, F.lit(False)) & anywhere
    return inside if where.failed is None else where.failed | inside


def collect(aggregations: Sequence[PartialAggregation], rows: Rows, span: Interval | None) -> tuple[list[Partials], BatchFacts]:
    """Run the aggregations. With several of them the batch is kept in memory in between, so that the source is read once."""
    if len(aggregations) > 1:
        rows.frame.persist()
    try:
        found = [aggregation.collected(rows, span) for aggregation in aggregations]
    finally:
        if len(aggregations) > 1:
            rows.frame.unpersist()
    return [partials for partials, _ in found], found[0][1]


def span_of(rows: Rows, aggregations: Sequence[PartialAggregation]) -> Interval | None:
    """The span of bounded rows, found by a pass of its own, and only where a ring needs it."""
    if not any(aggregation.key.kind is KeyKind.RING for aggregation in aggregations):
        return None
    micros = micros_of(rows.stream)
    timed = F.when(rows.good(micros), micros)
    ends = rows.frame.agg(F.min(timed), F.max(timed)).toArrow()
    low, high = (column.to_pylist()[0] for column in ends.columns)
    return None if low is None else Interval(low, high + 1)
