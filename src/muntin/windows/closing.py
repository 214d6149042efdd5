"""Closing the windows of one grouping: enumerate them, combine their runs of slices, lower the results.

In: a slice store and the plans of its queries. Out: `ResultChunk`s. Convention: windows of all queries are put in one order, by
end; a bounded number of windows × fragments is in memory at once; each partial column is combined once per piece for every query
that stands on it, folded to groups by each query's predicate, and queries that select the same things are lowered together.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from muntin.aggregates.base import Array, Partial, State
from muntin.errors import DataError
from muntin.plan.fragments import Truth
from muntin.plan.shared import QueryPlan
from muntin.windows.due import bounds, horizon, windows_closing, with_empty
from muntin.windows.ranges import Runs
from muntin.windows.results import Failure, Rows, SelectList
from muntin.windows.store import SliceStore

#: Windows × fragments combined at once.
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
    """Queries of a grouping that differ only in their windows: the same select list over the same columns."""

    members: tuple[int, ...]
    select: SelectList


class GroupingWindows:
    def __init__(self, store: SliceStore, plans: Sequence[QueryPlan]) -> None:
        self.store = store
        self.plans = list(plans)
        self.kin = self._kin()
        self.predicates = list(dict.fromkeys(plan.predicate for plan in plans))
        self.predicate_of = np.array([self.predicates.index(plan.predicate) for plan in plans], dtype=np.int64)
        self.begun: set[str] = set()

    def _kin(self) -> list[Kin]:
        together: dict[object, list[int]] = {}
        for at, plan in enumerate(self.plans):
            query = plan.query
            alike = (query.outputs, query.having, query.emit_empty, plan.rows, plan.failures, plan.columns)
            together.setdefault(alike, []).append(at)
        return [Kin(tuple(members), SelectList(self.plans[members[0]])) for members in together.values()]

    def horizon(self, punctuation: int) -> int:
        return horizon(punctuation, {plan.query.window for plan in self.plans})

    def close(self, *, after: int, upto: int, latest: int, stopped: set[str]) -> Iterator[ResultChunk]:
        failed: dict[int, int] = {}
        for low, high in self._stretches(after, upto, latest):
            owner, start, end = self._closing(low, high, latest, stopped)
            step = max(1, CELLS_AT_ONCE // max(1, len(self.store.fragments)))
            for piece in range(0, len(owner), step):
                part = slice(piece, piece + step)
                yield from self._close_piece(owner[part], self._runs(start[part], end[part]), failed)

    def _stretches(self, after: int, upto: int, latest: int) -> Iterator[tuple[int, int]]:
        """The time between two punctuations in pieces that no query has too many windows in, however long it is."""
        windows = [plan.query.window for plan in self.plans]
        first = int(self.store.starts[0]) if len(self.store.starts) else latest
        low = after if self.begun else max(after, first)
        high = min(upto, latest + max(window.range for window in windows))
        stride = WINDOWS_AT_ONCE * min(window.slide for window in windows)
        while high - low > stride:
            yield after, low + stride
            after = low = low + stride
        yield after, upto

    def _closing(self, after: int, upto: int, latest: int, stopped: set[str]) -> tuple[Array, Array, Array]:
        """For every window that closes: the query it belongs to, its start and its end, in order of end."""
        owners, starts, ends = [], [], []
        for at, plan in enumerate(self.plans):
            window, name = plan.query.window, plan.query.name
            if name in stopped:
                continue
            ids = windows_closing(self.store.starts, after=after, upto=upto, window=window)
            if plan.query.emit_empty:
                ids = with_empty(ids, after=after, upto=upto, latest=latest, window=window, begun=name in self.begun)
                self.begun |= {name} if len(ids) else set()
            low, high = bounds(ids, window)
            owners.append(np.full(len(ids), at))
            starts.append(low)
            ends.append(high)
        if not owners:
            nothing = np.empty(0, dtype=np.int64)
            return nothing, nothing, nothing
        owner, start, end = np.concatenate(owners), np.concatenate(starts), np.concatenate(ends)
        order = np.lexsort((owner, end))
        return owner[order], start[order], end[order]

    def _runs(self, start: Array, end: Array) -> Runs:
        slices = self.store.starts
        return Runs(np.searchsorted(slices, start), np.searchsorted(slices, end), start, end)

    def _close_piece(self, owner: Array, runs: Runs, failed: dict[int, int]) -> Iterator[ResultChunk]:
        combined, broken = self._combined(owner, runs)
        for kin in self.kin:
            rows = np.nonzero(np.isin(owner, kin.members))[0]
            if len(rows):
                rows = rows[np.argsort(owner[rows], kind="stable")]
                states = {at: self._at(combined[at], rows) for at in kin.select.plan.columns}
                yield from self._close_kin(kin, owner[rows], runs.at(rows), states, broken[rows], failed)

    def _combined(self, owner: Array, runs: Runs) -> tuple[dict[int, tuple[State, Array]], Array]:
        """Each column's state of windows × groups for the windows whose queries use it, and where each window is in it.

        Besides, for each window the rows on which its query's predicate failed, as far as cells tell them.
        """
        out: dict[int, tuple[State, Array]] = {}
        broken = np.zeros(len(owner), dtype=np.int64)
        for at, column in enumerate(self.store.columns):
            users = [number for number, plan in enumerate(self.plans) if at in plan.columns]
            rows = np.nonzero(np.isin(owner, users))[0]
            place = np.full(len(owner), -1)
            place[rows] = np.arange(len(rows))
            state = column.combine_runs(runs.at(rows), self.store.starts)
            if self.store.fragments.axes:
                if any(plan.rows == at for plan in self.plans):
                    broken[rows] = self._broken(state[0], owner[rows])
                state = self._folded(column.partial, state, owner[rows])
            out[at] = state, place
        return out, broken

    def _broken(self, counts: Array, owner: Array) -> Array:
        """Rows in fragments where the predicate of the window's query failed."""
        broken = np.zeros(len(owner), dtype=np.int64)
        asked = self.predicate_of[owner]
        for number in np.unique(asked):
            fold = self.store.fragments.fold(self.predicates[number], Truth.FAILED)
            if len(fold.fragments):
                rows = np.nonzero(asked == number)[0]
                broken[rows] = counts[np.ix_(rows, fold.fragments)].sum(axis=1)
        return broken

    def _folded(self, partial: Partial, state: State, owner: Array) -> State:
        """States of windows × fragments as states of windows × groups, each window by its own query's predicate."""
        width = len(self.store.fragments.groups)
        out = tuple(np.empty((len(owner), width), dtype=lane.dtype) for lane in state)
        asked = self.predicate_of[owner]
        for number in np.unique(asked):
            rows = np.nonzero(asked == number)[0]
            fold = self.store.fragments.fold(self.predicates[number])
            self.store.work.combines += len(rows) * len(fold.fragments)
            for lane, values in zip(out, fold.of(partial, tuple(lane[rows] for lane in state), width), strict=True):
                lane[rows] = values
        return out

    @staticmethod
    def _at(combined: tuple[State, Array], rows: Array) -> State:
        state, place = combined
        chosen = place[rows]
        return tuple(lane[chosen] for lane in state)

    def _close_kin(
        self, kin: Kin, owner: Array, runs: Runs, states: dict[int, State], broken: Array, failed: dict[int, int]
    ) -> Iterator[ResultChunk]:
        plan = kin.select.plan
        order = self.store.fragments.groups.order()
        counted = states[plan.rows][0][:, order] > 0
        if plan.query.emit_empty:
            counted = np.ones_like(counted)
        window, lane = np.nonzero(counted)
        rows = Rows(window, order[lane], runs.start[window], runs.end[window], self.store.fragments.groups.columns())
        table, kept, failures = kin.select.table(rows, states)
        if plan.failures is not None:
            broken = broken + states[plan.failures][0].sum(axis=1)
        errors = self._errors(owner, runs, broken, [(int(window[failure.row]), failure) for failure in failures])
        yield from self._by_query(owner, runs, table, window[kept], errors, failed)

    def _errors(self, owner: Array, runs: Runs, broken: Array, failures: list[tuple[int, Failure]]) -> dict[int, tuple[int, DataError]]:
        """For each query whose data went wrong, the end of the first window it went wrong in, and the error."""
        wrong = [(int(runs.end[window]), int(owner[window]), failure.error) for window, failure in failures]
        wrong += [(int(runs.end[at]), int(owner[at]), failed_rows(int(broken[at]))) for at in np.nonzero(broken)[0]]
        first: dict[int, tuple[int, DataError]] = {}
        for end, number, error in sorted(wrong, key=lambda item: item[:2]):
            first.setdefault(number, (end, error))
        return first

    def _by_query(
        self, owner: Array, runs: Runs, table: pa.Table, window: Array, errors: dict[int, tuple[int, DataError]], failed: dict[int, int]
    ) -> Iterator[ResultChunk]:
        numbers, first, count = np.unique(owner, return_index=True, return_counts=True)
        lows, highs = np.searchsorted(window, first), np.searchsorted(window, first + count)
        for number, at, windows, low, high in zip(numbers, first, count, lows, highs, strict=True):
            run = runs.at(np.arange(at, at + windows))
            end, error = errors.get(int(number), (None, None))
            if number in failed:
                continue
            if end is not None:
                failed[int(number)] = end
                windows = int((run.end < end).sum())
                high = low + int((runs.end[window[low:high]] < end).sum())
            name = self.plans[number].query.name
            slices = int((run.last - run.first).sum())
            yield ResultChunk(name, table.slice(low, high - low), int(windows), slices, error)


def failed_rows(count: int) -> DataError:
    return DataError(
        "every row of a window can be computed",
        values=f"{count} row{'s' if count != 1 else ''} failed: an overflow, a division by zero or a value that cannot be cast",
        way_out="guard the expression (CASE, NULLIF, WHERE) or cast to a wider type",
    )
