"""What it means to combine runs of slices in amortised O(1) combines per window and group, whatever RANGE/SLIDE is.

In: states at (slice, group) cells, then runs of slices `[first, last)`. Out: a state of shape windows × groups.
Two ways: `prefix.PrefixColumn` subtracts running totals, `blocks.BlockColumn` only combines. Both keep this contract.
Convention: calls of `combine_runs` come in ascending order of punctuation; within one call runs come in any order.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

from muntin.aggregates.base import Array, Partial, State
from muntin.windows.matrix import LaneMatrix


@dataclass(frozen=True)
class Runs:
    """Windows as runs of slices: positions `[first, last)` and the instants `[start, end)` they stand for."""

    first: Array
    last: Array
    start: Array
    end: Array

    def __len__(self) -> int:
        return len(self.first)

    def at(self, rows: Array) -> Runs:
        return Runs(self.first[rows], self.last[rows], self.start[rows], self.end[rows])


@dataclass
class Work:
    """What was actually done: cells combined, and cells combined again because a late row reached them."""

    combines: int = 0
    rebuilt: int = 0


class RangeColumn(ABC):
    """The states of one partial over slices × groups."""

    def __init__(self, partial: Partial, lanes: tuple[LaneMatrix, ...], work: Work) -> None:
        self.partial = partial
        self.lanes = lanes
        self.work = work

    @property
    def state(self) -> State:
        return tuple(lane.view for lane in self.lanes)

    def widen(self, groups: int) -> None:
        for lane in self.lanes:
            lane.widen(groups)

    def keep_groups(self, groups: Array) -> None:
        for lane in self.lanes:
            lane.keep_groups(groups)

    def drop_slices(self, count: int) -> None:
        for lane in self.lanes:
            lane.drop_rows(count)

    @abstractmethod
    def insert_slices(self, positions: Array, instants: Array) -> None:
        """New slices starting at `instants`, before the given positions, ascending, as `numpy.insert` counts them."""

    @abstractmethod
    def absorb(self, slices: Array, groups: Array, state: State, starts: Array) -> None:
        """Combine states into cells; each cell comes once. `starts` are the starts of all slices."""

    @abstractmethod
    def combine_runs(self, runs: Runs, starts: Array) -> State: ...

    @abstractmethod
    def cells(self) -> State:
        """The states cell by cell, slices × groups: what a snapshot keeps."""

    @abstractmethod
    def forget(self, punctuation: int) -> None:
        """No run that ends at or before the punctuation will be asked for again."""
