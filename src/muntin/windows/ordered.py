"""Folding along an ordered expression: a predicate is a few runs of cells, and a run is combined from running states.

In: shards, the runs of cells in which predicates hold. Out: states, predicates × places. However many shards there are, each is combined
into a few running states, and a predicate costs a look-up for each of its runs and places.
Convention: as for windows over slices (`prefix`, `blocks`): of a differential partial two running totals are subtracted; any other is
combined from a suffix of a block of 2^k shards, perhaps a whole block, and a prefix of one, with 2^k ≤ the run's shards < 2^(k+1).
Paper: on-the-fly-sharing-2006, section 4.3, where each fragment is combined once for each query in its signature.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import cached_property

import numpy as np

from muntin.aggregates.base import Array, Differential, Partial, State
from muntin.plan.cellruns import CellRuns
from muntin.plan.numbering import distinct
from muntin.plan.signatures import CellTruths
from muntin.windows.products import SPARSEST
from muntin.windows.segments import firsts_of
from muntin.windows.shards import Shards

#: Runs × places looked up at once.
LOOKED_UP_AT_ONCE = 2_000_000
#: Nanoseconds: a predicate's truth in a cell when runs are looked for; a shard put in order.
TRUTH_NS, ORDER_NS = 5.0, 40.0
#: For each lane, a shard in its running states, and a look-up of a run in a place: by subtraction, by combining.
TOTALS_NS, BLOCKS_NS = (10.0, 12.0), (60.0, 80.0)


class OrderedShards:
    """The shards of each place in the order of their cells; it serves all columns. Nothing is done before it is asked for."""

    def __init__(self, shards: Shards, cells: CellTruths) -> None:
        self._shards, self._cells = shards, cells
        self.places = len(shards.start)

    def cost(self, partial: Partial, users: Array, below: float) -> float:
        """Nanoseconds to fold a column for some predicates; infinite if it is not worth while to find out, or cells are too many."""
        predicates, cells = self._cells.truths.shape
        if TRUTH_NS * predicates * cells > below or cells * self.places > SPARSEST * len(self._shards.place):
            return math.inf
        shards, looks = len(self._shards.place), len(self._cells.runs.of(users)) * self.places
        scan_ns, look_ns = TOTALS_NS if isinstance(partial, Differential) else BLOCKS_NS
        return ORDER_NS * shards + len(partial.identity()) * (scan_ns * shards + look_ns * looks)

    def fold(self, out: State, users: Array, partial: Partial, state: State) -> None:
        """The states of some predicates, into predicates × places."""
        fold_runs(out, partial, at(state, self.order), self._cells.runs.of(users), self)

    @cached_property
    def _key(self) -> Array:
        key: Array = self._shards.place * len(self._cells.runs.rank) + self._cells.runs.rank[self._shards.cell]
        return key

    @cached_property
    def order(self) -> Array:
        return np.argsort(self._key, kind="stable")

    @cached_property
    def _before(self) -> Array:
        """How many shards come before each cell of each place."""
        counts = np.bincount(self._key, minlength=len(self._cells.runs.rank) * self.places)
        return np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(counts)])

    def between(self, runs: CellRuns) -> tuple[Array, Array]:
        """Where the shards of each run begin and end in each place."""
        of_place = np.arange(self.places) * len(self._cells.runs.rank)
        return self._before[runs.first[:, None] + of_place], self._before[runs.last[:, None] + of_place]


class RunningStates:
    """The states of shards in order; combines any stretches of them."""

    def __init__(self, partial: Partial, state: State) -> None:
        self.partial, self.state = partial, state
        self._scans: dict[int, tuple[State, State]] = {}

    def between(self, low: Array, high: Array) -> State:
        """Everything in `[low, high)`, element by element; the identity where that is empty."""
        if isinstance(self.partial, Differential):
            return self.partial.uncombine(at(self._totals, high), at(self._totals, low))
        result = tuple(np.full(low.shape, identity, dtype=lane.dtype) for identity, lane in self._with_identity)
        # frexp's exponent is floor(log2) + 1, and 0 for 0.
        levels = np.frexp((high - low).astype(np.float64))[1] - 1
        for level in distinct(levels[levels >= 0]).tolist():
            there = np.nonzero(levels == level)
            for lane, values in zip(result, self._of_level(level, low[there], high[there] - 1), strict=True):
                lane[there] = values
        return result

    @property
    def _with_identity(self) -> Iterator[tuple[object, Array]]:
        return zip(self.partial.identity(), self.state, strict=True)

    @cached_property
    def _totals(self) -> State:
        """Row i combines everything before shard i."""
        nothing = (np.full(1, identity, dtype=lane.dtype) for identity, lane in self._with_identity)
        return tuple(np.concatenate(both) for both in zip(nothing, self.partial.accumulate(self.state), strict=True))

    def _of_level(self, level: int, first: Array, last: Array) -> State:
        """Stretches from one shard to another, of 2^level and more shards and less than twice as many."""
        if level not in self._scans:
            self._scans[level] = self._scanned(1 << level)
        prefixes, suffixes = self._scans[level]
        blocks = (last >> level) - (first >> level)
        found = at(suffixes, first)
        self._combine_into(found, np.nonzero(blocks == 2)[0], suffixes, ((first >> level) + 1) << level)
        self._combine_into(found, np.nonzero(blocks > 0)[0], prefixes, last)
        return found

    def _combine_into(self, found: State, chosen: Array, scan: State, places: Array) -> None:
        more = self.partial.combine(at(found, chosen), at(scan, places[chosen]))
        for lane, values in zip(found, more, strict=True):
            lane[chosen] = values

    def _scanned(self, width: int) -> tuple[State, State]:
        """Each shard combined with all before it in its block of so many; and with all after it."""
        count = len(self.state[0])
        blocks = tuple(in_columns(lane, identity, width) for identity, lane in self._with_identity)
        prefixes = self.partial.accumulate(blocks)
        suffixes = tuple(lane[::-1] for lane in self.partial.accumulate(tuple(lane[::-1] for lane in blocks)))
        return tuple(lane.T.reshape(-1)[:count] for lane in prefixes), tuple(lane.T.reshape(-1)[:count] for lane in suffixes)


def in_columns(lane: Array, identity: object, height: int) -> Array:
    """A lane as columns of one height, the last filled up.

    >>> in_columns(np.array([1, 2, 3]), 0, 2).tolist()
    [[1, 3], [2, 0]]
    """
    padded = np.full(-(-len(lane) // height) * height, identity, dtype=lane.dtype)
    padded[: len(lane)] = lane
    return np.ascontiguousarray(padded.reshape(-1, height).T)


def at(state: State, places: Array) -> State:
    return tuple(lane[places] for lane in state)


def fold_runs(out: State, partial: Partial, state: State, runs: CellRuns, ordered: OrderedShards) -> None:
    """The states of every predicate that has runs; `state` is in order."""
    states = RunningStates(partial, state)
    for some in whole_predicates(runs, max(1, LOOKED_UP_AT_ONCE // max(1, ordered.places))):
        firsts = firsts_of(some.predicate)
        found = partial.reduce(states.between(*ordered.between(some)), firsts)
        for lane, values in zip(out, found, strict=True):
            lane[some.predicate[firsts]] = values


def whole_predicates(runs: CellRuns, most: int) -> Iterator[CellRuns]:
    """The runs in pieces of about so many, none of which divides a predicate."""
    begins = np.append(firsts_of(runs.predicate), len(runs))
    low = 0
    while low < len(runs):
        high = int(begins[max(np.searchsorted(begins, low + most, side="right") - 1, np.searchsorted(begins, low, side="right"))])
        yield runs.at(slice(low, high))
        low = high
