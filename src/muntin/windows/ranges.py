"""What it means to combine runs of slices in amortised O(1) combines per window and group, whatever RANGE/SLIDE is.

In: states at (slice, strand) cells, then runs of slices `[first, last)`, each asked for some strands. Out: a state per pair of both.
Two ways: `prefix.PrefixColumn` subtracts running totals, `blocks.BlockColumn` only combines. Both keep this contract.
Convention: calls of `combine` come in ascending order of punctuation; within one call runs come in any order.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

from muntin.aggregates.base import Array, Partial, State
from muntin.windows.arena import MEMORY, Arena
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


@dataclass(frozen=True)
class Pairs:
    """What is asked for: the number of a run, and the strand it is asked for."""

    run: Array
    strand: Array

    def __len__(self) -> int:
        return len(self.run)

    def at(self, chosen: Array) -> Pairs:
        return Pairs(self.run[chosen], self.strand[chosen])


@dataclass
class Work:
    """What was actually done: cells combined, and cells combined again because a late row reached them."""

    combines: int = 0
    rebuilt: int = 0


class RangeColumn(ABC):
    """The states of one partial over slices × strands."""

    def __init__(self, partial: Partial, lanes: tuple[LaneMatrix, ...], work: Work, arena: Arena = MEMORY) -> None:
        self.partial = partial
        self.lanes = lanes
        self.work = work
        self.arena = arena

    @property
    def state(self) -> State:
        return tuple(lane.view for lane in self.lanes)

    def widen(self, strands: int) -> None:
        for lane in self.lanes:
            lane.widen(strands)

    def keep_strands(self, strands: Array) -> None:
        for lane in self.lanes:
            lane.keep_columns(strands)

    def drop_slices(self, count: int) -> None:
        for lane in self.lanes:
            lane.drop_rows(count)

    @abstractmethod
    def insert_slices(self, positions: Array, instants: Array) -> None:
        """New slices starting at `instants`, before the given positions, ascending, as `numpy.insert` counts them."""

    @abstractmethod
    def absorb(self, slices: Array, strands: Array, state: State, starts: Array) -> None:
        """Combine states into cells; each cell comes once. `starts` are the starts of all slices."""

    @abstractmethod
    def combine(self, runs: Runs, pairs: Pairs, starts: Array) -> State:
        """The state of each pair: its strand over the slices of its run."""

    @abstractmethod
    def combine_apart(self, runs: Runs, pairs: Pairs, starts: Array) -> State:
        """The same for runs of any time, of open windows and of windows closed long ago, leaving no trace for later calls of `combine`."""

    def clear(self) -> None:
        """Every cell holds nothing again."""
        for lane in self.lanes:
            lane.clear()

    @abstractmethod
    def cells(self, first: int = 0, last: int | None = None) -> State:
        """The states cell by cell, slices `[first, last)` × strands: what a snapshot keeps."""

    @abstractmethod
    def forget(self, punctuation: int) -> None:
        """No run that ends at or before the punctuation will be asked for again."""
