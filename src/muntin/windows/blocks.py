"""Runs by combining only: for extrema, floating sums, variances and whatever cannot be subtracted exactly.

Time is cut into blocks of 2^k µs, with k such that 2^k ≤ RANGE < 2^(k+1). A window is then a suffix of its first block, perhaps
one whole block, and a prefix of its last: at most two combines. Each slice is combined once into a suffix and once into a prefix,
and all windows with the same k share both, whichever queries they belong to.

Convention: suffixes are built when a window first needs them, which is when the block is complete; prefixes are carried forward
as one row per block. A late row rebuilds what holds its slice, for its strand only, and the cells gone over are counted.
A step that closes windows in very many blocks goes over all of them together (`atonce`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from muntin.aggregates.base import Array, Partial, State
from muntin.plan.numbering import distinct
from muntin.windows.arena import MEMORY, Arena
from muntin.windows.atonce import MANY, combined_at_once
from muntin.windows.matrix import LaneMatrix
from muntin.windows.ranges import Pairs, RangeColumn, Runs, Work
from muntin.windows.segments import firsts_of


@dataclass
class Block:
    """`suffix[i]` combines everything from the block's slice i on; `prefix` everything before the instant `upto`."""

    suffix: State | None = None
    prefix: State | None = None
    upto: int = 0


class BlockColumn(RangeColumn):
    """Cells as they are, and blocks derived from them."""

    def __init__(self, partial: Partial, lanes: tuple[LaneMatrix, ...], work: Work, arena: Arena = MEMORY) -> None:
        super().__init__(partial, lanes, work, arena)
        self.blocks: dict[tuple[int, int], Block] = {}

    def insert_slices(self, positions: Array, instants: Array) -> None:
        for lane in self.lanes:
            lane.insert_rows(positions)
        for (level, number), block in self.blocks.items():
            if block.suffix and ((instants >> level) == number).any():
                block.suffix = None

    def keep_strands(self, strands: Array) -> None:
        super().keep_strands(strands)
        self.blocks.clear()

    def widen(self, strands: int) -> None:
        added = strands - self.state[0].shape[1]
        super().widen(strands)
        if added > 0:
            for block in self.blocks.values():
                block.suffix = block.suffix and self._padded(block.suffix, added)
                block.prefix = block.prefix and self._padded(block.prefix, added)

    def _padded(self, state: State, added: int) -> State:
        blank = self._blank(state[0].shape[0] if state[0].ndim == 2 else 1, added)
        return tuple(
            self.arena.kept(np.concatenate([lane, new.reshape((*lane.shape[:-1], added))], axis=-1))
            for lane, new in zip(state, blank, strict=True)
        )

    def _blank_pairs(self, count: int) -> State:
        return tuple(np.full(count, identity, dtype=view.dtype) for view, identity in zip(self.state, self.partial.identity(), strict=True))

    def _blank(self, rows: int, strands: int | None = None) -> State:
        width = self.state[0].shape[1] if strands is None else strands
        return tuple(
            np.full((rows, width), identity, dtype=view.dtype) for view, identity in zip(self.state, self.partial.identity(), strict=True)
        )

    def absorb(self, slices: Array, strands: Array, state: State, starts: Array) -> None:
        current = tuple(view[slices, strands] for view in self.state)
        self.work.combines += len(slices)
        for view, lane in zip(self.state, self.partial.combine(current, state), strict=True):
            view[slices, strands] = lane
        instants = starts[slices]
        for (level, number), block in self.blocks.items():
            reached = ((instants >> level) == number) & (instants < block.upto if block.suffix is None else True)
            if reached.any():
                self._rebuild(level, number, block, distinct(strands[reached]), starts)

    def _rebuild(self, level: int, number: int, block: Block, strands: Array, starts: Array) -> None:
        low, high = self._bounds(level, number, starts)
        self.work.rebuilt += (high - low) * len(strands)
        if block.suffix:
            for lane, values in zip(block.suffix, self._suffixes(low, high, strands), strict=True):
                lane[len(lane) - (high - low) :, strands] = values
        if block.prefix:
            upto = int(np.searchsorted(starts, block.upto))
            running = self.partial.accumulate(tuple(view[low:upto, strands] for view in self.state))
            for lane, values in zip(block.prefix, running, strict=True):
                lane[strands] = values[-1] if len(values) else lane[strands]

    @staticmethod
    def _bounds(level: int, number: int, starts: Array) -> tuple[int, int]:
        low, high = np.searchsorted(starts, [number << level, (number + 1) << level])
        return int(low), int(high)

    def _suffixes(self, low: int, high: int, strands: Array | None = None) -> State:
        where = slice(None) if strands is None else strands
        backwards = tuple(view[low:high, where][::-1] for view in self.state)
        self.work.combines += backwards[0].size
        return tuple(np.ascontiguousarray(lane[::-1]) for lane in self.partial.accumulate(backwards))

    def combine(self, runs: Runs, pairs: Pairs, starts: Array) -> State:
        result = self._blank_pairs(len(pairs))
        # frexp's exponent is floor(log2) + 1, exact below 2^53.
        levels = np.frexp((runs.end - runs.start).astype(np.float64))[1] - 1
        for level, chosen in by_number(levels, pairs.run):
            self._put(result, chosen, self._combine_level(runs, pairs.at(chosen), level, starts))
        return result

    def combine_apart(self, runs: Runs, pairs: Pairs, starts: Array) -> State:
        """With blocks of its own, over the strands that are asked for."""
        strands, number = np.unique(pairs.strand, return_inverse=True)
        apart = BlockColumn(self.partial, tuple(lane.excerpt(strands) for lane in self.lanes), self.work)
        return apart.combine(runs, Pairs(pairs.run, number), starts)

    def _combine_level(self, runs: Runs, pairs: Pairs, level: int, starts: Array) -> State:
        head, tail = runs.start >> level, (runs.end - 1) >> level
        asked = tail[pairs.run]
        if int(asked.max()) - int(asked.min()) >= MANY and len(distinct(asked)) >= MANY:
            return combined_at_once(self.partial, self.state, runs, pairs, level, starts, self.work)
        result = self._heads(runs, pairs, head, level, starts)
        beyond = tail - head
        whole = np.nonzero(beyond[pairs.run] == 2)[0]
        if len(whole):
            self._combine_into(result, whole, self._totals(pairs.at(whole), head + 1, level, starts))
        later = np.nonzero(beyond[pairs.run] > 0)[0]
        if len(later):
            self._combine_into(result, later, self._tails(runs, pairs.at(later), tail, level, starts))
        return result

    def _combine_into(self, result: State, chosen: Array, other: State) -> None:
        self.work.combines += len(chosen)
        self._put(result, chosen, self.partial.combine(tuple(lane[chosen] for lane in result), other))

    @staticmethod
    def _put(result: State, chosen: Array, values: State) -> None:
        for lane, new in zip(result, values, strict=True):
            lane[chosen] = new

    def _suffix_of(self, level: int, number: int, starts: Array) -> tuple[State, int]:
        """The suffixes of a complete block, and the position its first row stands for (below 0 where slices were dropped)."""
        low, high = self._bounds(level, number, starts)
        block = self.blocks.setdefault((level, number), Block())
        if block.suffix is None:
            block.suffix = tuple(map(self.arena.kept, self._suffixes(low, high)))
        return block.suffix, high - len(block.suffix[0])

    def _heads(self, runs: Runs, pairs: Pairs, head: Array, level: int, starts: Array) -> State:
        """For each pair, everything from the start of its run to the end of that run's first block."""
        result = self._blank_pairs(len(pairs))
        for number, chosen in by_number(head, pairs.run):
            suffix, low = self._suffix_of(level, number, starts)
            at = runs.first[pairs.run[chosen]] - low
            held = at < len(suffix[0])
            chosen, at = chosen[held], at[held]
            self._put(result, chosen, tuple(values[at, pairs.strand[chosen]] for values in suffix))
        return result

    def _totals(self, pairs: Pairs, numbers: Array, level: int, starts: Array) -> State:
        result = self._blank_pairs(len(pairs))
        for number, chosen in by_number(numbers, pairs.run):
            suffix, _ = self._suffix_of(level, number, starts)
            if len(suffix[0]):
                self._put(result, chosen, tuple(values[0, pairs.strand[chosen]] for values in suffix))
        return result

    def _tails(self, runs: Runs, pairs: Pairs, tail: Array, level: int, starts: Array) -> State:
        """For each pair, everything from the start of its run's last block to the run's end."""
        result = self._blank_pairs(len(pairs))
        for number, chosen in by_number(tail, pairs.run):
            rows = pairs.run[chosen]
            block = self.blocks.setdefault((level, number), Block())
            low, _ = self._bounds(level, number, starts)
            known = int(np.searchsorted(starts, block.upto)) if block.prefix else low
            if int(runs.last[rows].min()) < known:  # groups that are complete early took the block further than others are
                block.prefix, known = None, low
            table = self._extended(block, known, int(runs.last[rows].max()))
            at = runs.last[rows] - known  # row i of the table holds everything before slice known + i
            self._put(result, chosen, tuple(values[at, pairs.strand[chosen]] for values in table))
            block.prefix, block.upto = tuple(values[-1].copy() for values in table), int(runs.end[rows].max())
        return result

    def _extended(self, block: Block, known: int, last: int) -> State:
        base = block.prefix or tuple(lane[0] for lane in self._blank(1))
        rows = tuple(np.concatenate([row[None], view[known:last]]) for row, view in zip(base, self.state, strict=True))
        self.work.combines += rows[0].size
        return self.partial.accumulate(rows)

    def cells(self, first: int = 0, last: int | None = None) -> State:
        return tuple(view[first:last] for view in self.state)

    def forget(self, punctuation: int) -> None:
        """A later run of level k starts after `punctuation - 2^(k+1)`."""
        for level, number in list(self.blocks):
            if (number + 1) << level <= punctuation - (2 << level):
                del self.blocks[level, number]


def by_number(numbers: Array, run: Array) -> Iterator[tuple[int, Array]]:
    """The pairs of each distinct number, where runs have numbers; `run` says which run a pair belongs to."""
    of_pair = numbers[run]
    order = np.argsort(of_pair, kind="stable")
    firsts = firsts_of(of_pair[order])
    for chosen in np.split(order, firsts[1:]) if len(order) else ():
        yield int(of_pair[chosen[0]]), chosen
