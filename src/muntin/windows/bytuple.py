"""Slide-by-tuple windows in one pass: batches of partials per distinct tick in, a result per window-id and series out.

A window `(w - RANGE, w]` begins to count a tuple at the tuple's start bin and stops at its end bin, RANGE later (window-id-2005, 6.1).
The bins' values are found in bulk: ticks are cut into blocks of RANGE, so a window is a prefix of its own block and a suffix of the block
before: one combine per window, whatever RANGE is, for every partial. Prefixes are carried on from punctuation to punctuation; the
suffixes of a block are made once, when the block is complete.

In: `TupleRows`, punctuations. Out: `Ends`, in no order between series. Convention: rows at or above the punctuation wait, in no order;
below it they are held in the block in hand and, as suffixes, in the block before: distinct ticks of less than twice the last RANGE, no
tuple. Rows that come below the punctuation end no window, but count in the open ones.
Not supported: results corrected after they were emitted.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from muntin.aggregates.base import Array, LaneType, Partial
from muntin.semantics import SlideOrder, TupleSlide
from muntin.timeline import BEGINNING
from muntin.windows.ranges import Work
from muntin.windows.segments import Places, firsts_of
from muntin.windows.tupleids import are_ids, partition_ids, with_series
from muntin.windows.tuplerows import Closing, States, TupleColumns, TupleRows, Waiting, appended, chosen, put


@dataclass(frozen=True)
class Ends:
    """Windows that closed: a series, the tick its window ends at, and the state of each partial."""

    series: Array
    ticks: Array
    states: States


class TupleWindows:
    """The windows of one query. The first partials, `telling` of them, count what there is to tell of, the rows that pass WHERE above all:
    a window in which none of them counts anything is emitted only if `empty`.
    """

    def __init__(
        self,
        window: TupleSlide,
        partials: Sequence[Partial],
        lanes: Sequence[Sequence[LaneType]],
        *,
        telling: int = 1,
        empty: bool = False,
    ) -> None:
        self.window, self.telling, self.empty = window, telling, empty
        self.columns = TupleColumns(partials, lanes)
        self.punctuation = BEGINNING
        self.block = BEGINNING  #: the one in hand: that of the last tick below the punctuation
        self.partition = np.empty(0, dtype=np.int64)  #: of each series
        self.below = np.empty(0, dtype=np.int64)  #: per partition, tuples below the punctuation, for ranks
        self.waiting: list[Waiting] = []
        self.current: list[TupleRows] = []  #: closed rows of the block in hand
        self.carried = self.columns.blank(0)  #: per series, all of the block in hand
        self.previous = self.columns.no_rows()  #: suffixes of the block before
        self.keyed: tuple[TupleRows, tuple[int, ...], Array] | None = None  #: the last table, and its places
        self.trim_at = BEGINNING
        self.work = Work()

    def begin_at(self, punctuation: int) -> None:
        """Windows without rows whose punctuation is known already."""
        self.punctuation = punctuation
        if punctuation > BEGINNING:
            self.block = (punctuation - 1) // self.window.range
            self.trim_at = punctuation - self.window.range

    @property
    def ticks_held(self) -> int:
        return len(self.previous) + sum(map(len, self.current)) + sum(len(part.rows) for part in self.waiting)

    # -- rows in ----------------------------------------------------------------------------------------------------------------

    def add_series(self, partitions: Array) -> None:
        """The next series, by the numbers of their partitions."""
        self.partition = np.concatenate([self.partition, partitions])
        more = int(self.partition.max(initial=-1)) + 1 - len(self.below)
        self.below = np.concatenate([self.below, np.zeros(max(more, 0), dtype=np.int64)])
        self.carried = appended(self.carried, self.columns.blank(len(partitions)))

    def absorb(self, rows: TupleRows) -> int:
        """Take a batch, in any order, a series and tick once or more often. Returns how many of its rows came late."""
        late = rows.ticks < self.punctuation
        if late.any():
            self._absorb_late(rows.where(late))
        self.wait(rows.where(~late))
        return int(late.sum())

    def _absorb_late(self, rows: TupleRows) -> None:
        if self.window.order is SlideOrder.RANK:
            np.add.at(self.below, self.partition[rows.series], rows.marks)
        rows = replace(rows, marks=np.zeros(len(rows), dtype=np.int64))
        blocks = rows.ticks // self.window.range
        in_hand, before = rows.where(blocks == self.block), rows.where(blocks == self.block - 1)
        self.hold(in_hand)
        if len(before):
            self.previous = self._with_late(before)

    def hold(self, rows: TupleRows) -> None:
        """Closed rows of the block in hand, in any order: they stay, and are carried."""
        if not len(rows):
            return
        self.current.append(rows)
        rows = self.columns.in_order(rows, self._places(self.block, rows.ticks))
        firsts = firsts_of(rows.series)
        series = rows.series[firsts]
        put(self.carried, series, self.columns.combined(chosen(self.carried, series), self.columns.reduced(rows.states, firsts)))

    def _with_late(self, late: TupleRows) -> TupleRows:
        """The suffixes of the block before, with late rows in them: at each tick of both, what follows in one and in the other."""
        places = self._places(self.block - 1, self.previous.ticks, late.ticks)
        late = self._suffixes(self.columns.in_order(late, places))
        both = self.columns.in_order(self.columns.together([self.previous, late]), places)
        states = self.columns.blank(len(both))
        for table in (self.previous, late):
            states = self.columns.combined(states, self._found(table, places, both.series, both.ticks, both.ticks // self.window.range))
        self.work.rebuilt += len(both)
        return replace(both, states=states)

    # -- windows out ------------------------------------------------------------------------------------------------------------

    def close(self, punctuation: int) -> Iterator[Ends]:
        """The windows that end below the punctuation. Exhaust it before the next step."""
        if punctuation <= self.punctuation:
            return
        closing = self._advance(punctuation, self._taken(punctuation))
        if len(self.partition) == len(self.below):  # every series is a partition: windows end at its own rows
            ids = np.nonzero(are_ids(self.window, self.partition[closing.rows.series], closing.rows.marks, self.below))[0]
            yield from self._ends(closing, closing.rows.series[ids], closing.rows.ticks[ids], chosen(closing.prefixes.states, ids))
        else:
            ended = partition_ids(self.window, closing.rows, self.partition, self.below)
            for series, ticks in with_series(*ended, self.partition):
                yield from self._ends(closing, series, ticks, self._prefix_at(closing, series, ticks))

    def wait(self, rows: TupleRows) -> None:
        """Rows at or above the punctuation."""
        if len(rows):
            self.waiting.append(Waiting(rows, int(rows.ticks.min())))

    def _taken(self, punctuation: int) -> TupleRows:
        """The rows below the punctuation; those of a batch that is wholly above it are not looked at."""
        parts = [part.rows for part in self.waiting if part.least < punctuation]
        self.waiting = [part for part in self.waiting if part.least >= punctuation]
        for rows in parts:
            self.wait(rows.where(rows.ticks >= punctuation))
        return self.columns.together([rows.where(rows.ticks < punctuation) for rows in parts])

    def _advance(self, punctuation: int, rows: TupleRows) -> Closing:
        """Everything below the punctuation is closed, and the block in hand is the one before it."""
        places = self._places(self.block - 1, rows.ticks, self.previous.ticks, *(part.ticks for part in self.current))
        rows = self.columns.in_order(rows, places)
        blocks = rows.ticks // self.window.range
        old, carried, before = self.block, self.carried, self.previous
        self.punctuation, self.block = punctuation, (punctuation - 1) // self.window.range
        prefixes = self._prefixes(rows, blocks, old)
        complete = self._complete(rows, blocks, places) if self.block > old else self.columns.no_rows()
        self._go_on(rows, prefixes, blocks == self.block)
        self._trim()
        return Closing(rows, prefixes, carried, old, tuple(table for table in (before, complete) if len(table)), places)

    def _places(self, block: int, ticks: Array, *others: Array) -> Places:
        """From the beginning of a block on. The other ticks are not above these, nor beyond the block after it."""
        begun = self.block != BEGINNING
        low = block * self.window.range if begun else int(ticks.min()) if len(ticks) else 0
        high = max(int(ticks.max(initial=low)), low + 2 * self.window.range)
        return Places(len(self.partition), low, high, ticks, *others)

    def _prefixes(self, rows: TupleRows, blocks: Array, old: int) -> TupleRows:
        """Each row with all before it in its series and block, those of earlier punctuations included."""
        prefixes = self.columns.prefixes(rows, firsts_of(blocks, rows.series))
        self.work.combines += len(rows) * len(self.columns.partials)
        going_on = np.nonzero(blocks == old)[0]
        if len(going_on):
            carried = chosen(self.carried, rows.series[going_on])
            put(prefixes.states, going_on, self.columns.combined(carried, chosen(prefixes.states, going_on)))
        return prefixes

    def _complete(self, rows: TupleRows, blocks: Array, places: Places) -> TupleRows:
        """The suffixes of the blocks that are complete now; the last of them becomes the block before."""
        done = self.columns.together([*self.current, rows.where(blocks < self.block)])
        complete = self._suffixes(self.columns.in_order(done, places))
        self.previous = complete.where(complete.ticks // self.window.range == self.block - 1)
        self.trim_at = self.block * self.window.range - self.window.range // 2
        self.current, self.carried = [], self.columns.blank(len(self.partition))
        return complete

    def _go_on(self, rows: TupleRows, prefixes: TupleRows, stays: Array) -> None:
        """Rows of the block in hand stay, and the last prefix of each series is carried."""
        in_hand = np.nonzero(stays)[0]
        if not len(in_hand):
            return
        self.current.append(rows.where(stays))
        last = in_hand[np.append(firsts_of(rows.series[in_hand])[1:], len(in_hand)) - 1]
        self.carried = tuple(tuple(lane.copy() for lane in state) for state in self.carried)  # a closing may still read the old
        put(self.carried, rows.series[last], chosen(prefixes.states, last))

    def _suffixes(self, rows: TupleRows) -> TupleRows:
        self.work.combines += len(rows) * len(self.columns.partials)
        return self.columns.suffixes(rows, firsts_of(rows.ticks // self.window.range, rows.series))

    def _trim(self) -> None:
        """Forget ticks of the block before that no open window reaches, half of what is left at a time."""
        reached = self.punctuation - self.window.range
        if reached >= self.trim_at:
            self.previous = self.previous.at(np.nonzero(self.previous.ticks > reached)[0])  # a copy: a part would keep the whole
            self.trim_at = reached + max(1, (self.block * self.window.range - reached) // 2)

    # -- values -----------------------------------------------------------------------------------------------------------------

    def _ends(self, closing: Closing, series: Array, ticks: Array, prefixes: States) -> Iterator[Ends]:
        """Prefixes completed by the suffixes of the blocks before, without windows that hold nothing."""
        states, first, before = prefixes, ticks - self.window.range + 1, ticks // self.window.range - 1
        for table in closing.tables:
            states = self.columns.combined(self._found(table, closing.places, series, first, before), states)
        self.work.combines += len(ticks) * len(self.columns.partials)
        held = np.logical_or.reduce([count[0] > 0 for count in states[: self.telling]])
        if not self.empty and not held.all():
            rows = np.nonzero(held)[0]
            series, ticks, states = series[rows], ticks[rows], chosen(states, rows)
        if len(ticks):
            yield Ends(series, ticks, states)

    def _found(self, table: TupleRows, places: Places, series: Array, ticks: Array, blocks: Array) -> States:
        """The suffix from a tick on, of a series in a block; nothing where the table has none."""
        if not len(table):
            return self.columns.blank(len(ticks))
        at = np.searchsorted(self._keys(table, places), places.of(series, ticks))
        near = np.minimum(at, len(table) - 1)
        held = (at < len(table)) & (table.ticks[near] // self.window.range == blocks)
        if len(self.partition) > 1:
            held &= table.series[near] == series
        return self._at(held, near, table.states)

    def _keys(self, table: TupleRows, places: Places) -> Array:
        """The places of a table's rows; those of the block before are made once per block, not with every punctuation."""
        if table is not self.previous or places.meaning is None:
            return places.of(table.series, table.ticks)
        if self.keyed is None or self.keyed[0] is not table or self.keyed[1] != places.meaning:
            self.keyed = table, places.meaning, places.of(table.series, table.ticks)
        return self.keyed[2]

    def _prefix_at(self, closing: Closing, series: Array, ticks: Array) -> States:
        """All of a series in the block of a tick, up to it, where the series need not have a row at the tick."""
        rows, blocks = closing.prefixes, ticks // self.window.range
        at = np.searchsorted(closing.places.of(rows.series, rows.ticks), closing.places.of(series, ticks), side="right") - 1
        near = np.maximum(at, 0)
        held = (at >= 0) & (rows.series[near] == series) & (rows.ticks[near] // self.window.range == blocks)
        result = self._at(held, near, rows.states)
        earlier = np.nonzero(~held & (blocks == closing.carried_block))[0]
        put(result, earlier, chosen(closing.carried, series[earlier]))
        return result

    def _at(self, held: Array, rows: Array, states: States) -> States:
        """States at rows where they are held, nothing elsewhere."""
        if held.all():
            return chosen(states, rows)
        result = self.columns.blank(len(held))
        put(result, np.nonzero(held)[0], chosen(states, rows[held]))
        return result
