"""Where the large arrays of an assembly are: in the memory of its process, or where else the one who runs it wants them.

In: shapes and types. Out: arrays. Convention: an assembly asks its arena for every array that grows with slices × strands, and gives none
back: an array that nothing refers to any more is not used.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from muntin.aggregates.base import Array


class Arena:
    """Arrays in the memory of the process."""

    def empty(self, shape: tuple[int, ...], dtype: npt.DTypeLike) -> Array:
        return np.empty(shape, dtype=dtype)

    def kept(self, values: Array) -> Array:
        """The same values, where arrays of this arena are."""
        return values

    def rest(self) -> None:
        """Nobody goes over the arrays now: what can be had again need not be in memory."""


MEMORY = Arena()
