"""The slices in hand of one grouping: partial states of shards, slices × fragments.

In: partials of a micro-batch, keyed by instant and group. Out: runs of slices combined; the cells back for a snapshot.
Convention: memory is proportional to slices × active fragments; slices that no open window needs are dropped, and so are fragments
that have no row in any slice left. Without predicates of different queries to tell apart, a fragment is a group.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from muntin.aggregates.base import Array, Differential, Partial, State
from muntin.aggregates.sums import Count
from muntin.columnar import arrow_type
from muntin.plan.shared import Grouping
from muntin.windows.blocks import BlockColumn
from muntin.windows.fragments import FragmentIndex
from muntin.windows.matrix import LaneMatrix
from muntin.windows.prefix import PrefixColumn
from muntin.windows.ranges import RangeColumn, Work


@dataclass(frozen=True)
class Partials:
    """Partials of one grouping: an instant inside the slice, the cell where there are axes, the group columns, and a state per column."""

    at: Array
    keys: tuple[pa.Array, ...]
    states: tuple[State, ...]

    def __len__(self) -> int:
        return len(self.at)

    def rows(self, chosen: Array) -> Partials:
        return Partials(
            self.at[chosen],
            tuple(key.take(pa.array(chosen)) for key in self.keys),
            tuple(tuple(lane[chosen] for lane in state) for state in self.states),
        )


def key_types(grouping: Grouping) -> tuple[pa.DataType, ...]:
    """The types of `Partials.keys`."""
    cell = (pa.int64(),) if grouping.axes else ()
    return *cell, *(arrow_type(key.type) for key in grouping.keys)


class SliceStore:
    def __init__(self, grouping: Grouping) -> None:
        self.grouping = grouping
        self.slices = grouping.slice_manager()
        self.starts: Array = np.empty(0, dtype=np.int64)
        self.fragments = FragmentIndex(grouping)
        self.work = Work()
        self.slices_seen = 0
        self.columns = [self._column(column.partial, tuple(arg.type for arg in column.args)) for column in grouping.columns]
        for one in self.columns:
            one.widen(len(self.fragments))

    def _column(self, partial: Partial, types: Sequence[object]) -> RangeColumn:
        lanes = tuple(
            LaneMatrix(lane, identity)
            for lane, identity in zip(partial.lanes(*types), partial.identity(), strict=True)  # type: ignore[arg-type]
        )
        if isinstance(partial, Differential):
            return PrefixColumn(partial, lanes, self.work)
        return BlockColumn(partial, lanes, self.work)

    def absorb(self, partials: Partials) -> None:
        """Combine partials into their slices; several of one slice and group are combined with each other first."""
        if not len(partials):
            return
        starts = self.slices.slice_starts(partials.at)
        fragments = self.fragments.numbers(partials.keys, len(partials))
        self._make_room(np.unique(starts))
        slices = np.searchsorted(self.starts, starts)
        shard = slices * len(self.fragments) + fragments
        order = np.argsort(shard, kind="stable")
        firsts = np.nonzero(np.diff(shard[order], prepend=-1))[0]
        slices, fragments = slices[order][firsts], fragments[order][firsts]
        for column, state in zip(self.columns, partials.states, strict=True):
            merged = column.partial.reduce(tuple(lane[order] for lane in state), firsts)
            column.absorb(slices, fragments, merged, self.starts)

    def _make_room(self, starts: Array) -> None:
        new = starts[~np.isin(starts, self.starts, assume_unique=True)]
        for column in self.columns:
            column.widen(len(self.fragments))
        if len(new):
            positions = np.searchsorted(self.starts, new)
            for column in self.columns:
                column.insert_slices(positions, new)
            self.starts = np.insert(self.starts, positions, new)
            self.slices_seen += len(new)

    def drop_before(self, horizon: int, punctuation: int) -> None:
        """Forget slices that start before the horizon: every window they belong to has been closed."""
        count = int(np.searchsorted(self.starts, horizon))
        self.starts = self.starts[count:]
        for column in self.columns:
            column.drop_slices(count)
            column.forget(punctuation)
        if count:
            self._drop_idle_fragments()

    def _drop_idle_fragments(self) -> None:
        """Once half the fragments have no row left, make the matrices narrower: amortised over the fragments that came."""
        if len(self.fragments) < 64:
            return
        alive = np.zeros(len(self.fragments), dtype=bool)
        for column in self.columns:
            if isinstance(column.partial, Count):
                alive |= column.state[0][-1] != column.state[0][0]
        if 2 * int(alive.sum()) < len(alive):
            kept = np.nonzero(alive)[0]
            self.fragments.keep(kept)
            for column in self.columns:
                column.keep_groups(kept)

    def cells(self) -> Partials:
        """Every cell that a row has reached, as partials: what a snapshot keeps and `absorb` takes back."""
        counted = [column.cells()[0] for column in self.columns if isinstance(column.partial, Count)]
        # Without GROUP BY a slice is kept even if no row in it passed a predicate: EMIT EMPTY begins with the first row of the stream.
        reached = np.full((len(self.starts), len(self.fragments)), not self.grouping.keys and not self.grouping.axes)
        for count in counted:
            reached |= count != 0
        slices, fragments = np.nonzero(reached)
        chosen = pa.array(fragments)
        return Partials(
            self.starts[slices],
            tuple(key.take(chosen) for key in self.fragments.key_columns()),
            tuple(tuple(lane[slices, fragments] for lane in column.cells()) for column in self.columns),
        )

    def nothing(self) -> Partials:
        """No partials, in this grouping's form."""
        lanes = tuple(tuple(np.empty(0, dtype=lane.dtype) for lane in column.state) for column in self.columns)
        return Partials(np.empty(0, dtype=np.int64), tuple(pa.array([], type=type) for type in key_types(self.grouping)), lanes)
