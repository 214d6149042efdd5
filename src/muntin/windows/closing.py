"""Closing the windows of one store: enumerate them, combine their runs of slices, lower the results; and what came too late for them.

In: a slice store and what each of its queries went through. Out: `ResultChunk`s. Convention: windows of all queries are put in one
order, by end; a bounded number of windows × strands is in memory at once; each partial column is combined once per piece for every
query that stands on it, and queries that select the same things are lowered together, whatever their windows and predicates.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from muntin.aggregates.base import Array, State
from muntin.errors import DataError
from muntin.plan.numbering import distinct
from muntin.plan.shared import ROWS, PartialColumn
from muntin.timeline import BEGINNING, END
from muntin.windows.due import with_empty
from muntin.windows.landmarks import window_set
from muntin.windows.life import QueryLife, Stop
from muntin.windows.ranges import Pairs, Runs
from muntin.windows.results import Failure, Rows, SelectList
from muntin.windows.store import Folded, SliceStore
from muntin.windows.substreams import Closed

#: Windows × strands combined at once.
CELLS_AT_ONCE = 4_000_000
#: Windows of one query enumerated at once.
WINDOWS_AT_ONCE = 250_000


@dataclass(frozen=True)
class ResultChunk:
    """Rows of one query, in order of window end and group; how many windows and slices they came from; why it stopped, if it did."""

    query: str
    table: pa.Table
    windows: int
    slices: int
    error: DataError | None = None


@dataclass(frozen=True)
class Kin:
    """Queries of a store that differ only in their windows and predicates: the same select list over the same columns."""

    members: tuple[int, ...]
    select: SelectList


@dataclass(frozen=True)
class Closing:
    """Windows that close, in order of end: the query each belongs to and its run of slices."""

    owner: Array
    runs: Runs


class StoreWindows:
    """The windows of a store's queries, as they are now; a change of queries makes a new one."""

    def __init__(self, store: SliceStore, lives: Mapping[str, QueryLife]) -> None:
        self.store = store
        self.lives = lives
        self._stops: dict[str, Stop] = {}
        self.plans = list(store.plans.values())
        self.windows = window_set([plan.query.sliding for plan in self.plans])
        self.kin = self._kin()
        self._groups: Closed | None = None
        self._counted_upto = BEGINNING
        self.predicate_of = np.array([store.predicates[plan.query.where] for plan in self.plans], dtype=np.int64)
        self.users = {column: np.zeros(len(self.plans), dtype=bool) for column in store.columns}
        for at, plan in enumerate(self.plans):
            for column in plan.columns:
                self.users[column][at] = True

    def _kin(self) -> list[Kin]:
        together: dict[object, list[int]] = {}
        for at, plan in enumerate(self.plans):
            together.setdefault(plan.selects, []).append(at)
        return [Kin(tuple(members), SelectList(self.plans[members[0]])) for members in together.values()]

    def horizon(self, punctuation: int) -> int:
        return self.windows.horizon(punctuation)

    def _since(self) -> Array:
        """From when on each query takes part; one that stopped takes part in nothing."""
        lives = (self.lives[plan.query.name] for plan in self.plans)
        return np.array([END if life.stopped else life.since for life in lives], dtype=np.int64)

    def count_late(self, starts: Array, below: Folded, punctuation: int, *, consistent: bool) -> None:
        """Rows in slices with these starts, all of them before the punctuation: per query how many missed a window, and
        how many count in none.
        """
        some, every = self.windows.missed(starts, punctuation=punctuation, since=self._since())
        for at in np.nonzero(some.any(axis=1))[0].tolist():
            life, mine = self.lives[self.plans[at].query.name], below.predicate == self.predicate_of[at]
            rows, slices = below.states[ROWS][0][mine], below.slice[mine]
            life.late += int(rows[some[at][slices]].sum())
            life.dropped += int(rows[(some if consistent else every)[at][slices]].sum())

    def close(self, *, after: int, upto: int, latest: int, stops: dict[str, Stop], groups: Closed | None = None) -> Iterator[ResultChunk]:
        """Windows that end in `(after, upto]`; where groups have punctuations of their own, each group's that end up to its own."""
        self._stops, self._groups, self._counted_upto = stops, groups, upto
        for low, high in self._stretches(after, upto if groups is None else max(upto, groups.upto), latest):
            closing = self._closing(low, high, latest)
            for part in self._pieces(closing.owner):
                yield from self._close_piece(Closing(closing.owner[part], closing.runs.at(part)))

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
                life.begun |= len(mine) > 0
                owner, ids = np.concatenate([owner[others], np.full(len(mine), at)]), np.concatenate([ids[others], mine])
        start, end = self.windows.bounds(owner, ids)
        order = np.lexsort((owner, end))
        start, end, slices = start[order], end[order], self.store.starts
        return Closing(owner[order], Runs(np.searchsorted(slices, start), np.searchsorted(slices, end), start, end))

    def _pieces(self, owner: Array) -> Iterator[Array]:
        """Windows in order, as many at once as their strands allow."""
        width = self.store.strands.counts(self.predicate_of)
        piece = np.cumsum(np.maximum(width[owner], 1)) // CELLS_AT_ONCE
        for number in distinct(piece):
            yield np.nonzero(piece == number)[0]

    def _close_piece(self, closing: Closing) -> Iterator[ResultChunk]:
        pairs = self._pairs(closing)
        combined = {column: self._combined(column, closing, pairs) for column in self.store.columns}
        kin_of = np.empty(len(self.plans), dtype=np.int64)
        for number, kin in enumerate(self.kin):
            kin_of[list(kin.members)] = number
        of_window, of_pair = kin_of[closing.owner], kin_of[closing.owner[pairs.run]]
        for number in distinct(of_window):
            windows = np.nonzero(of_window == number)[0]
            windows = windows[np.argsort(closing.owner[windows], kind="stable")]
            yield from self._close_kin(self.kin[number], closing, windows, np.nonzero(of_pair == number)[0], pairs, combined)

    def _pairs(self, closing: Closing) -> Pairs:
        """Every window with every strand of its query's predicate that it closes for, windows in order, groups in order."""
        predicates, strands = self.predicate_of[closing.owner], self.store.strands
        pairs = Pairs(np.repeat(np.arange(len(predicates)), strands.counts(predicates)), strands.of(predicates))
        if self._groups is None:
            return pairs
        return pairs.at(np.nonzero(self._groups.closes(strands.group[pairs.strand], closing.runs.end[pairs.run]))[0])

    def _combined(self, column: PartialColumn, closing: Closing, pairs: Pairs) -> tuple[State, Array]:
        """A column's states for the pairs whose queries use it, and where each pair is among them."""
        used = self.users[column][closing.owner[pairs.run]]
        place = np.cumsum(used) - 1
        asked = pairs if used.all() else pairs.at(np.nonzero(used)[0])
        return self.store.columns[column].combine(self._from_first_slice(closing.runs), asked, self.store.starts), place

    def _from_first_slice(self, runs: Runs) -> Runs:
        """Runs of endless windows, which start before everything, as long as what there is: lengths choose the size of blocks."""
        endless = runs.start == BEGINNING
        return replace(runs, start=np.where(endless, self.store.starts[0], runs.start)) if endless.any() else runs

    def _close_kin(
        self, kin: Kin, closing: Closing, windows: Array, chosen: Array, pairs: Pairs, combined: Mapping[PartialColumn, tuple[State, Array]]
    ) -> Iterator[ResultChunk]:
        plan = kin.select.plan
        chosen = chosen[np.argsort(closing.owner[pairs.run[chosen]], kind="stable")]
        states = {column: taken(combined[column], chosen) for column in plan.columns}
        rank = np.empty(len(closing.owner), dtype=np.int64)
        rank[windows] = np.arange(len(windows))
        window, strand = rank[pairs.run[chosen]], pairs.strand[chosen]
        owner, runs = closing.owner[windows], closing.runs.at(windows)
        if plan.query.emit_empty:
            window, strand, states = with_all_windows(len(windows), window, strand, states)
        counted = np.nonzero((states[ROWS][0] > 0) | plan.query.emit_empty)[0]
        rows = self._rows(runs, window[counted], strand[counted])
        table, kept, failures = kin.select.table(rows, {column: tuple(lane[counted] for lane in one) for column, one in states.items()})
        broken = np.zeros(len(windows), dtype=np.int64)
        if plan.failures is not None:
            np.add.at(broken, window, states[plan.failures][0])
        errors = self._errors(owner, runs, broken, [(int(rows.window[failure.row]), failure) for failure in failures])
        yield from self._by_query(owner, runs, table, rows.window[kept], errors)

    def _rows(self, runs: Runs, window: Array, strand: Array) -> Rows:
        groups = self.store.strands.group[strand] if self.store.family.keys else np.zeros(len(window), dtype=np.int64)
        return Rows(window, groups, runs.start[window], runs.end[window], self.store.strands.groups.columns())

    def _errors(self, owner: Array, runs: Runs, broken: Array, failures: list[tuple[int, Failure]]) -> dict[int, Stop]:
        """For each query whose data went wrong, here or elsewhere, the first window it went wrong in, and the error."""
        wrong = [(int(runs.end[window]), int(owner[window]), failure.error) for window, failure in failures]
        wrong += [(int(runs.end[at]), int(owner[at]), failed_rows(int(broken[at]))) for at in np.nonzero(broken)[0]]
        known = [(number, self._stops.get(self.plans[number].query.name)) for number in set(owner.tolist())]
        wrong += [(stop.end, number, stop.error) for number, stop in known if stop is not None]
        first: dict[int, Stop] = {}
        for end, number, error in sorted(wrong, key=lambda item: item[:2]):
            first.setdefault(number, Stop.at(end, error))
        return first

    def _by_query(self, owner: Array, runs: Runs, table: pa.Table, window: Array, errors: dict[int, Stop]) -> Iterator[ResultChunk]:
        numbers, first, count = np.unique(owner, return_index=True, return_counts=True)
        lows, highs = np.searchsorted(window, first), np.searchsorted(window, first + count)
        slices = np.add.reduceat(runs.last - runs.first, first)
        found = zip(*(one.tolist() for one in (numbers, first, count, lows, highs, slices)), strict=True)
        for number, at, windows, low, high, combined in found:
            name = self.plans[number].query.name
            if self.lives[name].stopped:
                continue
            stop = errors.get(number)
            ends, error = runs.end[at : at + windows], None
            if stop is not None and stop.end <= ends[-1]:
                self._stops[name] = stop
                self.lives[name].stopped, error = str(stop.error), stop.error
                ends = ends[ends < stop.end]
                high = low + int((runs.end[window[low:high]] < stop.end).sum())
            windows = int((ends <= self._counted_upto).sum())  # those that a group alone closes are counted later
            yield ResultChunk(name, table.slice(low, high - low), windows, combined, error)


def taken(combined: tuple[State, Array], chosen: Array) -> State:
    state, place = combined
    at = place[chosen]
    return tuple(lane[at] for lane in state)


def with_all_windows(
    windows: int, window: Array, strand: Array, states: Mapping[PartialColumn, State]
) -> tuple[Array, Array, dict[PartialColumn, State]]:
    """For EMIT EMPTY: windows of queries whose predicate has no strand yet, with the identity as their state."""
    missing = np.setdiff1d(np.arange(windows), window)
    together = np.concatenate([window, missing])
    order = np.argsort(together, kind="stable")
    full = {
        column: tuple(
            np.concatenate([lane, np.full(len(missing), identity, dtype=lane.dtype)])[order]
            for lane, identity in zip(state, column.partial.identity(), strict=True)
        )
        for column, state in states.items()
    }
    return together[order], np.concatenate([strand, np.zeros(len(missing), dtype=np.int64)])[order], full


def failed_rows(count: int) -> DataError:
    return DataError(
        "every row of a window can be computed",
        values=f"{count} row{'s' if count != 1 else ''} failed: an overflow, a division by zero or a value that cannot be cast",
        way_out="guard the expression (CASE, NULLIF, WHERE) or cast to a wider type",
    )
