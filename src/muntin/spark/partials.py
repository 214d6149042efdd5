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
from functools import cached_property

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from muntin.aggregates.sums import FIRST, MATCHED
from muntin.expression.tree import Expression
from muntin.plan.family import BUCKETS
from muntin.plan.fragments import Axis
from muntin.plan.shared import Grouping
from muntin.plan.signatures import fragments
from muntin.query.model import StreamDefinition
from muntin.semantics import Attribute
from muntin.spark.arrays import constant_array
from muntin.spark.cells import Search
from muntin.spark.decoding import (
    AT,
    BUCKET,
    CELL,
    LAST,
    LAST_TIME,
    LEAST,
    LEAST_TIME,
    MARKER,
    MISSING,
    ROWS,
    SET,
    UNMATCHED,
    Decoding,
)
from muntin.spark.facts import BatchFacts
from muntin.spark.habits import Habits
from muntin.spark.lasting import LastingColumns, fragments_name, lasting_columns
from muntin.spark.lifting import at_name, is_good, is_placed
from muntin.spark.own_columns import application
from muntin.spark.rows import Rows, micros_of
from muntin.spark.slicekey import KeyKind, SliceKey
from muntin.timeline import Interval
from muntin.windows.shards import Partials


@dataclass(frozen=True)
class Pass:
    """One aggregation over the rows of a batch, ready for any batch. Its groupings have the same joins, attribute and columns.

    `merging`: cells of one fragment are one shard. It pays where shards are many. `held` are habits of the plan before,
    kept where they fit.
    """

    stream: StreamDefinition
    groupings: tuple[Grouping, ...]
    merging: bool = False
    held: Habits | None = None

    @property
    def over(self) -> Attribute:
        return self.groupings[0].family.over

    @property
    def over_time(self) -> bool:
        """Whether windows are over the stream's time, which every good row has."""
        return self.over.name == self.stream.time

    @cached_property
    def slice_keys(self) -> list[SliceKey]:
        held = [self.held.ticks_of(one.family) if self.held else None for one in self.groupings]
        grouped = [bool(one.keys) or one.by_cell for one in self.groupings]
        managers = [one.slice_manager() for one in self.groupings]
        return list(map(SliceKey, managers, grouped, held))

    @cached_property
    def decoding(self) -> Decoding:
        return Decoding(self.groupings, self.expressions, self.stream.time)

    @cached_property
    def expressions(self) -> tuple[Expression, ...]:
        """Every group column that some grouping has."""
        return tuple(dict.fromkeys(key for grouping in self.groupings for key in grouping.keys))

    def _search(self, axis: Axis) -> Search:
        return Search.on(axis, self.held.grids.get(axis.expression) if self.held else None)

    @cached_property
    def habits(self) -> Habits:
        grids = {one.expression: one.grid for one in self.lasting.cells.searches if one.grid}
        ticked = [(one, key) for one, key in zip(self.groupings, self.slice_keys, strict=True) if key.grouped and key.kind is KeyKind.TICK]
        return Habits(grids, frozenset((one.family, key.slices.tick) for one, key in ticked))

    @cached_property
    def lasting(self) -> LastingColumns:
        searches = tuple(tuple(map(self._search, grouping.axes)) if grouping.by_cell else None for grouping in self.groupings)
        merged = tuple(number in self.fragments for number in range(len(self.groupings)))
        return lasting_columns(searches, merged, self.expressions, self.groupings[0].columns, application())

    @cached_property
    def tables(self) -> dict[str, Column]:
        """What changes with the constants of predicates."""
        searched = self.lasting.cells.tables({self._search(axis): axis for grouping in self.groupings for axis in grouping.axes})
        return searched | {fragments_name(number): constant_array(cells, "bigint") for number, cells in self.fragments.items()}

    @cached_property
    def fragments(self) -> dict[int, list[int]]:
        """For each grouping whose cells are merged, the cell that stands for each."""
        found: dict[int, list[int]] = {}
        for number, grouping in enumerate(self.groupings if self.merging else ()):
            cells = fragments(grouping.axes, tuple(dict.fromkeys(query.where for query in grouping.queries))) if grouping.axes else None
            if cells is not None:
                found[number] = cells.tolist()
        return found

    def frame(self, rows: Rows, span: Interval | None) -> DataFrame:
        """The set and the keys of each shard, what it says of the batch, then the partial columns."""
        tick = rows.tick(self.over)
        frame = self.lasting.cells.positions(self._joined(rows), self._instants(rows, tick, span), self.tables)
        if self.fragments:
            frame = frame.withColumns(self.lasting.unmerged)
        if self.lasting.split:
            frame = frame.select("*", *self.lasting.split)
        frame = frame.groupBy(*self._grouped_by).agg(*self._facts(rows, tick), *self.lasting.aggregates)
        return frame.withColumn(BUCKET, self._bucket) if any(one.family.spread for one in self.groupings) else frame

    @cached_property
    def _bucket(self) -> Column:
        """The bucket of a shard's group, for the sets whose groups are spread over instances."""
        found = F.lit(None).cast("int")
        for number, grouping in enumerate(self.groupings):
            if grouping.family.spread:
                bucket = bucket_of([F.col(name) for name in self.decoding.key_names(grouping)])
                found = F.when(F.col(SET) == F.lit(number), bucket).otherwise(found) if len(self.groupings) > 1 else bucket
        return found

    def _joined(self, rows: Rows) -> DataFrame:
        """The rows. Where windows end at tuples, a tuple without a match still ends one: then what joins made of a row is for columns
        to ask.
        """
        if rows.matched is None or not self.by_tuple:
            return rows.frame
        return rows.frame.withColumns({MATCHED: rows.matched, FIRST: F.lit(True) if rows.first is None else rows.first})

    @property
    def by_tuple(self) -> bool:
        return self.groupings[0].by_tuple

    def _instants(self, rows: Rows, tick: Column, span: Interval | None) -> dict[str, Column]:
        """For each way to find slices an instant inside the row's: one for all rows that have none for a reason, NULL for dead letters."""
        found = [key.column(tick, span) for key in self.instants]
        if rows.matched is not None and not self.by_tuple:
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
        set_and_cell = [SET, CELL] if len(self.groupings) > 1 else [CELL] if self.groupings[0].by_cell else []
        return [*map(F.col, set_and_cell), at.alias(AT), *keys]

    def _of_sets(self, columns: Mapping[str, Sequence[int]]) -> Column:
        """For a row of each set the column that names the set."""
        (first, sets), *others = columns.items()
        if len(sets) == len(self.groupings):
            return F.col(first)
        found = F.when(F.col(SET).isin(*sets), F.col(first))
        for name, sets in others:
            found = found.when(F.col(SET).isin(*sets), F.col(name))
        return found

    def _facts(self, rows: Rows, tick: Column) -> list[Column]:
        one = F.lit(1) if rows.first is None else F.when(rows.first, F.lit(1))
        placed = F.when(is_good() if self.over_time and rows.marker is None else is_placed(), tick)
        facts = [F.count(one).alias(ROWS), F.min(placed).alias(LEAST), F.max(placed).alias(LAST)]
        if self.over_time:
            return facts
        time = F.when(rows.tuples, micros_of(self.stream))
        return [*facts, F.min(time).alias(LEAST_TIME), F.max(time).alias(LAST_TIME)]

    def collected(self, rows: Rows, span: Interval | None) -> tuple[list[Partials], BatchFacts]:
        parts = self.decoding.sets(self.frame(rows, span).toArrow())
        return [self.decoding.partials(part, number) for number, part in enumerate(parts)], self.decoding.facts(parts[0])


def bucket_of(keys: Sequence[Column]) -> Column:
    """Spark's own hash of the values that it groups by: NaN and both zeros are one value each."""
    return F.pmod(F.xxhash64(*keys), F.lit(BUCKETS)).cast("int")
