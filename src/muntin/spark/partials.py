"""Partials in the JVM: one Spark aggregation for all groupings that share columns. The papers' pane-level query.

In: the rows of a batch. Out: `Partials` per grouping, and what the batch says about itself: rows, greatest time, dead letters.
Convention: rows never reach Python. A row whose time is NULL, unparsable or too far ahead has no slice: it is counted, and written out
by a second, rare pass. Several groupings are one aggregation over a few copies of each row, one for each grouping, so that the source
is read once and searched once. Columns are built once: each costs round trips to the JVM.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, reduce

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from muntin.columnar import integers
from muntin.expression.tree import Expression
from muntin.plan.divide import Sharing
from muntin.plan.shared import Failures, Grouping, PartialColumn, SharedPlan
from muntin.query.model import StreamDefinition
from muntin.spark.cells import CellSearch
from muntin.spark.columns import Compiled, spark_type
from muntin.spark.rows import Rows, micros_of, row_column
from muntin.spark.slicekey import SliceKey
from muntin.timeline import BEGINNING, Interval
from muntin.windows.shards import Partials

_AT, _COPY, _GOOD, _KEYS = "_muntin_at", "_muntin_copy", "_muntin_good", "_muntin_keys"
_ROWS, _DEAD, _LAST = "_muntin_rows", "_muntin_dead", "_muntin_last"


@dataclass(frozen=True)
class BatchFacts:
    """Rows read, the greatest time among the good ones, and how many were dead letters."""

    rows: int
    last: int
    dead: int


@dataclass(frozen=True)
class Pass:
    """One aggregation over the rows of a batch, ready for any batch. Its groupings have the same joins and the same columns."""

    stream: StreamDefinition
    groupings: tuple[Grouping, ...]

    @cached_property
    def slice_keys(self) -> list[SliceKey]:
        return [SliceKey(grouping.slice_manager(), grouped=bool(grouping.keys) or grouping.by_cell) for grouping in self.groupings]

    @cached_property
    def cells(self) -> CellSearch:
        return CellSearch(tuple(dict.fromkeys(axis for grouping in self.groupings for axis in grouping.axes)))

    @cached_property
    def expressions(self) -> tuple[Expression, ...]:
        """Every group column that some grouping has."""
        return tuple(dict.fromkeys(key for grouping in self.groupings for key in grouping.keys))

    @property
    def by_cell(self) -> bool:
        return any(grouping.by_cell for grouping in self.groupings)

    @cached_property
    def aggregates(self) -> list[Column]:
        return [
            lane.alias(f"{prefix(at)}{number}")
            for at, column in enumerate(self.groupings[0].columns)
            for number, lane in enumerate(partial_columns(column))
        ]

    def frame(self, rows: Rows, span: Interval | None) -> DataFrame:
        """The copy, the instant and the keys of each shard, what it says of the batch, then the partial columns."""
        micros = micros_of(self.stream)
        frame = self.cells.positions(rows.frame.withColumn(_GOOD, rows.good(micros)))
        copies = [self._copy(number, micros, span, rows) for number in range(len(self.groupings))]
        keys = F.explode(F.array(*copies)) if len(copies) > 1 else copies[0]
        names = [_COPY, _AT, *(["cell"] if self.by_cell else []), *(f"k{at}" for at in range(len(self.expressions)))]
        grouped = frame.withColumn(_KEYS, keys).groupBy(*(F.col(f"{_KEYS}.{name}").alias(name) for name in names))
        return grouped.agg(*self._facts(rows, micros), *self.aggregates)

    def _copy(self, number: int, micros: Column, span: Interval | None, rows: Rows) -> Column:
        """What one grouping groups a row by; NULL for rows without a slice, which must not make groups of their own."""
        grouping, used = self.groupings[number], F.col(_GOOD) & rows.matched
        parts = {_COPY: F.lit(number), _AT: F.when(used, self.slice_keys[number].column(micros, span))}
        if self.by_cell:
            parts["cell"] = F.when(used, self.cells.cell(grouping.axes)) if grouping.by_cell else F.lit(None).cast("bigint")
        for at, key in enumerate(self.expressions):
            value = row_column(key).value if key in grouping.keys else F.lit(None)
            parts[f"k{at}"] = F.when(used, value).cast(spark_type(key.type))
        return F.struct(*(part.alias(name) for name, part in parts.items()))

    @staticmethod
    def _facts(rows: Rows, micros: Column) -> list[Column]:
        good = F.col(_GOOD)
        return [
            F.count(F.when(rows.first, F.lit(1))).alias(_ROWS),
            F.count(F.when(rows.first & ~good, F.lit(1))).alias(_DEAD),
            F.max(F.when(good, micros)).alias(_LAST),
        ]

    def collected(self, rows: Rows, span: Interval | None) -> tuple[list[Partials], BatchFacts]:
        table = self.frame(rows, span).toArrow()
        copy = integers(table[_COPY], null=0)
        first = table.filter(pa.array(copy == 0)) if len(self.groupings) > 1 else table
        last = int(integers(first[_LAST], null=BEGINNING).max(initial=BEGINNING))
        facts = BatchFacts(int(integers(first[_ROWS], null=0).sum()), last, int(integers(first[_DEAD], null=0).sum()))
        sliced = np.asarray(table[_AT].is_valid().combine_chunks().to_numpy(zero_copy_only=False), dtype=bool)
        kept = [table.filter(pa.array(sliced & (copy == number))) for number in range(len(self.groupings))]
        return [self.decoded(part, grouping) for part, grouping in zip(kept, self.groupings, strict=True)], facts

    def decoded(self, table: pa.Table, grouping: Grouping) -> Partials:
        """What Spark returned, as partials."""
        states = tuple(
            column.partial.decode(*(table[name] for name in table.column_names if name.startswith(prefix(at))))
            for at, column in enumerate(grouping.columns)
        )
        names = [*(["cell"] if grouping.by_cell else []), *(f"k{self.expressions.index(key)}" for key in grouping.keys)]
        return Partials(integers(table[_AT], null=0), tuple(table[name].combine_chunks() for name in names), states)


def prefix(column: int) -> str:
    """How the names of a partial column's Spark columns begin."""
    return f"p{column}_"


def partial_columns(column: PartialColumn) -> tuple[Column, ...]:
    """The Spark aggregates of one partial column, over the rows that satisfy its predicate."""
    where = row_column(column.where) if column.where is not None else None
    if isinstance(column.partial, Failures):
        return (F.count(F.when(F.col(_GOOD) & failed(column.args, where), F.lit(1))),)
    args = [row_column(arg).value for arg in column.args]
    if where is None:
        return column.partial.lift(F, *args)
    return column.partial.lift(F, *[F.when(where.value, arg) for arg in args or [F.lit(1)]])


def failed(args: Sequence[Expression], where: Compiled | None) -> Column:
    """True for rows on which the predicate fails, or that satisfy it and on which an argument fails."""
    parts = [one for arg in args if (one := row_column(arg).failed) is not None]
    anywhere = reduce(lambda a, b: a | b, parts) if parts else F.lit(False)
    if where is None:
        return anywhere
    inside = F.coalesce(where.value, F.lit(False)) & anywhere
    return inside if where.failed is None else where.failed | inside


def passes(stream: StreamDefinition, plan: SharedPlan) -> list[Pass]:
    """Groupings that are one aggregation together: those with the same joins and columns, unless nothing is to be shared."""
    together: dict[object, list[Grouping]] = {}
    for at, grouping in enumerate(plan.groupings):
        alone = at if plan.sharing is Sharing.UNSHARED else None
        together.setdefault((grouping.family.joins, grouping.columns, alone), []).append(grouping)
    return [Pass(stream, tuple(members)) for members in together.values()]
