"""A growing matrix of slices × strands: one lane of a partial's state for every slice and strand in hand.

In: rows appended or inserted as slices appear, columns as strands appear. Out: a NumPy view of what is in use.
Convention: axis 0 is slices in ascending order, axis 1 strands. Growth is by a fraction, dropping old slices moves an offset, so both
cost amortised O(1) per cell.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from muntin.aggregates.base import Array, LaneType
from muntin.windows.arena import MEMORY, Arena

#: Room in reserve: one row or column for so many in use.
GROWTH = 4


class LaneMatrix:
    """Cells that no row has reached hold `identity`."""

    def __init__(self, lane: LaneType, identity: Any, arena: Arena = MEMORY) -> None:
        self._arena = arena
        self._lane = lane
        self._identity = identity
        self._first = self._rows = self._columns = 0
        self._cells = arena.empty((0, 0), lane.dtype)

    @property
    def view(self) -> Array:
        """Slices × strands, writable."""
        return self._cells[self._first : self._first + self._rows, : self._columns]

    def insert_rows(self, positions: Array, values: Array | None = None) -> None:
        """New rows before the given positions (as `numpy.insert` counts them); at the end costs no copy."""
        added = len(positions)
        filler = self._identity if values is None else values
        if added and int(positions[0]) == self._rows:
            self._reserve(self._rows + added, self._columns)
            self._rows += added
            self.view[-added:] = filler
        elif added:
            cells = self._arena.kept(np.insert(self.view, positions, filler, axis=0))
            self._cells, self._first, self._rows = cells, 0, len(cells)

    def drop_rows(self, count: int) -> None:
        self._first += count
        self._rows -= count

    def widen(self, columns: int) -> None:
        """Room for more strands; new cells hold the identity."""
        if columns > self._columns:
            old = self._columns
            self._reserve(self._rows, columns)
            self._columns = columns
            self.view[:, old:] = self._identity

    def keep_columns(self, columns: Array) -> None:
        self._cells = self._arena.kept(np.ascontiguousarray(self.view[:, columns]))
        self._first, self._columns = 0, len(columns)

    def excerpt(self, columns: Array) -> LaneMatrix:
        """A copy of some columns, in the memory of the process."""
        copied = LaneMatrix(self._lane, self._identity)
        copied._cells = np.ascontiguousarray(self.view[:, columns])
        copied._rows, copied._columns = copied._cells.shape
        return copied

    def clear(self) -> None:
        self.view[:] = self._identity

    def _reserve(self, rows: int, columns: int) -> None:
        """Room for so many rows and columns. Where dropped rows leave enough of it, what is there moves to the front."""
        room, width = self._cells.shape
        if self._first + rows <= room and columns <= width:
            return
        if columns > width:
            width = max(columns + columns // GROWTH, 1 if columns == 1 else 16)
        if rows + rows // GROWTH > room:
            room = max(rows + 2 * rows // GROWTH, 16)
        if (room, width) == self._cells.shape:
            self._move_to_front()
        else:
            cells = self._arena.empty((room, width), self._lane.dtype)
            cells[: self._rows, : self._columns] = self.view
            self._cells = cells
        self._first = 0

    def _move_to_front(self) -> None:
        """As many rows at a time as do not overlap: NumPy would copy all of them aside."""
        for low in range(0, self._rows, self._first):
            high = min(low + self._first, self._rows)
            self._cells[low:high] = self._cells[self._first + low : self._first + high]
