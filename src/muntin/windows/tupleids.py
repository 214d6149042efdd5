"""Which slide-by-tuple windows end: every tick of a partition that has an n-th tuple, by arrival or by rank.

In: rows sorted by series and tick. Out: window-ids of partitions, and each with every series of its partition, some at a time.
Paper: window-id-2005, sections 3.2 and 6.1.3. Convention: ranks count on from the tuples `below` the rows in hand, per partition.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from muntin.aggregates.base import Array
from muntin.semantics import SlideOrder, TupleSlide
from muntin.windows.segments import firsts_of
from muntin.windows.tuplerows import TupleRows

#: Results made at once where groups multiply window-ids.
PAIRS_AT_ONCE = 1 << 20


def are_ids(window: TupleSlide, partition: Array, marks: Array, below: Array) -> Array:
    """Whether the ticks of rows, sorted by partition, end a window. Counts them into `below`."""
    if window.order is SlideOrder.ARRIVAL:
        return marks > 0
    if not len(marks):
        return np.zeros(0, dtype=bool)
    upto = np.cumsum(marks)
    firsts = firsts_of(partition)
    lengths = np.diff(np.append(firsts, len(marks)))
    upto += np.repeat(below[partition[firsts]] - (upto - marks)[firsts], lengths)
    below[partition[firsts]] = upto[firsts + lengths - 1]
    ids: Array = upto // window.slide > (upto - marks) // window.slide
    return ids


def partition_ids(window: TupleSlide, rows: TupleRows, partition_of: Array, below: Array) -> tuple[Array, Array]:
    """Partitions and ticks of the windows that end, ascending by tick, where partitions have many series."""
    partition = partition_of[rows.series]
    order = np.lexsort((rows.ticks, partition))
    partition, ticks, marks = partition[order], rows.ticks[order], rows.marks[order]
    firsts = firsts_of(ticks, partition)
    partition, ticks = partition[firsts], ticks[firsts]
    marks = np.add.reduceat(marks, firsts) if len(firsts) else marks
    ids = np.nonzero(are_ids(window, partition, marks, below))[0]
    ids = ids[np.argsort(ticks[ids], kind="stable")]
    return partition[ids], ticks[ids]


def with_series(partition: Array, ticks: Array, partition_of: Array) -> Iterator[tuple[Array, Array]]:
    """Each window with every series of its partition: series and ticks."""
    by_partition = np.argsort(partition_of, kind="stable")
    starts = np.searchsorted(partition_of[by_partition], np.arange(int(partition_of.max(initial=-1)) + 2))
    counts = np.diff(starts)[partition]
    upto, low = np.cumsum(counts), 0
    while low < len(ticks):
        reached = int(upto[low - 1]) if low else 0
        high = max(low + 1, int(np.searchsorted(upto, reached + PAIRS_AT_ONCE, side="right")))
        some = counts[low:high]
        offsets = np.arange(some.sum()) - np.repeat(np.cumsum(some) - some, some)
        yield by_partition[np.repeat(starts[partition[low:high]], some) + offsets], np.repeat(ticks[low:high], some)
        low = high
