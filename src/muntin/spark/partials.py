"""Partials in the JVM: one Spark aggregation for all groupings that share columns. The papers' pane-level query.

In: the rows of a batch. Out: `Partials` per grouping, and what the batch says about itself (`facts`).
Convention: rows never reach Python. A row whose time is NULL, unparsable or too far ahead has no slice: it is counted, and written out
by a second, rare pass. So is one that has no value on the attribute of a pass.
Several groupings are one aggregation, so that the source is read once and searched once: each row is taken once for each of them,
with its cell there. These are grouping sets with fewer and narrower keys: 0.56 s instead of 0.72 s for three. Columns are built once:
each costs round trips to the JVM.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache, reduce
from typing import Any

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from muntin.aggregates.base import Array
from muntin.columnar import integers
from muntin.disorder import Key, Seen
from muntin.expression.tree import Expression
from muntin.plan.shared import Failures, Grouping, PartialColumn
from muntin.query.model import StreamDefinition
from muntin.semantics import Attribute
from muntin.spark.buckets import Buckets
from muntin.spark.cells import CellSearch, Search
from muntin.spark.columns import Compiled
from muntin.spark.facts import BatchFacts
from muntin.spark.own_columns import application
from muntin.spark.rows import Rows, micros_of, row_column
from muntin.spark.slicekey import SliceKey
from muntin.timeline import BEGINNING, END, Interval
from muntin.windows.shards import Partials

_SET, _CELL, AT = "_muntin_set", "_muntin_cell", "_muntin_at"
_ROWS, _LEAST, _LAST = "_muntin_rows", "_muntin_least", "_muntin_last"
_LEAST_TIME, _LAST_TIME = "_muntin_least_time", "_muntin_last_time"
#: The instants of good rows that have no slice: no match in a table, no value on the attribute, no tuple. Dead letters have none.
UNMATCHED, MISSING, MARKER = -(2**63), -(2**63) + 1, -(2**63) + 2


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
        used = is_used()
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
    """One aggregation over the rows of a batch, ready for any batch. Its groupings have the same joins, attribute and columns."""

    stream: StreamDefinition
    groupings: tuple[Grouping, ...]

    @property
    def over(self) -> Attribute:
        return self.groupings[0].family.over

    @property
    def over_time(self) -> bool:
        """Whether windows are over the stream's time, which every good row has."""
        return self.over.name == self.stream.time

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
        tick = rows.tick(self.over)
        frame = self.lasting.cells.positions(rows.frame, self._instants(rows, tick, span), self.buckets)
        if self.lasting.split:
            frame = frame.select("*", *self.lasting.split)
        return frame.groupBy(*self._grouped_by).agg(*self._facts(rows, tick), *self.lasting.aggregates)

    def _instants(self, rows: Rows, tick: Column, span: Interval | None) -> dict[str, Column]:
        """For each way to find slices an instant inside the row's: one for all rows that have none for a reason, NULL for dead letters."""
        found = [key.column(tick, span) for key in self.instants]
        if rows.matched is not None:
            found = [F.when(rows.matched, at).otherwise(F.lit(UNMATCHED)) for at in found]
        if not self.over_time:
            found = [F.when(tick.isNotNull(), at).otherwise(F.lit(MISSING)) for at in found]
        if rows.marker is not None:
            found = [F.when(rows.marker, F.lit(MARKER)).otherwise(at) for at in found]
        return {at_name(number): F.when(rows.good, at) for number, at in enumerate(found)}

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
        return [*map(F.col, set_and_cell), at.alias(AT), *keys]

    def _of_sets(self, columns: Mapping[str, Sequence[int]]) -> Column:
        """For a row of each set the column that names the set."""
        (first, sets), *others = columns.items()
        if len(sets) == len(self.groupings):
            return F.col(first)
        found = F.when(F.col(_SET).isin(*sets), F.col(first))
        for name, sets in others:
            found = found.when(F.col(_SET).isin(*sets), F.col(name))
        return found

    def _facts(self, rows: Rows, tick: Column) -> list[Column]:
        one = F.lit(1) if rows.first is None else F.when(rows.first, F.lit(1))
        placed = F.when(is_good() if self.over_time and rows.marker is None else is_placed(), tick)
        facts = [F.count(one).alias(_ROWS), F.min(placed).alias(_LEAST), F.max(placed).alias(_LAST)]
        if self.over_time:
            return facts
        time = F.when(rows.tuples, micros_of(self.stream))
        return [*facts, F.min(time).alias(_LEAST_TIME), F.max(time).alias(_LAST_TIME)]

    def collected(self, rows: Rows, span: Interval | None) -> tuple[list[Partials], BatchFacts]:
        table = self.frame(rows, span).toArrow()
        parts = [table] if len(self.groupings) == 1 else split(table, integers(table[_SET], null=0), len(self.groupings))
        return [self.decoded(part, number) for number, part in enumerate(parts)], self._facts_in(parts[0])

    def _facts_in(self, table: pa.Table) -> BatchFacts:
        counts, at = integers(table[_ROWS], null=0), integers(table[AT], null=0)
        gone = table[AT].is_null().to_numpy()
        dead, missing, markers = (int(counts[of].sum()) for of in (gone, ~gone & (at == MISSING), ~gone & (at == MARKER)))
        tuples = int(counts.sum()) - dead - markers
        seen: dict[str, dict[Key, Seen]] = {self.over.name: {(): seen_in(table, _LEAST, _LAST, tuples - missing)}}
        if not self.over_time:
            seen[self.stream.time] = {(): seen_in(table, _LEAST_TIME, _LAST_TIME, tuples)}
        return BatchFacts(int(counts.sum()), dead, markers, seen, {self.over.name: missing} if missing else {})

    def decoded(self, table: pa.Table, number: int) -> Partials:
        """What Spark returned for a grouping, as partials, without the rows that have no slice."""
        grouping = self.groupings[number]
        table = table.filter(pa.array(integers(table[AT], null=UNMATCHED) > MARKER))
        keys = [f"_muntin_k{self.expressions.index(key)}" for key in grouping.keys]
        states = tuple(
            column.partial.decode(*(table[name] for name in table.column_names if name.startswith(prefix(place))))
            for place, column in enumerate(grouping.columns)
        )
        names = [_CELL, *keys] if grouping.by_cell else keys
        return Partials(integers(table[AT], null=0), tuple(table[name].combine_chunks() for name in names), states)


def seen_in(table: pa.Table, least: str, greatest: str, rows: int) -> Seen:
    low, high = integers(table[least], null=END), integers(table[greatest], null=BEGINNING)
    return Seen(rows, int(low.min(initial=END)), int(high.max(initial=BEGINNING)))


def split(table: pa.Table, sets: Array, number: int) -> list[pa.Table]:
    return [table.filter(pa.array(sets == one)) for one in range(number)]


def at_name(number: int) -> str:
    """The column of an instant inside the row's slice, found in one of the ways there are."""
    return f"_muntin_at{number}"


def is_good() -> Column:
    """Not a dead letter: whatever its slices are, the row has an instant."""
    return F.col(at_name(0)).isNotNull()


def is_placed() -> Column:
    """A tuple that has a place on the attribute, whether it found a match or not."""
    return ~F.col(at_name(0)).isin(MISSING, MARKER)


def is_used() -> Column:
    """It has a slice."""
    return F.col(at_name(0)) > F.lit(MARKER)


def prefix(column: int) -> str:
    """How the names of a partial column's Spark columns begin."""
    return f"_muntin_p{column}_"


def partial_columns(column: PartialColumn, functions: Any = F) -> tuple[Column, ...]:
    """The Spark aggregates of one partial column, over the rows that satisfy its predicate."""
    where = row_column(column.where) if column.where is not None else None
    if isinstance(column.partial, Failures):
        return (functions.count(F.when(is_good() & failed(column.args, where), F.lit(1))),)
    args = [row_column(arg).value for arg in column.args]
    if where is None:
        return column.partial.lift(functions, *args)
    return column.partial.lift(functions, *[F.when(where.value, arg) for arg in args or [F.lit(1)]])


def failed(args: Sequence[Expression], where: Compiled | None) -> Column:
    """True for rows on which the predicate fails, or that satisfy it and on which an argument fails."""
    parts = [one for arg in args if (one := row_column(arg).failed) is not None]
    anywhere = reduce(lambda a, b: a | b, parts) if parts else F.lit(False)
    if where is None:
        return anywhere
    inside = F.coalesce(where.value, F.lit(False)) & anywhere
    return inside if where.failed is None else where.failed | inside
