"""Windows over rows counted by partition, for one family: its groups, its partitions, and the windows of each of its queries.

In: states folded by slice, predicate and group; how many rows of each partition came. Out: `ResultChunk`s.
Convention: a group is a series, and belongs to the partition that its PATTR columns name. A query takes part in windows of a partition that
start after every row of it that came before the query did. Nothing is ever late: a row is numbered when it comes.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from muntin.aggregates.base import Array
from muntin.columnar import arrow_type, integers
from muntin.expression.tree import Column
from muntin.plan.family import Family
from muntin.plan.shared import QueryPlan
from muntin.plan.slices import SliceManager, Slicing
from muntin.timeline import BEGINNING
from muntin.windows.bypartition import PartitionWindows
from muntin.windows.groups import GroupIndex
from muntin.windows.landmarks import window_set
from muntin.windows.life import QueryLife
from muntin.windows.lowering import ResultChunk
from muntin.windows.seriesresults import SeriesResults
from muntin.windows.shards import Partials, key_types
from muntin.windows.snapshots import Holding
from muntin.windows.store import Folded
from muntin.windows.substreams import Closed, Substreams
from muntin.windows.tuplerows import TupleRows

#: What a row of a holding is: a slice in hand, or the id of the first window of a partition that the query takes part in.
HELD, FIRST = range(2)


class CountedFamily:
    """The groups of a family and the partitions they belong to. `reached` is how many rows of each partition came."""

    def __init__(self, family: Family) -> None:
        self.family = family
        self.groups = GroupIndex(key_types(family))
        names = {key.name: at for at, key in enumerate(family.keys) if isinstance(key, Column)}
        self.of_partition = [names[name] for name in family.over.pattr]
        self.keys = [family.keys[at] for at in self.of_partition]
        self.partitions = GroupIndex(tuple(arrow_type(key.type) for key in self.keys))
        self.partition = np.empty(0, dtype=np.int64)  #: of each group
        self.reached = np.empty(0, dtype=np.int64)

    def know_groups(self) -> None:
        """Groups that came into the index since the last time have partitions too."""
        new = len(self.groups) - len(self.partition)
        if new:
            columns = [self.groups.columns()[at].slice(len(self.partition)) for at in self.of_partition]
            self.partition = np.concatenate([self.partition, self.partitions.numbers(columns, new)])

    def know_partitions(self, counts: Substreams) -> None:
        """Every partition of which rows came, whether or not a query had use for them."""
        values = zip(*counts.of, strict=True) if counts.of else ()
        columns = [pa.array(column, type=type) for column, type in zip(values, self.partitions.types, strict=False)]
        self.partitions.numbers(columns, len(counts.of))

    def counted(self, counts: Substreams, overall: int) -> Array:
        return counts.by_group(self.keys, self.partitions, overall)

    def step(self, counts: Substreams, overall: int) -> tuple[Closed, Array]:
        """How far partitions were and are, and the number of the last row of each."""
        before = np.full(len(self.partitions), BEGINNING)
        before[: len(self.reached)] = self.reached
        self.reached = self.counted(counts, overall)
        return Closed(before, self.reached), self.counted(counts, BEGINNING) - 1


class CountedQuery:
    """The windows of one query. It is told of every group of its family, whether or not it has rows of it."""

    def __init__(self, plan: QueryPlan, home: CountedFamily, slicing: Slicing, counts: Substreams) -> None:
        self.plan, self.home = plan, home
        self.slices = SliceManager([plan.query.sliding], slicing)
        columns, telling = plan.columns, 1 if plan.failures is None else 2  # rows, then failures
        lanes = [column.partial.lanes(*(arg.type for arg in column.args)) for column in columns]
        self.windows = PartitionWindows(plan.query.window, [column.partial for column in columns], lanes, telling=telling)
        self._select = SeriesResults(plan, home.groups)
        home.know_partitions(counts)
        before = home.counted(counts, BEGINNING)
        self.windows.know_partitions(len(before), since=np.where(before > 0, before, BEGINNING))

    def absorb(self, folded: Folded, predicate: int) -> None:
        """Take its part of a batch; slices that only others cut are its own slices together."""
        self._know_groups()
        mine = folded.rows(np.nonzero(folded.predicate == predicate)[0])
        starts = self.slices.slice_starts(mine.starts)
        states = tuple(mine.states[column] for column in self.plan.columns)
        rows = TupleRows(mine.group, starts[mine.slice], np.zeros(len(mine), dtype=np.int64), states)
        self.windows.absorb(rows, np.full(len(self.home.partitions), BEGINNING))

    def _know_groups(self) -> None:
        self.home.know_groups()
        self.windows.add_series(self.home.partition[len(self.windows.partition) :])

    def close(self, closed: Closed, latest: Array, life: QueryLife) -> Iterator[ResultChunk]:
        self._know_groups()
        self.windows.know_partitions(len(closed.now), since=BEGINNING)
        for ends in self.windows.close(closed, latest):
            ids = np.asarray((ends.ticks - self.plan.query.sliding.first_end) // self.plan.query.sliding.slide)
            start, end = window_set([self.plan.query.sliding]).bounds(np.zeros(len(ids), dtype=np.int64), ids)
            yield self._select.of(ends, start, end, life)

    # -- snapshots --------------------------------------------------------------------------------------------------------------

    def holding(self) -> Holding:
        """The slices in hand by group, and the first windows by partition, whose other group columns are NULL."""
        held, first = self.windows.held, self.windows.first_ids
        begun = np.nonzero(first > BEGINNING)[0]
        kinds = np.repeat([HELD, FIRST], [len(held), len(begun)])
        groups = [self._column(at, held.series, begun) for at in range(len(self.home.family.keys))]
        states = self.windows.columns.together([held, TupleRows(begun, begun, begun, self.windows.columns.blank(len(begun)))]).states
        columns = tuple((self.plan.query.name, number) for number in range(len(self.plan.columns)))
        at = np.concatenate([held.ticks, first[begun]])
        return Holding((self.plan.query.name,), columns, Partials(at, (pa.array(kinds), *groups), states))

    def _column(self, at: int, series: Array, partitions: Array) -> pa.Array:
        of_groups = self.home.groups.columns()[at].take(pa.array(series))
        if at not in self.home.of_partition:
            return pa.concat_arrays([of_groups, pa.nulls(len(partitions), of_groups.type)])
        named = self.home.partitions.columns()[self.home.of_partition.index(at)]
        return pa.concat_arrays([of_groups, named.take(pa.array(partitions))])

    def take_back(self, partials: Partials) -> None:
        kinds = integers(partials.keys[0], null=0)
        firsts, rows = (partials.rows(np.nonzero(kinds == kind)[0]) for kind in (FIRST, HELD))
        named = [firsts.keys[1 + at] for at in self.home.of_partition]
        partitions = self.home.partitions.numbers(named, len(firsts))
        series = self.home.groups.numbers(rows.keys[1:], len(rows))
        self._know_groups()
        self.windows.know_partitions(len(self.home.partitions), since=BEGINNING)
        self.windows.first_ids[:] = BEGINNING
        self.windows.first_ids[partitions] = firsts.at
        held = TupleRows(series, rows.at, np.zeros(len(rows), dtype=np.int64), rows.states)
        self.windows.parts = [held] if len(held) else []
