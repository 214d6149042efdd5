"""Runs by subtraction: running totals over slices, for differential partials only, where subtracting is exact.

One combine per window and strand. Paper: panes-2005, section 3.2.2, formula (3.2) with both panes' sums already at hand.
Convention: row i of the state holds everything before slice i, so there is one row more than there are slices.
"""

from __future__ import annotations

import numpy as np

from muntin.aggregates.base import Array, Differential, State
from muntin.plan.numbering import distinct, ranked
from muntin.windows.arena import MEMORY, Arena
from muntin.windows.matrix import LaneMatrix
from muntin.windows.ranges import Pairs, RangeColumn, Runs, Work


class PrefixColumn(RangeColumn):
    partial: Differential

    def __init__(self, partial: Differential, lanes: tuple[LaneMatrix, ...], work: Work, arena: Arena = MEMORY) -> None:
        super().__init__(partial, lanes, work, arena)
        for lane in lanes:
            lane.insert_rows(np.zeros(1, dtype=np.int64))

    def insert_slices(self, positions: Array, instants: Array) -> None:
        for lane in self.lanes:
            lane.insert_rows(positions + 1, lane.view[positions])

    def absorb(self, slices: Array, strands: Array, state: State, starts: Array) -> None:
        """A row adds to every running total after it. Strands go by how far back they were reached, so a late one costs only its own."""
        touched, place = ranked(strands, self.state[0].shape[1])
        first = np.full(len(touched), len(starts))
        np.minimum.at(first, place, slices)
        # frexp's exponent doubles the depth from class to class, so that no strand is gone over twice as far as it needs.
        classes = np.frexp((len(starts) - first).astype(np.float64))[1]
        for depth in distinct(classes):
            chosen = classes == depth
            cells = np.nonzero(chosen[place])[0]
            column = (np.cumsum(chosen) - 1)[place[cells]]
            self._add(slices[cells], touched[chosen], column, tuple(lane[cells] for lane in state), len(starts))

    def _add(self, slices: Array, touched: Array, column: Array, state: State, count: int) -> None:
        first = int(slices.min())
        shape = (count - first, len(touched))
        added = tuple(np.full(shape, identity, dtype=lane.dtype) for identity, lane in zip(self.partial.identity(), state, strict=True))
        for cells, lane in zip(added, state, strict=True):
            cells[slices - first, column] = lane
        running = self.partial.accumulate(added)
        self.work.combines += 2 * shape[0] * shape[1]
        where = slice(None) if len(touched) == self.state[0].shape[1] else touched
        current = tuple(view[first + 1 :, where] for view in self.state)
        for view, lane in zip(self.state, self.partial.combine(current, running), strict=True):
            view[first + 1 :, where] = lane

    def combine(self, runs: Runs, pairs: Pairs, starts: Array) -> State:
        last, first = runs.last[pairs.run], runs.first[pairs.run]
        self.work.combines += len(pairs)
        return self.partial.uncombine(
            tuple(view[last, pairs.strand] for view in self.state), tuple(view[first, pairs.strand] for view in self.state)
        )

    def combine_apart(self, runs: Runs, pairs: Pairs, starts: Array) -> State:
        """A subtraction leaves no trace."""
        return self.combine(runs, pairs, starts)

    def cells(self, first: int = 0, last: int | None = None) -> State:
        after = tuple(view[1:][first:last] for view in self.state)
        return self.partial.uncombine(after, tuple(view[:-1][first:last] for view in self.state))

    def forget(self, punctuation: int) -> None:
        """Running totals hold nothing but what slices in hand need."""
