"""Assembly of slide-by-tuple windows: partials per distinct tick and punctuations in, results of closed windows out.

In: `Partials` of the groupings of such queries; plans that change as queries come and go. Out: `ResultChunk`s, and a `Holding` per query
for snapshots. Convention: what `assembly` is for windows of slices. Queries share the rows of a batch; each holds its own windows.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from muntin.aggregates.base import Array
from muntin.columnar import integers
from muntin.plan.shared import QueryPlan, SharedPlan
from muntin.windows.bypartition import PartitionWindows
from muntin.windows.bytuple import TupleWindows
from muntin.windows.life import QueryLife
from muntin.windows.lowering import ResultChunk
from muntin.windows.ownassembly import OwnAssembly
from muntin.windows.shards import Partials
from muntin.windows.snapshots import Holding
from muntin.windows.substreams import Substreams
from muntin.windows.tuplequery import TupleQuery
from muntin.windows.tuplerows import TupleRows
from muntin.windows.tuplesnapshots import Held, held, restore

#: What a row of a holding is: one of the rows in hand, a partition's count of tuples below the punctuation, a row that is kept for early
#: and corrected results, or a revision. Of partitions that close by themselves, all rows in hand wait.
WAITING, CURRENT, PREVIOUS, BELOW, KEPT, NEWS, REVISIONS = range(7)


@dataclass
class TupleAssembly(OwnAssembly[TupleQuery]):
    """The slide-by-tuple windows of a stream over one attribute."""

    def _joined(self, one: QueryPlan, plan: SharedPlan) -> TupleQuery:
        query = TupleQuery(one, self.substreams)
        self._begin(query.windows)
        return query

    def _begin(self, windows: TupleWindows | PartitionWindows) -> None:
        if isinstance(windows, TupleWindows):  # partitions are told how far they are with every step
            windows.begin_at(self.punctuation)

    def step(
        self, partials: Sequence[Partials], punctuation: int, latest: int, substreams: Substreams, early: Collection[int] = ()
    ) -> Iterator[ResultChunk]:
        self.latest = max(self.latest, latest)
        punctuation = max(punctuation, self.punctuation)
        for name, query in self.queries.items():
            life = self.lives[name]
            if not life.stopped:
                rows = query.rows(partials[query.plan.grouping], self.plan.groupings[query.plan.grouping])
                yield from self._recorded(name, query.absorb(rows, life, self.punctuation, self.substreams))
                yield from self._counted(name, self._closed(query, life, punctuation, substreams))
                yield from self._recorded(name, query.early(life, punctuation, substreams, early))
        self.punctuation, self.substreams = punctuation, substreams

    def _closed(self, query: TupleQuery, life: QueryLife, punctuation: int, substreams: Substreams) -> Iterator[ResultChunk]:
        closing = query.close((self.punctuation, self.substreams), (punctuation, substreams))
        return (query.results(ends, life) for ends in closing if not life.stopped)

    # -- snapshots --------------------------------------------------------------------------------------------------------------

    def _holding(self, name: str, query: TupleQuery) -> Holding:
        return holding(name, query)

    def restore(self, holdings: Sequence[Holding], punctuation: int, substreams: Substreams) -> None:
        self.punctuation, self.substreams = punctuation, substreams
        for query in self.queries.values():
            self._begin(query.windows)
        for one in holdings:
            take_back(self.queries[one.predicates[0]], one.partials, punctuation)

    # -- what there is ----------------------------------------------------------------------------------------------------------

    @property
    def groups(self) -> int:
        return sum(len(query.groups) for query in self.queries.values())


def holding(name: str, query: TupleQuery) -> Holding:
    """What a query holds, as partials: what each row is, its marks, its group."""
    windows = query.windows
    first_of = np.unique(windows.partition, return_index=True)[1]  # a series that names each partition
    blank = windows.columns.blank(len(first_of))
    counts = TupleRows(first_of, windows.below[: len(first_of)], np.zeros(len(first_of), dtype=np.int64), blank)
    if isinstance(windows, PartitionWindows):
        parts = [windows.held, windows.columns.no_rows(), windows.columns.no_rows(), counts]
    else:
        state = held(windows)
        parts = [state.waiting, state.current, state.previous, counts]
    parts += kept_rows(query)
    kinds = np.repeat(np.arange(len(parts)), [len(part) for part in parts])
    rows = query.windows.columns.together(parts)
    keys = (pa.array(kinds), pa.array(rows.marks), *(column.take(pa.array(rows.series)) for column in query.groups.columns()))
    columns = tuple((name, number) for number in range(len(query.plan.columns)))
    return Holding((name,), columns, Partials(rows.ticks, keys, rows.states))


def kept_rows(query: TupleQuery) -> list[TupleRows]:
    """What is kept for early and corrected results, and revisions as rows: the window's tick, the revision as marks."""
    kept, columns = query.kept, query.windows.columns
    if kept is None:
        return []
    ticks, series, revisions = kept.revisions.held()
    return [columns.together(kept.told), columns.together(kept.news), TupleRows(series, ticks, revisions, columns.blank(len(ticks)))]


def take_back(query: TupleQuery, partials: Partials, punctuation: int) -> None:
    kinds, marks = (integers(key, null=0) for key in partials.keys[:2])
    series = query.series(partials.keys[2:], len(partials))
    rows, windows = TupleRows(series, partials.at, marks, partials.states), query.windows
    below = np.zeros(len(windows.below), dtype=np.int64)
    counts = of_kind(rows, kinds, BELOW)
    below[windows.partition[counts.series]] = counts.ticks
    waiting, current, previous = (of_kind(rows, kinds, kind) for kind in (WAITING, CURRENT, PREVIOUS))
    if isinstance(windows, PartitionWindows):
        windows.below, windows.parts = below, [waiting] if len(waiting) else []
    else:
        nothing = np.empty(0, dtype=np.int64)  # the series are there already
        restore(windows, Held(punctuation, nothing, below, waiting, current, previous))
    if query.kept is not None:
        told, news, revisions = (of_kind(rows, kinds, kind) for kind in (KEPT, NEWS, REVISIONS))
        query.kept.told, query.kept.news = [told], [news]
        query.kept.revisions.take_back(revisions.ticks, revisions.series, revisions.marks)


def of_kind(rows: TupleRows, kinds: Array, kind: int) -> TupleRows:
    return rows.at(np.nonzero(kinds == kind)[0])
