"""Runs by subtraction: running totals over slices, for differential partials only, where subtracting is exact.

One combine per window and group. Paper: panes-2005, section 3.2.2, formula (3.2) with both panes' sums already at hand.
Convention: row i of the state holds everything before slice i, so there is one row more than there are slices.
"""

from __future__ import annotations

import numpy as np

from muntin.aggregates.base import Array, Differential, State
from muntin.windows.matrix import LaneMatrix
from muntin.windows.ranges import RangeColumn, Runs, Work


class PrefixColumn(RangeColumn):
    partial: Differential

    def __init__(self, partial: Differential, lanes: tuple[LaneMatrix, ...], work: Work) -> None:
        super().__init__(partial, lanes, work)
        for lane in lanes:
            lane.insert_rows(np.zeros(1, dtype=np.int64))

    def insert_slices(self, positions: Array, instants: Array) -> None:
        for lane in self.lanes:
            lane.insert_rows(positions + 1, lane.view[positions])

    def absorb(self, slices: Array, groups: Array, state: State, starts: Array) -> None:
        """A late row adds to every running total after it; only touched groups are gone over."""
        first = int(slices.min())
        touched, column = np.unique(groups, return_inverse=True)
        shape = (len(starts) - first, len(touched))
        added = tuple(np.full(shape, identity, dtype=lane.dtype) for identity, lane in zip(self.partial.identity(), state, strict=True))
        for cells, lane in zip(added, state, strict=True):
            cells[slices - first, column] = lane
        running = self.partial.accumulate(added)
        self.work.combines += 2 * shape[0] * shape[1]
        where = slice(None) if len(touched) == self.state[0].shape[1] else touched
        current = tuple(view[first + 1 :, where] for view in self.state)
        for view, lane in zip(self.state, self.partial.combine(current, running), strict=True):
            view[first + 1 :, where] = lane

    def combine_runs(self, runs: Runs, starts: Array) -> State:
        ends = tuple(view[runs.last] for view in self.state)
        self.work.combines += ends[0].size
        return self.partial.uncombine(ends, tuple(view[runs.first] for view in self.state))

    def cells(self) -> State:
        return self.partial.uncombine(tuple(view[1:] for view in self.state), tuple(view[:-1] for view in self.state))

    def forget(self, punctuation: int) -> None:
        """Running totals hold nothing but what slices in hand need."""
