"""Runs of neighbouring cells: where each predicate holds, once cells are in order along an expression.

In: cells as Spark codes them, and which predicates hold in which. Out: `CellRuns`. Convention: cells are in order of their positions on all
axes but the last, and then along the last, which is the longest. There `vol > 100` holds from some cell on, `vol < 100` up to some cell,
BETWEEN from one cell to another; IN and OR in several runs, and each combination of positions on the other axes has runs of its own.
Only cells that were met count: a run may pass over others.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from muntin.aggregates.base import Array


@dataclass(frozen=True)
class CellRuns:
    """`rank` is the place of each cell in order. Run r: predicate `predicate[r]` holds in the cells `[first[r], last[r])` of that order.
    Runs ascend by predicate.
    """

    rank: Array
    predicate: Array
    first: Array
    last: Array

    def __len__(self) -> int:
        return len(self.predicate)

    def of(self, predicates: Array) -> CellRuns:
        """The runs of some predicates, which ascend."""
        return self.at(np.nonzero(np.isin(self.predicate, predicates))[0])

    def at(self, chosen: Array | slice) -> CellRuns:
        return CellRuns(self.rank, self.predicate[chosen], self.first[chosen], self.last[chosen])


def cell_runs(codes: Array, others: int, holds: Array) -> CellRuns:
    """`others` is how many combinations of positions there are on all axes but the last; `holds` is predicates × cells.

    >>> runs = cell_runs(np.array([30, 10, 20]), 10, np.array([[True, False, True], [True, True, False]]))
    >>> runs.rank.tolist(), runs.predicate.tolist(), runs.first.tolist(), runs.last.tolist()
    ([2, 0, 1], [0, 1, 1], [1, 0, 2], [3, 1, 3])
    """
    along, besides = np.divmod(codes, others)
    order = np.lexsort((along, besides))
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order))
    ordered, same = holds[:, order], besides[order][1:] == besides[order][:-1]
    goes_on = np.zeros_like(ordered)
    goes_on[:, 1:] = ordered[:, 1:] & ordered[:, :-1] & same
    predicate, first = np.nonzero(ordered & ~goes_on)
    goes_on = np.roll(goes_on, -1, axis=1)
    last = np.nonzero(ordered & ~goes_on)[1] + 1
    return CellRuns(rank, predicate, first, last)
