"""A grid over the constants of an axis: arithmetic tells between which few of them a value lies, comparisons settle the rest.

In: constants, ascending. Out: a `Grid`, which is code, and its `bases`, which are data: for each square, how many constants lie in lower
ones. Convention: the square of a value never descends as the value ascends, and is the same in NumPy and in Spark to the last bit: a
difference, square roots, a product with a power of two, all of them rounded by IEEE 754. So constants in lower squares are below a
value, those in higher ones above it, and it is compared, in its own type, with those of its square alone.
Bounds are rounded, so that constants that come and go seldom change the code. A call of MLlib's `Bucketizer` takes as long.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from pyspark.sql import Column
from pyspark.sql import functions as F

from muntin.aggregates.base import Array

#: Squares for each constant that there is room for: mostly no two constants are in one.
SQUARES_A_CUT = 16
#: Square roots that are tried, for constants that lie the closer together the smaller they are.
MOST_ROOTS = 3
#: One would mostly do. With room for one more, a constant that comes seldom changes the code.
FEWEST_STEPS = 2
#: Powers of two that are doubles with room on both sides.
LARGEST_POWER = 900


@dataclass(frozen=True)
class Grid:
    """`squares` of equal width from `low` on, over the value's `roots`-fold square root; `steps` are left for a search in a square."""

    low: float
    power: int
    roots: int
    squares: int
    steps: int

    def square_of(self, values: Array) -> Array:
        """
        >>> Grid(low=100.0, power=0, roots=1, squares=16, steps=1).square_of(np.array([-5.0, 100.0, 109.0, 10_000.0])).tolist()
        [0, 0, 3, 15]
        """
        beyond = np.maximum(values - self.low, 0.0)
        for _ in range(self.roots):
            beyond = np.sqrt(beyond)
        found: Array = np.minimum(beyond * 2.0**self.power, self.squares - 1).astype(np.int64)
        return found

    def square(self, value: Column) -> Column:
        """The same of a Column. NaN is in the last square, and past every constant of it."""
        beyond = F.greatest(value.cast("double") - F.lit(self.low), F.lit(0.0))
        for _ in range(self.roots):
            beyond = F.sqrt(beyond)
        return F.least(beyond * F.lit(2.0**self.power), F.lit(float(self.squares - 1))).cast("int")

    def bases(self, constants: Sequence[Any]) -> list[int]:
        """For each square, how many of the constants lie in lower ones."""
        held = self.square_of(as_doubles(constants))
        found: list[int] = np.searchsorted(held, np.arange(self.squares)).tolist()
        return found


def grid_over(constants: Sequence[Any], room: int) -> Grid | None:
    """The grid that leaves the fewest steps; None if none leaves fewer than a search without it. `room` is for so many constants.

    >>> grid_over([1, 2, 3, 40, 500, 6_000], room=127)
    Grid(low=0.0, power=-2, roots=0, squares=2032, steps=2)
    >>> grid_over(["a", "b", "c", "d"], room=127)
    """
    if not constants or not all(isinstance(one, int | float) and math.isfinite(one) for one in constants):
        return None
    doubles = as_doubles(constants)
    low = rounded_down(float(doubles[0]), span=float(doubles[-1]) - float(doubles[0]))
    grids = [grid for roots in range(MOST_ROOTS + 1) if (grid := _grid(doubles, low, roots, SQUARES_A_CUT * room))]
    best = min(grids, key=lambda grid: (grid.steps, grid.roots), default=None)
    return best if best and best.steps < len(constants).bit_length() else None


def _grid(constants: Array, low: float, roots: int, squares: int) -> Grid | None:
    """A grid with so many roots that has the constants on more than half of it."""
    reach = (float(constants[-1]) - low) ** (0.5**roots)
    power = 0 if reach <= 0 else math.floor(math.log2(squares / reach)) if math.isfinite(reach) else LARGEST_POWER
    if abs(power) >= LARGEST_POWER:
        return None
    grid = Grid(low, power, roots, squares, steps=FEWEST_STEPS)
    most = int(np.bincount(grid.square_of(constants)).max()).bit_length()
    return replace(grid, steps=max(FEWEST_STEPS, most + most % 2))


def rounded_down(value: float, *, span: float) -> float:
    """To a multiple of a power of two about as large as the span.

    >>> rounded_down(20.0, span=1980.0), rounded_down(-3.0, span=0.0)
    (0.0, -3.0)
    """
    unit = math.ldexp(0.5, math.frexp(span)[1]) if 0 < span < math.inf else 1.0
    return float(np.floor(value / unit)) * unit if unit and math.isfinite(value / unit) else value


def as_doubles(constants: Sequence[Any]) -> Array:
    return np.array([float(one) for one in constants])
