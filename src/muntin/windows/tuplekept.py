"""Rows of slide-by-tuple windows that are kept for early and for corrected results, and windows evaluated anew from them.

In: the rows of batches as they came. Out: `Ends` of open windows with something new, and of closed windows that late rows changed.
Convention: the bins know nothing of it, so results of windows that close never depend on what is kept here. Kept are the ticks that a
window can still ask for: those of the last RANGE and of as long as windows are corrected. As in the bins, a window is a prefix of its own
block of RANGE and a suffix of the block before.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from muntin.aggregates.base import Array
from muntin.windows.bytuple import Ends, TupleWindows
from muntin.windows.corrections import Revisions
from muntin.windows.segments import Places, firsts_of
from muntin.windows.tupleids import partition_ids, with_series
from muntin.windows.tuplerows import TupleRows, chosen, put

#: Rows that are not worth going over again.
FEWEST = 4096


@dataclass(frozen=True)
class Again:
    """Results that are emitted once more; which of them are not a window's first."""

    ends: Ends
    was_emitted: Array


class TupleKept:
    """Of one query. `told` are rows that early results have told of, `news` those since."""

    def __init__(self, windows: TupleWindows, corrected_for: int) -> None:
        self.windows, self.corrected_for = windows, corrected_for
        self.told: list[TupleRows] = []
        self.news: list[TupleRows] = []
        self.revisions = Revisions()
        self._prune_at = FEWEST

    # -- rows in ----------------------------------------------------------------------------------------------------------------

    def add(self, rows: TupleRows) -> None:
        """A batch, before the bins take it. A row that came too late to be corrected ends no window."""
        if len(rows):
            gone = rows.ticks + 1 + self.corrected_for <= self.windows.punctuation
            self.news.append(replace(rows, marks=np.where(gone, 0, rows.marks)))

    def prune(self) -> None:
        """Forget ticks that no window asks for any more, once there are twice as many as after the last time."""
        if sum(map(len, [*self.told, *self.news])) < self._prune_at:
            return
        least = self.windows.punctuation - self.corrected_for - self.windows.window.range
        self.told, self.news = (self._recent(parts, least) for parts in (self.told, self.news))
        self.revisions.forget(self.windows.punctuation - self.corrected_for - 1)
        self._prune_at = max(FEWEST, 2 * sum(map(len, [*self.told, *self.news])))

    def _recent(self, parts: list[TupleRows], least: int) -> list[TupleRows]:
        return [self.windows.columns.together([part.where(part.ticks > least) for part in parts])]

    # -- windows out ------------------------------------------------------------------------------------------------------------

    def early(self) -> Iterator[Ends]:
        """Open windows that hold anything new, as they are now. Then it is none any more."""
        windows = self.windows
        waiting = windows.columns.together([part.rows for part in windows.waiting])
        news = windows.columns.together(self.news)
        if len(waiting) and len(news):
            table = Table(windows, [*self.told, *self.news])
            for series, ticks in with_series(
                *partition_ids(windows.window, waiting, windows.partition, windows.below.copy()), windows.partition
            ):
                gained = table.rows_within(news, series, ticks) > 0
                yield table.ends(series[gained], ticks[gained])
        self.told, self.news = [*self.told, *self.news], []

    def corrected(self, late: TupleRows) -> Iterator[Again]:
        """Closed windows that late rows change or make; `late` has just been added."""
        windows, closed = self.windows, self.windows.punctuation
        table = Table(windows, [*self.told, *self.news])
        partition, ticks, is_new = self._closed_ids(late, least=closed - self.corrected_for, closed=closed)
        made = set(zip(partition[is_new].tolist(), ticks[is_new].tolist(), strict=True))
        for series, ends in with_series(partition, ticks, windows.partition):
            of = windows.partition[series].tolist()
            new = np.array([pair in made for pair in zip(of, ends.tolist(), strict=True)], dtype=bool)
            gained = table.told_within(late, series, ends) > 0
            wanted = np.nonzero(gained | new)[0]
            found = table.ends(series[wanted], ends[wanted])
            before = found.states[0][0] - table.rows_within(late, found.series, found.ticks)
            yield Again(found, ~new[wanted] & ((before > 0) | windows.empty))

    def _closed_ids(self, late: TupleRows, *, least: int, closed: int) -> tuple[Array, Array, Array]:
        """Windows that are closed and still corrected, by partition and tick; and whether a late row made them."""
        parts = [*self.told, *self.news, late]
        series, ticks, marks = (np.concatenate([getattr(part, name) for part in parts]) for name in ("series", "ticks", "marks"))
        is_late = np.arange(len(ticks)) >= len(ticks) - len(late)  # late rows are among the others too
        near = np.nonzero((ticks >= least) & (ticks < closed) & (marks > 0))[0]
        partition = self.windows.partition[series[near]]
        order = np.lexsort((partition, ticks[near]))
        partition, ticks, marks, is_late = partition[order], ticks[near][order], marks[near][order], is_late[near][order]
        firsts = firsts_of(ticks, partition)
        if not len(firsts):
            return partition, ticks, is_late
        others, of_late = (np.add.reduceat(np.where(some, marks, 0), firsts) for some in (~is_late, is_late))
        return partition[firsts], ticks[firsts], others == of_late


class Table:
    """Rows in order of series and tick, with the prefixes and suffixes of their blocks."""

    def __init__(self, windows: TupleWindows, parts: list[TupleRows]) -> None:
        self.columns, self.range, self.telling = windows.columns, windows.window.range, windows.telling
        rows = self.columns.together(parts)
        low, high = (int(rows.ticks.min()) - self.range, int(rows.ticks.max())) if len(rows) else (0, 0)
        self.places = Places(len(windows.partition), low, high, rows.ticks)
        rows = self.columns.in_order(rows, self.places)
        firsts = firsts_of(rows.ticks // self.range, rows.series)
        self.rows, self.keys = rows, self.places.of(rows.series, rows.ticks)
        self.prefixes, self.suffixes = self.columns.prefixes(rows, firsts), self.columns.suffixes(rows, firsts)

    def ends(self, series: Array, ticks: Array) -> Ends:
        """The windows of series that end at ticks."""
        upto = np.searchsorted(self.keys, self.places.of(series, ticks), side="right") - 1
        since = np.searchsorted(self.keys, self.places.of(series, ticks - self.range + 1))
        block = ticks // self.range
        tails, heads = self._at(self.suffixes, since, series, block - 1), self._at(self.prefixes, upto, series, block)
        return Ends(series, ticks, self.columns.combined(tails.states, heads.states))

    def _at(self, table: TupleRows, at: Array, series: Array, block: Array) -> TupleRows:
        """Rows of a table where they are of the series and the block; nothing elsewhere."""
        near = np.clip(at, 0, max(len(table) - 1, 0))
        held = np.nonzero((at == near) & (table.series[near] == series) & (table.ticks[near] // self.range == block))[0]
        states = self.columns.blank(len(at))
        put(states, held, chosen(table.states, near[held]))
        return TupleRows(series, at, at, states)

    def rows_within(self, rows: TupleRows, series: Array, ticks: Array) -> Array:
        """How many of some rows pass WHERE, in each window."""
        return self._within(rows, rows.states[0][0], series, ticks)

    def told_within(self, rows: TupleRows, series: Array, ticks: Array) -> Array:
        """The same, with those on which an expression failed."""
        return self._within(rows, np.add.reduce([count[0] for count in rows.states[: self.telling]]), series, ticks)

    def _within(self, rows: TupleRows, counts: Array, series: Array, ticks: Array) -> Array:
        keys = self.places.of(rows.series, rows.ticks)
        order = np.argsort(keys, kind="stable")
        keys, totals = keys[order], np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(counts[order])])
        upto = np.searchsorted(keys, self.places.of(series, ticks), side="right")
        found: Array = totals[upto] - totals[np.searchsorted(keys, self.places.of(series, ticks - self.range + 1))]
        return found
