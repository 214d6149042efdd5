"""Partials in the JVM: one Spark aggregation for all groupings that share columns. The papers' pane-level query.

In: the rows of a batch. Out: `Partials` per grouping, and what the batch says about itself: rows, greatest time, dead letters.
Convention: rows never reach Python. A row whose time is NULL, unparsable or too far ahead has no slice: it is counted, and written out
by a second, rare pass. Several groupings are the grouping sets of one aggregation, so that the source is read once and searched once.
Columns are built once: each costs round trips to the JVM.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache, reduce

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from muntin.columnar import integers
from muntin.expression.tree import Expression
from muntin.plan.divide import Sharing
from muntin.plan.fragments import Axis
from muntin.plan.shared import Failures, Grouping, PartialColumn, SharedPlan
from muntin.query.model import StreamDefinition
from muntin.spark.cells import CellSearch
from muntin.spark.columns import Compiled
from muntin.spark.own_columns import application
from muntin.spark.rows import Rows, micros_of, row_column
from muntin.spark.slicekey import SliceKey
from muntin.timeline import BEGINNING, Interval
from muntin.windows.shards import Partials

_GOOD, _SET = "_muntin_good", "_muntin_set"
_ROWS, _DEAD, _LAST = "_muntin_rows", "_muntin_dead", "_muntin_last"


@dataclass(frozen=True)
class BatchFacts:
    """Rows read, the greatest time among the good ones, and how many were dead letters."""

    rows: int
    last: int
    dead: int


@dataclass(frozen=True)
class LastingColumns:
    """The Columns of a pass that are the same for every batch: cells, if a grouping has them, group columns, and aggregates."""

    axes: tuple[tuple[Axis, ...] | None, ...]
    expressions: tuple[Expression, ...]
    columns: tuple[PartialColumn, ...]

    @cached_property
    def cells(self) -> CellSearch:
        return CellSearch(tuple(dict.fromkeys(axis for axes in self.axes for axis in axes or ())))

    @cached_property
    def keys(self) -> dict[str, Column]:
        cells = {f"_muntin_cell{number}": self.cells.cell(axes) for number, axes in enumerate(self.axes) if axes is not None}
        return cells | {f"_muntin_k{number}": row_column(key).value for number, key in enumerate(self.expressions)}

    @cached_property
    def aggregates(self) -> list[Column]:
        return [
            lane.alias(f"{prefix(at)}{number}")
            for at, column in enumerate(self.columns)
            for number, lane in enumerate(partial_columns(column))
        ]


@lru_cache(maxsize=64)
def lasting_columns(
    axes: tuple[tuple[Axis, ...] | None, ...],
    expressions: tuple[Expression, ...],
    columns: tuple[PartialColumn, ...],
    _application: str,
) -> LastingColumns:
    """Kept: a plan whose queries changed often computes the same as the one before, and so does the next run of the same queries."""
    return LastingColumns(axes, expressions, columns)


@dataclass(frozen=True)
class Pass:
    """One aggregation over the rows of a batch, ready for any batch. Its groupings have the same joins and the same columns."""

    stream: StreamDefinition
    groupings: tuple[Grouping, ...]

    @cached_property
    def slice_keys(self) -> list[SliceKey]:
        return [SliceKey(grouping.slice_manager(), grouped=bool(grouping.keys) or grouping.by_cell) for grouping in self.groupings]

    @cached_property
    def expressions(self) -> tuple[Expression, ...]:
        """Every group column that some grouping has."""
        return tuple(dict.fromkeys(key for grouping in self.groupings for key in grouping.keys))

    @cached_property
    def lasting(self) -> LastingColumns:
        axes = tuple(grouping.axes if grouping.by_cell else None for grouping in self.groupings)
        return lasting_columns(axes, self.expressions, self.groupings[0].columns, application())

    def frame(self, rows: Rows, span: Interval | None) -> DataFrame:
        """The set and the keys of each shard, what it says of the batch, then the partial columns."""
        micros = micros_of(self.stream)
        frame = self.lasting.cells.positions(rows.frame.withColumn(_GOOD, rows.good(micros)))
        frame = frame.withColumns(self._keys(micros, span, rows))
        aggregates = [*self._facts(rows, micros), *self.lasting.aggregates]
        if len(self.groupings) == 1:
            return frame.groupBy(*self.sets[0]).agg(*aggregates)
        return frame.groupingSets([[F.col(name) for name in names] for names in self.sets], *map(F.col, self.names)).agg(
            F.grouping_id().alias(_SET), *aggregates
        )

    @cached_property
    def sets(self) -> list[list[str]]:
        """For each grouping the names of the columns it groups by: the instant, the cell and the group columns."""
        return [
            [
                f"_muntin_at{number}",
                *([f"_muntin_cell{number}"] if grouping.by_cell else []),
                *(f"_muntin_k{self.expressions.index(key)}" for key in grouping.keys),
            ]
            for number, grouping in enumerate(self.groupings)
        ]

    @cached_property
    def names(self) -> list[str]:
        return list(dict.fromkeys(name for names in self.sets for name in names))

    def set_number(self, number: int) -> int:
        """What Spark calls a set: a bit for each column that is not in it, the last one least significant."""
        return sum(1 << at for at, name in enumerate(reversed(self.names)) if name not in self.sets[number])

    def _keys(self, micros: Column, span: Interval | None, rows: Rows) -> dict[str, Column]:
        """What groupings group by; NULL for rows without a slice, which must not make groups of their own."""
        used = F.col(_GOOD) & rows.matched
        instants = {f"_muntin_at{number}": key.column(micros, span) for number, key in enumerate(self.slice_keys)}
        return {name: F.when(used, key) for name, key in (instants | self.lasting.keys).items()}

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
        parts = [table] if len(self.groupings) == 1 else [self._of_set(table, number) for number in range(len(self.groupings))]
        last = int(integers(parts[0][_LAST], null=BEGINNING).max(initial=BEGINNING))
        facts = BatchFacts(int(integers(parts[0][_ROWS], null=0).sum()), last, int(integers(parts[0][_DEAD], null=0).sum()))
        return [self.decoded(part, number) for number, part in enumerate(parts)], facts

    def _of_set(self, table: pa.Table, number: int) -> pa.Table:
        return table.filter(pa.array(integers(table[_SET], null=0) == self.set_number(number)))

    def decoded(self, table: pa.Table, number: int) -> Partials:
        """What Spark returned for a grouping, as partials, without the rows that have no slice."""
        at, *names = self.sets[number]
        table = table if table[at].null_count == 0 else table.filter(table[at].is_valid())
        states = tuple(
            column.partial.decode(*(table[name] for name in table.column_names if name.startswith(prefix(place))))
            for place, column in enumerate(self.groupings[number].columns)
        )
        return Partials(integers(table[at], null=0), tuple(table[name].combine_chunks() for name in names), states)


def prefix(column: int) -> str:
    """How the names of a partial column's Spark columns begin."""
    return f"_muntin_p{column}_"


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
