"""Partials in the JVM: one Spark aggregation for all groupings that share columns. The papers' pane-level query.

In: the rows of a batch. Out: `Partials` per grouping, and what the batch says about itself: rows, greatest time, dead letters.
Convention: rows never reach Python. A row whose time is NULL, unparsable or too far ahead has no slice: it is counted, and written out
by a second, rare pass.
Several groupings are one aggregation, so that the source is read once and searched once: each row is taken once for each of them,
with its cell there. These are grouping sets with fewer and narrower keys: 0.56 s instead of 0.72 s for three. Columns are built once:
each costs round trips to the JVM.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache, reduce

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from muntin.aggregates.base import Array
from muntin.columnar import integers
from muntin.expression.tree import Expression
from muntin.plan.divide import Sharing
from muntin.plan.shared import Failures, Grouping, PartialColumn, SharedPlan
from muntin.query.model import StreamDefinition
from muntin.spark.buckets import Buckets
from muntin.spark.cells import CellSearch, Search
from muntin.spark.columns import Compiled
from muntin.spark.own_columns import application
from muntin.spark.rows import Rows, micros_of, row_column
from muntin.spark.slicekey import SliceKey
from muntin.timeline import BEGINNING, Interval
from muntin.windows.shards import Partials

_SET, _CELL, _AT = "_muntin_set", "_muntin_cell", "_muntin_at"
_ROWS, _LAST = "_muntin_rows", "_muntin_last"
#: The instant of rows that find no match in a table; dead letters have none.
UNMATCHED = -(2**63)


@dataclass(frozen=True)
class BatchFacts:
    """Rows read, the greatest time among the good ones, and how many were dead letters."""

    rows: int
    last: int
    dead: int


@dataclass(frozen=True)
class LastingColumns:
    """The Columns of a pass that are the same for every batch: cells, if a grouping has them, group columns, and aggregates."""

    searches: tuple[tuple[Search, ...] | None, ...]
    expressions: tuple[Expression, ...]
    columns: tuple[PartialColumn, ...]

    @cached_property
    def cells(self) -> CellSearch:
        return CellSearch(tuple(dict.fromkeys(one for searches in self.searches for one in searches or ())))

    @cached_property
    def keys(self) -> dict[str, Column]:
        return {f"_muntin_k{number}": row_column(key).value for number, key in enumerate(self.expressions)}

    @cached_property
    def coded_cells(self) -> list[Column]:
        """The cell of each grouping; all rows are in cell 0 of one that has none."""
        return [self.cells.cell(searches or ()) for searches in self.searches]

    @cached_property
    def split(self) -> list[Column]:
        """The group columns and cells of rows that are used; none where slices are all there is. Other rows fall into one shard."""
        used = F.col(at_name(0)) != F.lit(UNMATCHED)
        keys = [F.when(used, key).alias(name) for name, key in self.keys.items()]
        cells = [F.when(used, cell) for cell in self.coded_cells]
        if len(cells) > 1:
            return [*keys, F.posexplode(F.array(*cells)).alias(_SET, _CELL)]
        return keys if self.searches[0] is None else [*keys, cells[0].alias(_CELL)]

    @cached_property
    def aggregates(self) -> list[Column]:
        return [
            lane.alias(f"{prefix(at)}{number}")
            for at, column in enumerate(self.columns)
            for number, lane in enumerate(partial_columns(column))
        ]


@lru_cache(maxsize=64)
def lasting_columns(
    searches: tuple[tuple[Search, ...] | None, ...],
    expressions: tuple[Expression, ...],
    columns: tuple[PartialColumn, ...],
    _application: str,
) -> LastingColumns:
    """Kept: a plan whose queries changed often computes the same as the one before, and so does the next run of the same queries."""
    return LastingColumns(searches, expressions, columns)


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
        searches = tuple(tuple(map(Search.on, grouping.axes)) if grouping.by_cell else None for grouping in self.groupings)
        return lasting_columns(searches, self.expressions, self.groupings[0].columns, application())

    @cached_property
    def buckets(self) -> Buckets | None:
        return self.lasting.cells.buckets({Search.on(axis): axis for grouping in self.groupings for axis in grouping.axes})

    def frame(self, rows: Rows, span: Interval | None) -> DataFrame:
        """The set and the keys of each shard, what it says of the batch, then the partial columns."""
        micros = micros_of(self.stream)
        frame = self.lasting.cells.positions(rows.frame, self._instants(rows, micros, span), self.buckets)
        if self.lasting.split:
            frame = frame.select("*", *self.lasting.split)
        return frame.groupBy(*self._grouped_by).agg(*self._facts(rows, micros), *self.lasting.aggregates)

    def _instants(self, rows: Rows, micros: Column, span: Interval | None) -> dict[str, Column]:
        """For each way to find slices an instant inside the row's: the same for all rows without a match, none for dead letters."""
        good, found = rows.good(micros), [key.column(micros, span) for key in self.instants]
        if rows.matched is not None:
            found = [F.when(rows.matched, at).otherwise(F.lit(UNMATCHED)) for at in found]
        return {at_name(number): F.when(good, at) for number, at in enumerate(found)}

    @cached_property
    def instants(self) -> list[SliceKey]:
        """The ways to find a slice, each once."""
        return list({key.edges: key for key in self.slice_keys}.values())

    @cached_property
    def _grouped_by(self) -> list[Column]:
        """The set, its cell, its instant and its group columns; NULL for those that other sets have."""
        edges = [key.edges for key in self.instants]
        places = [edges.index(key.edges) for key in self.slice_keys]
        at = self._of_sets({at_name(place): [s for s, one in enumerate(places) if one == place] for place in set(places)})
        keys = [
            self._of_sets({name: [s for s, one in enumerate(self.groupings) if key in one.keys]}).alias(name)
            for name, key in zip(self.lasting.keys, self.expressions, strict=True)
        ]
        set_and_cell = [_SET, _CELL] if len(self.groupings) > 1 else [_CELL] if self.groupings[0].by_cell else []
        return [*map(F.col, set_and_cell), at.alias(_AT), *keys]

    def _of_sets(self, columns: Mapping[str, Sequence[int]]) -> Column:
        """For a row of each set the column that names the set."""
        (first, sets), *others = columns.items()
        if len(sets) == len(self.groupings):
            return F.col(first)
        found = F.when(F.col(_SET).isin(*sets), F.col(first))
        for name, sets in others:
            found = found.when(F.col(_SET).isin(*sets), F.col(name))
        return found

    @staticmethod
    def _facts(rows: Rows, micros: Column) -> list[Column]:
        one = F.lit(1) if rows.first is None else F.when(rows.first, F.lit(1))
        return [F.count(one).alias(_ROWS), F.max(F.when(is_good(), micros)).alias(_LAST)]

    def collected(self, rows: Rows, span: Interval | None) -> tuple[list[Partials], BatchFacts]:
        table = self.frame(rows, span).toArrow()
        parts = [table] if len(self.groupings) == 1 else split(table, integers(table[_SET], null=0), len(self.groupings))
        counts = integers(parts[0][_ROWS], null=0)
        dead = int(counts[parts[0][_AT].is_null().to_numpy()].sum())
        last = int(integers(parts[0][_LAST], null=BEGINNING).max(initial=BEGINNING))
        return [self.decoded(part, number) for number, part in enumerate(parts)], BatchFacts(int(counts.sum()), last, dead)

    def decoded(self, table: pa.Table, number: int) -> Partials:
        """What Spark returned for a grouping, as partials, without the rows that have no slice."""
        grouping = self.groupings[number]
        used = integers(table[_AT], null=UNMATCHED) != UNMATCHED
        table = table if used.all() else table.filter(pa.array(used))
        keys = [f"_muntin_k{self.expressions.index(key)}" for key in grouping.keys]
        states = tuple(
            column.partial.decode(*(table[name] for name in table.column_names if name.startswith(prefix(place))))
            for place, column in enumerate(grouping.columns)
        )
        names = [_CELL, *keys] if grouping.by_cell else keys
        return Partials(integers(table[_AT], null=0), tuple(table[name].combine_chunks() for name in names), states)


def split(table: pa.Table, sets: Array, number: int) -> list[pa.Table]:
    return [table.filter(pa.array(sets == one)) for one in range(number)]


def at_name(number: int) -> str:
    """The column of an instant inside the row's slice, found in one of the ways there are."""
    return f"_muntin_at{number}"


def is_good() -> Column:
    """Not a dead letter: whatever its slices are, the row has an instant."""
    return F.col(at_name(0)).isNotNull()


def prefix(column: int) -> str:
    """How the names of a partial column's Spark columns begin."""
    return f"_muntin_p{column}_"


def partial_columns(column: PartialColumn) -> tuple[Column, ...]:
    """The Spark aggregates of one partial column, over the rows that satisfy its predicate."""
    where = row_column(column.where) if column.where is not None else None
    if isinstance(column.partial, Failures):
        return (F.count(F.when(is_good() & failed(column.args, where), F.lit(1))),)
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
