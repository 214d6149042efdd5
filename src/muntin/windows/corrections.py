"""What a late row changes: the cells it came to, and the revisions of results that were emitted before.

In: states of rows that came below the punctuation; results about to be emitted again. Out: rows gained per window and strand; revisions.
Convention: what was emitted once is not written down, since it follows from the rows that were there before: only results that were
corrected have an entry, for as long as their window can be corrected.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from muntin.aggregates.base import Array
from muntin.plan.numbering import distinct
from muntin.plan.shared import ROWS, Failures
from muntin.windows.ranges import Pairs, Runs
from muntin.windows.store import Folded, SliceStore


def told(folded: Folded) -> Array:
    """What each cell tells of: rows that satisfy the predicate, and rows that failed."""
    counts: Array = folded.states[ROWS][0].copy()
    for column, state in folded.states.items():
        if isinstance(column.partial, Failures):
            counts += state[0]
    return counts


class Gains:
    """Cells that late rows came to, as running totals over a store's slices. `starts` and `strands` are those that gained any, `reached`
    also slices in which no row passed a predicate. `late` is what the store has just absorbed of them.
    """

    def __init__(self, store: SliceStore, late: Sequence[Folded]) -> None:
        found = [self._cells(store, part) for part in late]
        starts, strands, rows, all_told = map(np.concatenate, zip(*found, strict=True))
        self.starts = distinct(starts)
        self.reached = distinct(np.concatenate([store.slices.slice_starts(part.starts)[part.slice] for part in late]))
        self.strands, column = np.unique(strands, return_inverse=True)
        self._column = np.zeros(len(store.strands), dtype=np.int64)
        self._column[self.strands] = np.arange(len(self.strands))
        cell = (np.searchsorted(store.starts, starts) + 1) * len(self.strands) + column
        self._rows, self._told = (self._totals(cell, counts, len(store.starts) + 1) for counts in (rows, all_told))

    def _totals(self, cell: Array, counts: Array, slices: int) -> Array:
        cells = np.zeros(slices * len(self.strands), dtype=np.int64)
        np.add.at(cells, cell, counts)
        return np.cumsum(cells.reshape(slices, len(self.strands)), axis=0)

    @staticmethod
    def _cells(store: SliceStore, late: Folded) -> tuple[Array, Array, Array, Array]:
        """Slice, strand, rows and what is told of each cell."""
        counts = told(late)
        at = np.nonzero(counts)[0]
        starts = store.slices.slice_starts(late.starts)[late.slice[at]]
        return starts, store.strands.numbers(late.predicate[at], late.group[at]), late.states[ROWS][0][at], counts[at]

    def among(self, strands: int) -> Array:
        """For each of so many strands, whether it gained anything."""
        mask = np.zeros(strands, dtype=bool)
        mask[self.strands] = True
        return mask

    def rows(self, runs: Runs, pairs: Pairs) -> Array:
        return self._between(self._rows, runs, pairs)

    def told(self, runs: Runs, pairs: Pairs) -> Array:
        return self._between(self._told, runs, pairs)

    def _between(self, totals: Array, runs: Runs, pairs: Pairs) -> Array:
        """For pairs of strands that gained something."""
        column = self._column[pairs.strand]
        between: Array = totals[runs.last[pairs.run], column] - totals[runs.first[pairs.run], column]
        return between


class Revisions:
    """The revision of each result of one query that was corrected, by the end of its window and its group."""

    def __init__(self) -> None:
        self._of: dict[tuple[int, int], int] = {}

    def __len__(self) -> int:
        return len(self._of)

    def next(self, end: Array, group: Array, was_emitted: Array) -> Array:
        """The revisions of results about to be emitted: 0 for a window's first, one more than the last one for others."""
        found = np.zeros(len(end), dtype=np.int64)
        ends, groups = end.tolist(), group.tolist()
        for at in np.nonzero(was_emitted)[0].tolist():
            key = ends[at], groups[at]
            found[at] = self._of[key] = self._of.get(key, 0) + 1
        return found

    def forget(self, upto: int) -> None:
        """Windows that end there or before are not corrected any more."""
        self._of = {key: revision for key, revision in self._of.items() if key[0] > upto}

    def renumber(self, numbers: Array) -> None:
        """Group g is now called `numbers[g]`."""
        self._of = {(end, int(numbers[group])): revision for (end, group), revision in self._of.items()}

    def held(self) -> tuple[Array, Array, Array]:
        """Ends, groups and revisions, for a snapshot."""
        keys = np.array(list(self._of), dtype=np.int64).reshape(-1, 2)
        return keys[:, 0], keys[:, 1], np.array(list(self._of.values()), dtype=np.int64)

    def take_back(self, end: Array, group: Array, revision: Array) -> None:
        self._of.update(zip(zip(end.tolist(), group.tolist(), strict=True), revision.tolist(), strict=True))
