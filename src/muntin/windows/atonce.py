"""Runs over very many blocks at once: what `blocks` does block by block, for a step that closes windows over a long span.

In: the cells of a partial, slices × strands, runs of one level k, the pairs asked for. Out: a state per pair. Convention: as in `blocks`, a
run is a suffix of its first block, perhaps a whole block, and a prefix of its last; prefixes and suffixes of all blocks are made together,
and nothing is kept. A bounded run over an hour with RANGE 1 second has thousands of blocks in one step: one by one they took a hundred
times as long as the rows.
"""

from __future__ import annotations

import numpy as np

from muntin.aggregates.base import Array, Partial, State
from muntin.windows.ranges import Pairs, Runs, Work
from muntin.windows.segments import firsts_of, running, running_backwards

#: From this many blocks on they are gone over together.
MANY = 64


def combined_at_once(partial: Partial, cells: State, runs: Runs, pairs: Pairs, level: int, starts: Array, work: Work) -> State:
    """Every slice of a run is among the cells: only what no open window holds is dropped."""
    low, high = int(runs.first.min()), int(runs.last.max())
    span = tuple(lane[low:high] for lane in cells)
    blocks = starts[low:high] >> level
    firsts = firsts_of(blocks)
    head, tail = (runs.start >> level)[pairs.run], ((runs.end - 1) >> level)[pairs.run]
    suffixes, prefixes = running_backwards(partial, span, firsts), running(partial, span, firsts)
    work.combines += 2 * span[0].size
    begins = runs.first[pairs.run] - low
    result = _picked(partial, suffixes, blocks, begins, head, pairs.strand)
    whole, later = np.nonzero(tail - head == 2)[0], np.nonzero(tail > head)[0]
    for chosen, table, at, block in (
        (whole, suffixes, np.searchsorted(blocks, head[whole] + 1), head[whole] + 1),
        (later, prefixes, runs.last[pairs.run[later]] - low - 1, tail[later]),
    ):
        work.combines += len(chosen)
        more = partial.combine(tuple(lane[chosen] for lane in result), _picked(partial, table, blocks, at, block, pairs.strand[chosen]))
        for lane, new in zip(result, more, strict=True):
            lane[chosen] = new
    return result


def _picked(partial: Partial, table: State, blocks: Array, at: Array, block: Array, strand: Array) -> State:
    """The states at slices, if these are of the blocks asked for; nothing for a block that has no slice there."""
    near = np.clip(at, 0, len(blocks) - 1)
    held = (at == near) & (blocks[near] == block)
    picked = tuple(lane[near, strand] for lane in table)
    if not held.all():
        for lane, identity in zip(picked, partial.identity(), strict=True):
            lane[~held] = identity
    return picked
