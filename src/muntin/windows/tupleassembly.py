"""Assembly of slide-by-tuple windows: partials per distinct tick and punctuations in, results of closed windows out.

In: `Partials` of the groupings of such queries; plans that change as queries come and go. Out: `ResultChunk`s, and a `Holding` per query
for snapshots. Convention: what `assembly` is for windows of slices. Queries share the rows of a batch; each holds its own windows.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from muntin.aggregates.base import Array
from muntin.columnar import integers
from muntin.plan.shared import SharedPlan
from muntin.timeline import BEGINNING
from muntin.windows.assembly import Aggregations
from muntin.windows.life import QueryLife
from muntin.windows.lowering import ResultChunk
from muntin.windows.shards import Partials
from muntin.windows.snapshots import Holding
from muntin.windows.tuplekept import TupleKept
from muntin.windows.tuplequery import TupleQuery
from muntin.windows.tuplerows import TupleRows
from muntin.windows.tuplesnapshots import Held, held, restore

#: What a row of a holding is: one of the rows in hand, a partition's count of tuples below the punctuation, a row that is kept for early
#: and corrected results, or a revision.
WAITING, CURRENT, PREVIOUS, BELOW, KEPT, NEWS, REVISIONS = range(7)


@dataclass
class TupleAssembly:
    """The slide-by-tuple windows of a stream over one attribute. `latest` is the greatest tick so far."""

    plan: SharedPlan
    punctuation: int = BEGINNING
    latest: int = BEGINNING
    lives: dict[str, QueryLife] = field(default_factory=dict)
    aggregations: Aggregations = field(default_factory=Aggregations)

    def __post_init__(self) -> None:
        self.queries: dict[str, TupleQuery] = {}
        self.use(self.plan)

    def use(self, plan: SharedPlan) -> None:
        """Go on with another plan. A query that the old one had not takes part in windows that start after every row so far."""
        since = BEGINNING if self.latest == BEGINNING else self.latest + 1
        wanted = {one.query.name: one for one in plan.queries}
        for name, known in list(self.queries.items()):
            if name not in wanted or wanted[name].query != known.plan.query:
                del self.queries[name], self.lives[name]
        for name, one in wanted.items():
            if name not in self.queries:
                self.lives.setdefault(name, QueryLife(since))
                self.queries[name] = TupleQuery(one)
                self.queries[name].windows.begin_at(self.punctuation)
            self.queries[name].plan = one
        self.plan = plan

    def step(self, partials: Sequence[Partials], punctuation: int, latest: int, early: Collection[int] = ()) -> Iterator[ResultChunk]:
        """Absorb the partials of one batch, correct, close, and give early results, as `Assembly.step` does. Exhaust it before the next."""
        self.latest = max(self.latest, latest)
        for name, query in self.queries.items():
            life = self.lives[name]
            if not life.stopped:
                rows = query.rows(partials[query.plan.grouping], self.plan.groupings[query.plan.grouping])
                rows = query.in_time(life, rows)
                if query.kept is not None:
                    yield from self._recorded(life, corrected(query, query.kept, rows, life))
                query.windows.absorb(rows)
                yield from self._closed(query, life, punctuation)
                if query.kept is not None:
                    yield from self._early(query, query.kept, life, early)
        self.punctuation = max(punctuation, self.punctuation)

    def _closed(self, query: TupleQuery, life: QueryLife, punctuation: int) -> Iterator[ResultChunk]:
        before = query.windows.work.combines
        yield from self._recorded(life, (query.closed(ends, life) for ends in query.windows.close(punctuation) if not life.stopped))
        self.aggregations.final += query.windows.work.combines - before

    def _early(self, query: TupleQuery, kept: TupleKept, life: QueryLife, due: Collection[int]) -> Iterator[ResultChunk]:
        every = query.plan.query.emit_every
        if every is not None and every.micros in due:
            yield from self._recorded(life, (query.early(ends, life) for ends in kept.early() if not life.stopped))
        kept.prune()

    @staticmethod
    def _recorded(life: QueryLife, chunks: Iterable[ResultChunk]) -> Iterator[ResultChunk]:
        for chunk in chunks:
            chunk.count(life)
            if chunk.table.num_rows or chunk.error:
                yield chunk

    # -- snapshots --------------------------------------------------------------------------------------------------------------

    def snapshot(self) -> list[Holding]:
        return [holding(name, query) for name, query in self.queries.items() if not self.lives[name].stopped]

    def restore(self, holdings: Sequence[Holding], punctuation: int) -> None:
        """Take a snapshot back, into an assembly of the same queries that has absorbed nothing."""
        self.punctuation = punctuation
        for query in self.queries.values():
            query.windows.begin_at(punctuation)
        for one in holdings:
            take_back(self.queries[one.predicates[0]], one.partials, punctuation)

    # -- what there is ----------------------------------------------------------------------------------------------------------

    slices_seen = 0

    @property
    def slices(self) -> int:
        """Ticks in hand."""
        return sum(query.windows.ticks_held for query in self.queries.values())

    @property
    def groups(self) -> int:
        return sum(len(query.groups) for query in self.queries.values())

    @property
    def cells(self) -> int:
        return self.slices


def corrected(query: TupleQuery, kept: TupleKept, rows: TupleRows, life: QueryLife) -> Iterator[ResultChunk]:
    """Keep the rows of a batch, and give the results that late ones among them change."""
    kept.add(rows)
    late = rows.where(rows.ticks < query.windows.punctuation)
    if kept.corrected_for and len(late):
        for again in kept.corrected(late):
            if not life.stopped:
                yield query.corrected(again, life, kept.revisions)


def holding(name: str, query: TupleQuery) -> Holding:
    """What a query holds, as partials: what each row is, its marks, its group."""
    state = held(query.windows)
    first_of = np.unique(state.partition, return_index=True)[1]  # a series that names each partition
    blank = query.windows.columns.blank(len(first_of))
    counts = TupleRows(first_of, state.below[: len(first_of)], np.zeros(len(first_of), dtype=np.int64), blank)
    parts = [state.waiting, state.current, state.previous, counts, *kept_rows(query)]
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
    rows = TupleRows(series, partials.at, marks, partials.states)
    partition = query.windows.partition
    below = np.zeros(len(query.windows.below), dtype=np.int64)
    counts = of_kind(rows, kinds, BELOW)
    below[partition[counts.series]] = counts.ticks
    waiting, current, previous = (of_kind(rows, kinds, kind) for kind in (WAITING, CURRENT, PREVIOUS))
    nothing = np.empty(0, dtype=np.int64)  # the series are there already
    restore(query.windows, Held(punctuation, nothing, below, waiting, current, previous))
    if query.kept is not None:
        told, news, revisions = (of_kind(rows, kinds, kind) for kind in (KEPT, NEWS, REVISIONS))
        query.kept.told, query.kept.news = [told], [news]
        query.kept.revisions.take_back(revisions.ticks, revisions.series, revisions.marks)


def of_kind(rows: TupleRows, kinds: Array, kind: int) -> TupleRows:
    return rows.at(np.nonzero(kinds == kind)[0])
