"""A grid over the constants of an axis: arithmetic tells between which few of them a value lies, comparisons settle the rest.

In: constants, ascending. Out: a `Grid`, which is code, and its `bases`, which are data: for each square, how many constants lie in lower
ones. Convention: the square of a value never descends as the value ascends, and is the same in NumPy and in Spark to the last bit: a
difference, square roots, a product with a power of two, all of them rounded by IEEE 754. So constants in lower squares are below a
value, those in higher ones above it, and it is compared, in its own type, with those of its square alone. Whole numbers that have a
square each are compared with nothing: a base then counts the constant in its square too.
A grid is code, so it stays while it fits the constants that come and go (`held`), and its bounds are rounded. A comparison costs 17 ns.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from pyspark.sql import Column
from pyspark.sql import functions as F

from muntin.aggregates.base import Array

#: Squares for each constant that there is room for: mostly no two constants are in one.
SQUARES_A_CUT = 16
#: Square roots that are tried, for constants that lie the closer together the smaller they are.
MOST_ROOTS = 3
#: So many constants of a square are compared with one after the other, more by halves: then as many as an even number of steps tells
#: apart, since fewer kinds of grids are fewer kinds of code.
FEW_COMPARED = 3
#: Whole numbers up to here are doubles.
LARGEST_WHOLE = 2**53
#: Powers of two that are doubles with room on both sides.
LARGEST_POWER = 900


@dataclass(frozen=True)
class Grid:
    """`squares` of equal width from `low` on, over the value's `roots`-fold square root. A value is `compared` with so many constants of
    its square at the most; with none if whole numbers have a square each.
    """

    low: float
    power: int
    roots: int
    squares: int
    compared: int

    def square_of(self, values: Array) -> Array:
        """
        >>> Grid(low=100.0, power=0, roots=1, squares=16, compared=1).square_of(np.array([-5.0, 100.0, 109.0, 10_000.0])).tolist()
        [0, 0, 3, 15]
        """
        beyond = np.maximum(values - self.low, 0.0)
        for _ in range(self.roots):
            beyond = np.sqrt(beyond)
        with np.errstate(over="ignore"):  # an infinity is in the last square, as it should be
            found: Array = np.minimum(beyond * 2.0**self.power, self.squares - 1).astype(np.int64)
        return found

    def square(self, value: Column) -> Column:
        """The same of a Column. NaN is in the last square, and past every constant of it."""
        beyond = F.greatest(value.cast("double") - F.lit(self.low), F.lit(0.0))
        for _ in range(self.roots):
            beyond = F.sqrt(beyond)
        return F.least(beyond * F.lit(2.0**self.power), F.lit(float(self.squares - 1))).cast("int")

    def bases(self, constants: Sequence[Any]) -> list[int]:
        """For each square, how many of the constants lie in lower ones; in it too, if nothing is compared."""
        side: Literal["left", "right"] = "left" if self.compared else "right"
        found: list[int] = np.searchsorted(self.square_of(as_doubles(constants)), np.arange(self.squares), side=side).tolist()
        return found

    def fits(self, constants: Array, *, whole: bool) -> bool:
        """Whether it tells values apart by these constants; `whole` if all values are whole numbers."""
        if not self.compared:
            return whole and self.low < constants[0] and constants[-1] < self.low + self.squares
        return fullest(self.square_of(constants)) <= self.compared


def grid_over(constants: Sequence[Any], room: int, held: Grid | None = None) -> Grid | None:
    """The grid that leaves least to compare with; None if none leaves less than a search without it. `room` is for so many constants, and
    `held` a grid that is kept if it fits.

    >>> grid_over([1, 2, 3, 40, 500], room=127)
    Grid(low=0.0, power=0, roots=0, squares=2032, compared=0)
    >>> grid_over([1.0, 2.0, 3.0, 40.0, 500.0, 6_000.0], room=127)
    Grid(low=0.0, power=4, roots=1, squares=2032, compared=1)
    >>> grid_over(["a", "b", "c", "d"], room=127)
    """
    if not constants or not all(isinstance(one, int | float) and math.isfinite(one) for one in constants):
        return None
    doubles, whole, squares = as_doubles(constants), all(isinstance(one, int) for one in constants), SQUARES_A_CUT * room
    if held is not None and held.squares == squares and held.fits(doubles, whole=whole):
        return held
    grids = [grid for roots in range(MOST_ROOTS + 1) if (grid := _grid(doubles, roots, squares))]
    best = min([*_whole_grid(doubles, squares, whole=whole), *grids], key=lambda grid: (grid.compared, grid.roots), default=None)
    if best and held is not None and 0 < best.compared < FEW_COMPARED:  # the next constant that comes shall find room
        best = replace(best, compared=best.compared + 1)
    return best if best and best.compared.bit_length() < len(constants).bit_length() else None


def _whole_grid(constants: Array, squares: int, *, whole: bool) -> list[Grid]:
    """One with a square for each whole number, if there are enough. Values below the constants have the first square to themselves."""
    low = _low(constants, below=1.0)
    grid = Grid(low, 0, 0, squares, compared=0)
    return [grid] if abs(low) + squares < LARGEST_WHOLE and grid.fits(constants, whole=whole) else []


def _grid(constants: Array, roots: int, squares: int) -> Grid | None:
    """A grid with so many roots that has the constants on more than half of it."""
    low = _low(constants)
    reach = (float(constants[-1]) - low) ** (0.5**roots)
    power = 0 if reach <= 0 else math.floor(math.log2(squares / reach)) if math.isfinite(reach) else LARGEST_POWER
    if abs(power) >= LARGEST_POWER:
        return None
    grid = Grid(low, power, roots, squares, compared=1)
    most = fullest(grid.square_of(constants))
    steps = most.bit_length()
    return replace(grid, compared=most if most <= FEW_COMPARED else 2 ** (steps + steps % 2) - 1)


def _low(constants: Array, below: float = 0.0) -> float:
    return rounded_down(float(constants[0]) - below, span=float(constants[-1]) - float(constants[0]))


def fullest(squares: Array) -> int:
    """How many constants are in the square that has most of them."""
    return int(np.bincount(squares).max())


def rounded_down(value: float, *, span: float) -> float:
    """To a multiple of a power of two about as large as the span.

    >>> rounded_down(20.0, span=1980.0), rounded_down(-3.0, span=0.0)
    (0.0, -3.0)
    """
    unit = math.ldexp(0.5, math.frexp(span)[1]) if 0 < span < math.inf else 1.0
    return float(np.floor(value / unit)) * unit if unit and math.isfinite(value / unit) else value


def as_doubles(constants: Sequence[Any]) -> Array:
    return np.array([float(one) for one in constants])
