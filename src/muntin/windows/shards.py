"""Shards: the partials of one batch and grouping, slices × cells × groups.

In: what Spark, or the slice log, gives. Out: the same in order of place and cell, each once. Convention: `at` is an instant inside the
slice; the cell, where there are cells, is the first key.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from muntin.aggregates.base import Array, State
from muntin.columnar import arrow_type
from muntin.plan.shared import Grouping, PartialColumn


@dataclass(frozen=True)
class Partials:
    """Partials of one grouping: an instant inside the slice, the cell where there are cells, the group columns, and a state per column."""

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


@dataclass(frozen=True)
class Layout:
    """The form of partials: the names and types of their keys, and their columns."""

    key_names: tuple[str, ...]
    key_types: tuple[pa.DataType, ...]
    columns: tuple[PartialColumn, ...]

    def empty(self) -> Partials:
        """No partials at all."""
        lanes = tuple(
            tuple(np.empty(0, dtype=lane.dtype) for lane in column.partial.lanes(*(arg.type for arg in column.args)))
            for column in self.columns
        )
        return Partials(np.empty(0, dtype=np.int64), tuple(pa.array([], type=type) for type in self.key_types), lanes)


def grouping_layout(grouping: Grouping) -> Layout:
    """The form of a grouping's partials: the cell, where there are cells, and the group columns."""
    names = (*("cell",) * grouping.by_cell, *map(str, grouping.keys))
    types = (*(pa.int64(),) * grouping.by_cell, *(arrow_type(key.type) for key in grouping.keys))
    return Layout(names, types, grouping.columns)


@dataclass(frozen=True)
class Shards:
    """Merged partials, sorted by place and cell. A place is a slice and a group; `place[i]` is that of shard i."""

    start: Array
    group: Array
    place: Array
    cell: Array
    states: tuple[State, ...]

    def between(self, low: int, high: int) -> Shards:
        """Those of slices that start in `[low, high)`; places are in order of time."""
        return self.places(*np.searchsorted(self.start, [low, high]).tolist())

    def places(self, low: int, high: int) -> Shards:
        """Those of the places `[low, high)`."""
        first, last = np.searchsorted(self.place, [low, high])
        states = tuple(tuple(lane[first:last] for lane in state) for state in self.states)
        return Shards(self.start[low:high], self.group[low:high], self.place[first:last] - low, self.cell[first:last], states)


def merged(partials: Partials, grouping: Grouping, start: Array, group: Array, cell: Array) -> Shards:
    """Partials whose slice, group and cell are known, with those of one shard combined."""
    order = ordered(start, group, cell)
    start, group, cell = start[order], group[order], cell[order]
    new_place = np.ones(len(order), dtype=bool)
    new_place[1:] = (start[1:] != start[:-1]) | (group[1:] != group[:-1])
    new_shard = new_place.copy()
    new_shard[1:] |= cell[1:] != cell[:-1]
    firsts, places = np.nonzero(new_shard)[0], np.nonzero(new_place)[0]
    states = []
    for column, state in zip(grouping.columns, partials.states, strict=True):
        lanes = tuple(lane[order] for lane in state)
        states.append(lanes if len(firsts) == len(order) else column.partial.reduce(lanes, firsts))
    return Shards(start[places], group[places], (np.cumsum(new_place) - 1)[firsts], cell[firsts], tuple(states))


def ordered(start: Array, group: Array, cell: Array) -> Array:
    """The order by all three. One number for all three sorts twice as fast, and mostly there is one."""
    if not len(start):
        return np.empty(0, dtype=np.int64)
    low, groups, cells = int(start.min()), int(group.max()) + 1, int(cell.max()) + 1
    if (int(start.max()) - low + 1) * groups * cells >= 2**63:
        return np.lexsort((cell, group, start))
    return np.argsort(((start - low) * groups + group) * cells + cell, kind="stable")
