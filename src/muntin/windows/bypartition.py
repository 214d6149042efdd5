"""Windows that each partition closes by itself: by its own count of rows, or by the punctuation of its own sub-stream.

A window is cut where blocks of its length meet: it is a suffix of one block and a prefix of the next, one combine per window whatever
RANGE is. Landmark windows are prefixes of their periods.

In: `TupleRows`, and how far each partition was and is. Out: `Ends`, in no order between series. Convention: a row is a slice of its series,
or a tick where windows slide by tuple, and it is held sparsely, by series and tick, since partitions stand wherever their own rows have
brought them: slices × groups would be mostly empty. A step goes over what is held for the partitions that moved, and over no others.
Paper: window-id-2005, sections 3.2 (PATTR, Q4) and 5.1 (punctuations of sub-streams).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from muntin.aggregates.base import Array, LaneType, Partial
from muntin.semantics import LandmarkWindow, SlideOrder, SlidingWindow, TupleSlide, Window
from muntin.timeline import BEGINNING, END
from muntin.windows.bytuple import Ends
from muntin.windows.due import enumerated
from muntin.windows.landmarks import first_wid_since, is_endless, last_closed, wids_of, window_set
from muntin.windows.ranges import Work
from muntin.windows.segments import Places, firsts_of
from muntin.windows.substreams import Closed
from muntin.windows.tupleids import are_ids, partition_ids, with_series
from muntin.windows.tuplerows import States, TupleColumns, TupleRows, chosen, put


@dataclass(frozen=True)
class Blocks:
    """Rows in order with what each begins and ends of its block."""

    rows: TupleRows
    block: Array
    prefixes: States
    suffixes: States
    places: Places
    keys: Array
    high: int

    def position(self, series: Array, ticks: Array) -> Array:
        """The first row of a series at or after a tick."""
        found: Array = np.searchsorted(self.keys, self.places.of(series, np.minimum(ticks, self.high)))
        return found


class PartitionWindows:
    """The windows of one query. The first partials, `telling` of them, count what there is to tell: a window with nothing is not emitted.

    `first_ids` says, per partition, in which of its windows the query takes part first; it is for windows made of slices.
    """

    def __init__(
        self, window: Window, partials: Sequence[Partial], lanes: Sequence[Sequence[LaneType]], *, telling: int = 1
    ) -> None:  # fmt: skip
        self.window, self.telling = window, telling
        self.columns = TupleColumns(partials, lanes)
        self.partition = np.empty(0, dtype=np.int64)  #: of each series
        self.below = np.empty(0, dtype=np.int64)  #: per partition, tuples below its punctuation, for ranks
        self.first_ids = np.empty(0, dtype=np.int64)
        self.parts: list[TupleRows] = []
        self.work = Work()

    @property
    def ticks_held(self) -> int:
        return sum(map(len, self.parts))

    @property
    def held(self) -> TupleRows:
        return self.columns.together(self.parts)

    # -- rows in ----------------------------------------------------------------------------------------------------------------

    def add_series(self, partitions: Array) -> None:
        """The next series, by the numbers of their partitions."""
        self.partition = np.concatenate([self.partition, partitions])
        self.know_partitions(int(self.partition.max(initial=-1)) + 1, since=BEGINNING)

    def know_partitions(self, count: int, *, since: int | Array) -> None:
        """There are so many partitions; the query takes part in windows of the new ones that start at or after `since`."""
        new = max(count - len(self.below), 0)
        self.below = np.concatenate([self.below, np.zeros(new, dtype=np.int64)])
        starts = np.broadcast_to(np.asarray(since, dtype=np.int64), new)
        self.first_ids = np.concatenate([self.first_ids, [self._first_id(one) for one in starts.tolist()]]).astype(np.int64)

    def _first_id(self, since: int) -> int:
        return BEGINNING if since == BEGINNING or isinstance(self.window, TupleSlide) else first_wid_since(since, self.window)

    def absorb(self, rows: TupleRows, reached: Array) -> None:
        """Take a batch in any order, when partitions had come so far. Tuples below their partition's punctuation end no window."""
        late = rows.ticks < reached[self.partition[rows.series]]
        if isinstance(self.window, TupleSlide) and late.any():
            if self.window.order is SlideOrder.RANK:
                np.add.at(self.below, self.partition[rows.series[late]], rows.marks[late])
            rows = replace(rows, marks=np.where(late, 0, rows.marks))
        if len(rows):
            self.parts.append(rows)

    # -- windows out ------------------------------------------------------------------------------------------------------------

    def close(self, closed: Closed, latest: Array) -> Iterator[Ends]:
        """The windows that end as partitions come from `closed.before` to `closed.now`; the last row of each is numbered `latest`."""
        moved = closed.now > closed.before
        if not moved.any():
            return
        rows = self.held
        moves = moved[self.partition[rows.series]]
        blocks = self._blocks(rows.where(moves))
        self.parts = [part for part in (rows.where(~moves), self._kept(blocks.rows, closed.now)) if len(part)]
        if isinstance(self.window, TupleSlide):
            yield from self._ends_at_tuples(self.window, blocks, closed)
        else:
            yield from self._ends_of_slices(self.window, blocks, closed, latest)

    def _blocks(self, rows: TupleRows) -> Blocks:
        low, high = int(rows.ticks.min(initial=END)), int(rows.ticks.max(initial=BEGINNING)) + 1
        places = Places(len(self.partition), min(low, high), high, rows.ticks)
        rows = self.columns.in_order(rows, places)
        block = self._block_of(rows.ticks)
        firsts = firsts_of(block, rows.series)
        prefixes, suffixes = (self.columns.prefixes(rows, firsts).states, self.columns.suffixes(rows, firsts).states)
        self.work.combines += 2 * len(rows) * len(self.columns.partials)
        return Blocks(rows, block, prefixes, suffixes, places, places.of(rows.series, rows.ticks), high)

    def _block_of(self, ticks: Array) -> Array:
        if isinstance(self.window, LandmarkWindow):
            return (
                np.zeros(len(ticks), dtype=np.int64) if self.window.period is None else (ticks - self.window.offset) // self.window.period
            )
        return ticks // self.window.range

    def _ends_at_tuples(self, window: TupleSlide, blocks: Blocks, closed: Closed) -> Iterator[Ends]:
        rows, partition = blocks.rows, self.partition[blocks.rows.series]
        closing = np.nonzero((rows.ticks >= closed.before[partition]) & (rows.ticks < closed.now[partition]))[0]
        if len(self.partition) == len(self.below):  # every series is a partition: windows end at its own rows
            ids = closing[are_ids(window, partition[closing], rows.marks[closing], self.below)]
            yield from self._ends(blocks, rows.series[ids], rows.ticks[ids], rows.ticks[ids] - window.range + 1, rows.ticks[ids] + 1)
        else:
            for series, ticks in with_series(*partition_ids(window, rows.at(closing), self.partition, self.below), self.partition):
                yield from self._ends(blocks, series, ticks, ticks - window.range + 1, ticks + 1)

    def _ends_of_slices(self, window: SlidingWindow | LandmarkWindow, blocks: Blocks, closed: Closed, latest: Array) -> Iterator[Ends]:
        """Every window that holds a slice of its series, once: a row begins where the row before it in its series left off."""
        series, partition = blocks.rows.series, self.partition[blocks.rows.series]
        first, last = wids_of(blocks.rows.ticks, window)
        upto = last_closed(closed.now, window)
        if is_endless(window):  # at the end of the input, up to the first that holds the last row
            upto = np.where(closed.now >= END, last_closed(latest, window) + 1, upto)
        low = np.maximum(np.maximum(first, last_closed(closed.before[partition], window) + 1), self.first_ids[partition])
        high = np.minimum(last, np.asarray(upto)[partition])
        low[1:] = np.where(series[1:] == series[:-1], np.maximum(low[1:], high[:-1] + 1), low[1:])
        owner, ids = enumerated(low, np.maximum(high - low + 1, 0))
        start, end = window_set([window]).bounds(np.zeros(len(ids), dtype=np.int64), ids)
        yield from self._ends(blocks, series[owner], end, start, end)

    def _ends(self, blocks: Blocks, series: Array, ids: Array, start: Array, end: Array) -> Iterator[Ends]:
        """What each series holds in `[start, end)`, without windows that have nothing to tell."""
        if not len(series):
            return
        first, last = blocks.position(series, start), blocks.position(series, end) - 1
        there = np.nonzero(last >= first)[0]
        first, last, start, end = first[there], last[there], self._block_of(start[there]), self._block_of(end[there] - 1)
        states = self.columns.blank(len(there))
        for part, at, block in ((blocks.prefixes, last, end), (blocks.suffixes, first, start)):
            mine = np.nonzero((blocks.block[at] == block) & ((start != end) | (part is blocks.prefixes)))[0]
            put(states, mine, self.columns.combined(chosen(part, at[mine]), chosen(states, mine)))
        self.work.combines += len(there) * len(self.columns.partials)
        told = np.nonzero(np.logical_or.reduce([count[0] > 0 for count in states[: self.telling]]))[0]
        if len(told):
            yield Ends(series[there[told]], ids[there[told]], chosen(states, told))

    def _kept(self, rows: TupleRows, now: Array) -> TupleRows:
        """What open windows may need; of landmark windows, what is closed of a period in one."""
        reached = now[self.partition[rows.series]]
        if isinstance(self.window, TupleSlide):
            return rows.where(rows.ticks > reached - self.window.range)
        open_ids = np.asarray(last_closed(reached, self.window)) + 1
        start, _ = window_set([self.window]).bounds(np.zeros(len(rows), dtype=np.int64), open_ids)
        needed = rows.ticks >= start
        rows, reached = rows.where(needed), reached[needed]
        return self._merged(rows, reached) if isinstance(self.window, LandmarkWindow) else rows

    def _merged(self, rows: TupleRows, reached: Array) -> TupleRows:
        """No window that is still open ends among closed slices of a period: they become one."""
        if not len(rows):
            return rows
        block, is_open = self._block_of(rows.ticks), rows.ticks >= reached
        begins = np.zeros(len(rows), dtype=bool)
        begins[firsts_of(block, rows.series)] = True
        firsts = np.nonzero(begins | is_open)[0]
        states = self.columns.reduced(rows.states, firsts)
        return TupleRows(rows.series[firsts], rows.ticks[firsts], np.add.reduceat(rows.marks, firsts), states)
