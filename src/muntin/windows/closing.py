"""The windows of one store that have something to tell: those that close, those that late rows correct, those with early results.

In: a slice store and what each of its queries went through. Out: `ResultChunk`s. Convention: windows of all queries are put in one
order, by end; a bounded number of windows × strands is in memory at once; each partial column is combined once per piece for every
query that stands on it. Early and corrected results are combined apart, so that those of windows that close never depend on them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np

from muntin.aggregates.base import Array, State
from muntin.plan.numbering import distinct
from muntin.plan.shared import ROWS, PartialColumn
from muntin.semantics import extent, wids_after
from muntin.timeline import BEGINNING, END
from muntin.windows.corrections import Gains, Revisions
from muntin.windows.due import with_empty
from muntin.windows.landmarks import window_set
from muntin.windows.life import QueryLife, Stop
from muntin.windows.lowering import Closing, Lowering, Manner, Piece, ResultChunk
from muntin.windows.ranges import Pairs, Runs
from muntin.windows.store import Folded, SliceStore
from muntin.windows.substreams import Closed, Reach

#: Windows × strands combined at once.
CELLS_AT_ONCE = 4_000_000
#: Windows of one query enumerated at once.
WINDOWS_AT_ONCE = 250_000


class StoreWindows:
    """The windows of a store's queries, as they are now; a change of queries makes a new one.

    `horizon`: how long, in ticks, windows that are closed are corrected.
    """

    def __init__(self, store: SliceStore, lives: Mapping[str, QueryLife], horizon: int = 0) -> None:
        self.store, self.lives, self.corrected_for = store, lives, horizon
        self.plans = list(store.plans.values())
        self.windows = window_set([plan.query.sliding for plan in self.plans])
        self.lowering = Lowering(self.plans, store, lives)
        self.predicate_of = np.array([store.predicates[plan.query.where] for plan in self.plans], dtype=np.int64)
        self.users = {column: np.zeros(len(self.plans), dtype=bool) for column in store.columns}
        for at, plan in enumerate(self.plans):
            for column in plan.columns:
                self.users[column][at] = True

    def horizon(self, punctuation: int) -> int:
        """Where the earliest window starts that takes rows at a punctuation, open or still corrected."""
        return self.windows.horizon(punctuation - self.corrected_for)

    def _since(self) -> Array:
        """From when on each query takes part; one that stopped takes part in nothing."""
        lives = (self.lives[plan.query.name] for plan in self.plans)
        return np.array([END if life.stopped else life.since for life in lives], dtype=np.int64)

    def count_late(self, starts: Array, below: Folded, punctuation: int, *, consistent: bool) -> None:
        """Rows in slices with these starts, all of them before the punctuation: per query how many came after a window of theirs had
        closed, and how many count in none.
        """
        some, every = self.windows.missed(starts, punctuation=punctuation, since=self._since(), corrected_for=self.corrected_for)
        for at in np.nonzero(some.any(axis=1))[0].tolist():
            life, mine = self.lives[self.plans[at].query.name], below.predicate == self.predicate_of[at]
            rows, slices = below.states[ROWS][0][mine], below.slice[mine]
            life.late += int(rows[some[at][slices]].sum())
            life.dropped += int(rows[(some if consistent else every)[at][slices]].sum())

    # -- windows that close -----------------------------------------------------------------------------------------------------

    def close(self, *, after: int, upto: int, latest: int, stops: dict[str, Stop], groups: Closed | None = None) -> Iterator[ResultChunk]:
        """Windows that end in `(after, upto]`; where groups have punctuations of their own, each group's that end up to its own."""
        for low, high in self._stretches(after, upto if groups is None else max(upto, groups.upto), latest):
            closing = self._closing(low, high, latest)
            for part in self._pieces(closing.owner):
                some = closing.at(part)
                pairs = self._pairs(some)
                if groups is not None:
                    pairs = pairs.at(np.nonzero(groups.closes(self._group(pairs), some.runs.end[pairs.run]))[0])
                combined, first = self._combined(some, pairs), np.zeros(len(pairs), dtype=np.int64)
                yield from self.lowering.results(Piece(some, pairs, combined, first, Manner.CLOSED, upto), stops)

    def _stretches(self, after: int, upto: int, latest: int) -> Iterator[tuple[int, int]]:
        """The time between two punctuations in pieces that no query has too many windows in, however long it is."""
        first = int(self.store.starts[0]) if len(self.store.starts) else latest
        begun = any(self.lives[plan.query.name].begun for plan in self.plans)
        low = after if begun else max(after, first)
        high = self.windows.last_end(upto=upto, latest=latest)
        stride = WINDOWS_AT_ONCE * int(self.windows.slide.min())
        while high - low > stride:
            yield after, low + stride
            after = low = low + stride
        yield after, upto

    def _closing(self, after: int, upto: int, latest: int) -> Closing:
        """Every window that closes, in order of end."""
        owner, ids = self.windows.closing(self.store.starts, after=after, upto=upto, latest=latest, since=self._since())
        for at, plan in enumerate(self.plans):
            life = self.lives[plan.query.name]
            if plan.query.emit_empty and not life.stopped:
                others, mine = owner != at, ids[owner == at]
                mine = with_empty(mine, after=after, upto=upto, latest=latest, window=plan.query.sliding, begun=life.begun)
                if len(mine) and not life.begun:
                    life.first = int(self.windows.bounds(np.array([at]), mine[:1])[1][0])
                owner, ids = np.concatenate([owner[others], np.full(len(mine), at)]), np.concatenate([ids[others], mine])
        return self._in_order(owner, ids)

    def _in_order(self, owner: Array, ids: Array) -> Closing:
        start, end = self.windows.bounds(owner, ids)
        order = np.lexsort((owner, end))
        start, end, slices = start[order], end[order], self.store.starts
        return Closing(owner[order], Runs(np.searchsorted(slices, start), np.searchsorted(slices, end), start, end))

    # -- windows that are corrected, and early results --------------------------------------------------------------------------

    def correct(
        self, gains: Gains, reach: Reach, *, latest: int, stops: dict[str, Stop], revisions: Mapping[str, Revisions]
    ) -> Iterator[ResultChunk]:
        """Windows that were closed, not for too long, and gained rows: once more, as they are now."""
        after, upto = reach.lowest - self.corrected_for, reach.highest
        self._begin(gains.reached, after=after, upto=upto, latest=latest)
        owner, ids = self.windows.closing(gains.starts, after=after, upto=upto, latest=latest, since=self._since())
        closing, among = self._in_order(owner, ids), gains.among(len(self.store.strands))
        for part in self._pieces(closing.owner, among):
            some = closing.at(part)
            pairs = self._pairs(some, among)
            end, closed = some.runs.end[pairs.run], reach.of(self._group(pairs))
            wanted = (end <= closed) & (end + self.corrected_for > closed) & (gains.told(some.runs, pairs) > 0)
            some, pairs = only(some, pairs.at(np.nonzero(wanted)[0]))
            combined = self._combined(some, pairs, apart=True)
            before = combined[ROWS][0][0] - gains.rows(some.runs, pairs)
            revision = self._revisions(some, pairs, before, revisions)
            yield from self.lowering.results(Piece(some, pairs, combined, revision, Manner.CORRECTED, BEGINNING), stops)

    def _begin(self, starts: Array, *, after: int, upto: int, latest: int) -> None:
        """EMIT EMPTY begins with the first window that a row counts in; where that is a closed one, with the next to close."""
        waiting = [(at, plan) for at, plan in enumerate(self.plans) if plan.query.emit_empty and not self.lives[plan.query.name].begun]
        if waiting:
            owner, _ = self.windows.closing(starts, after=after, upto=upto, latest=latest, since=self._since())
            for at, plan in waiting:
                if (owner == at).any():
                    window = plan.query.sliding
                    self.lives[plan.query.name].first = extent(wids_after(upto, window), window).end

    def _revisions(self, closing: Closing, pairs: Pairs, rows_before: Array, revisions: Mapping[str, Revisions]) -> Array:
        """A window that held rows before was emitted then; with EMIT EMPTY, so was every one since the first."""
        owner, end, group = closing.owner[pairs.run], closing.runs.end[pairs.run], self._group(pairs)
        found = np.zeros(len(pairs), dtype=np.int64)
        for number in distinct(owner):
            query = self.plans[number].query
            mine = np.nonzero(owner == number)[0]
            was_emitted = (rows_before[mine] > 0) | (query.emit_empty & (end[mine] >= self.lives[query.name].first))
            found[mine] = revisions[query.name].next(end[mine], group[mine], was_emitted)
        return found

    def early(self, news: PartialColumn, reach: Reach, *, latest: int, stops: dict[str, Stop]) -> Iterator[ResultChunk]:
        """The running values of open windows that hold anything new, for the queries that go by this news; then it is none any more."""
        held = self.store.columns[news]
        is_new = np.asarray(held.cells()[0] > 0)
        mine = np.array([plan.news == news for plan in self.plans])
        since, starts = np.where(mine, self._since(), END), self.store.starts[np.any(is_new, axis=1)]
        closing = self._in_order(*self.windows.closing(starts, after=reach.lowest, upto=END, latest=latest, since=since))
        among: Array = np.any(is_new, axis=0)
        for part in self._pieces(closing.owner, among):
            some = closing.at(part)
            pairs = self._pairs(some, among)
            is_open = some.runs.end[pairs.run] > reach.of(self._group(pairs))
            gained = held.combine(self._from_first_slice(some.runs), pairs, self.store.starts)[0] > 0
            some, pairs = only(some, pairs.at(np.nonzero(is_open & gained)[0]))
            combined, first = self._combined(some, pairs, apart=True), np.zeros(len(pairs), dtype=np.int64)
            yield from self.lowering.results(Piece(some, pairs, combined, first, Manner.EARLY, BEGINNING), stops)
        held.clear()

    # -- windows and strands ----------------------------------------------------------------------------------------------------

    def _pieces(self, owner: Array, among: Array | None = None) -> Iterator[Array]:
        """Windows in order, as many at once as their strands allow."""
        width = self.store.strands.counts(self.predicate_of, among)
        piece = np.cumsum(np.maximum(width[owner], 1)) // CELLS_AT_ONCE
        for number in distinct(piece):
            yield np.nonzero(piece == number)[0]

    def _pairs(self, closing: Closing, among: Array | None = None) -> Pairs:
        """Every window with every strand of its query's predicate, or with those `among` them: windows in order, groups in order."""
        predicates, strands = self.predicate_of[closing.owner], self.store.strands
        return Pairs(np.repeat(np.arange(len(predicates)), strands.counts(predicates, among)), strands.of(predicates, among))

    def _group(self, pairs: Pairs) -> Array:
        groups: Array = self.store.strands.group[pairs.strand]
        return groups

    def _combined(self, closing: Closing, pairs: Pairs, *, apart: bool = False) -> dict[PartialColumn, tuple[State, Array]]:
        """Each column's states for the pairs whose queries use it, and where each pair is among them."""
        runs, found = self._from_first_slice(closing.runs), {}
        for column, users in self.users.items():
            used = users[closing.owner[pairs.run]]
            asked, held = pairs if used.all() else pairs.at(np.nonzero(used)[0]), self.store.columns[column]
            state = held.combine_apart(runs, asked, self.store.starts) if apart else held.combine(runs, asked, self.store.starts)
            found[column] = state, np.cumsum(used) - 1
        return found

    def _from_first_slice(self, runs: Runs) -> Runs:
        """Runs of endless windows, which start before everything, as long as what there is: lengths choose the size of blocks."""
        endless = runs.start == BEGINNING
        return replace(runs, start=np.where(endless, self.store.starts[0], runs.start)) if endless.any() else runs


def only(closing: Closing, pairs: Pairs) -> tuple[Closing, Pairs]:
    """The windows that are asked for anything, and what they are asked for."""
    asked = distinct(pairs.run)
    return closing.at(asked), Pairs(np.searchsorted(asked, pairs.run), pairs.strand)
