"""A growing matrix of slices × strands: one lane of a partial's state for every slice and strand in hand.

In: rows appended or inserted as slices appear, columns as strands appear. Out: a NumPy view of what is in use.
Convention: axis 0 is slices in ascending order, axis 1 strands. Growth doubles, dropping old slices moves an offset, so both cost
amortised O(1) per cell.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from muntin.aggregates.base import Array, LaneType


class LaneMatrix:
    """Cells that no row has reached hold `identity`."""

    def __init__(self, lane: LaneType, identity: Any, *, rows: int = 0, columns: int = 0) -> None:
        self._lane = lane
        self._identity = identity
        self._first = 0
        self._rows = rows
        self._columns = columns
        self._cells = self._blank(rows, columns)

    def _blank(self, rows: int, columns: int) -> Array:
        return np.full((rows, columns), self._identity, dtype=self._lane.dtype)

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
            cells = np.insert(self.view, positions, filler, axis=0)
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
        self._cells = np.ascontiguousarray(self.view[:, columns])
        self._first, self._columns = 0, len(columns)

    def _reserve(self, rows: int, columns: int) -> None:
        if self._first + rows <= len(self._cells) and columns <= self._cells.shape[1]:
            return
        room = rows if rows == self._rows else max(2 * rows, 16)
        width = columns if columns <= self._cells.shape[1] else max(2 * columns, 1 if columns == 1 else 16)
        cells = np.empty((room, max(width, columns)), dtype=self._lane.dtype)
        cells[: self._rows, : self._columns] = self.view
        self._cells, self._first = cells, 0
