"""Groups by number: each distinct tuple of group values has a position, the column of its cells.

In: group columns as Arrow arrays. Out: positions, and the values back, in order. Convention: NULL is a group and NaN is one group,
as in Spark; a query without GROUP BY has the one group `()`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from muntin.aggregates.base import Array

_NAN = float("nan")


def _values(column: pa.Array) -> list[Any]:
    """Python values, with one NaN for all: two NaN objects are not equal, one is identical to itself."""
    values = column.to_pylist()
    return [_NAN if value != value else value for value in values] if pa.types.is_floating(column.type) else values


class GroupIndex:
    """Positions of groups, given in order of first appearance."""

    def __init__(self, types: tuple[pa.DataType, ...]) -> None:
        self.types = types
        self._positions: dict[tuple[Any, ...], int] = {}
        self._order: Array | None = None

    def __len__(self) -> int:
        return len(self._positions)

    def positions(self, columns: list[pa.Array], rows: int) -> Array:
        """The position of each row's group; unseen groups get the next ones."""
        before = len(self._positions)
        if self.types:
            keys = zip(*map(_values, columns), strict=True)
            found = [self._positions.setdefault(key, len(self._positions)) for key in keys]
        else:
            self._positions[()] = 0
            found = [0] * rows
        if len(self._positions) != before:
            self._order = None
        return np.array(found, dtype=np.int64)

    def columns(self) -> list[pa.Array]:
        """The group columns, one value per position."""
        keys = list(self._positions)
        return [pa.array([key[at] for key in keys], type=type) for at, type in enumerate(self.types)]

    def order(self) -> Array:
        """Positions sorted by group values, NULL first."""
        if self._order is None:
            if self.types:
                table = pa.table({str(at): column for at, column in enumerate(self.columns())})
                keys = [(str(at), "ascending", "at_start") for at in range(len(self.types))]
                self._order = pc.sort_indices(table, sort_keys=keys).to_numpy().astype(np.int64)
            else:
                self._order = np.arange(len(self), dtype=np.int64)
        return self._order

    def keep(self, groups: Array) -> None:
        """Only these positions stay, renumbered in their order."""
        keys = list(self._positions)
        self._positions = {keys[group]: at for at, group in enumerate(groups)}
        self._order = None
