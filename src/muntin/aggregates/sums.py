"""Partials that add: counts and sums of integers, decimals and doubles.

Integer and decimal sums are exact and differential: a BIGINT is added as two limbs of 32 bits and a DECIMAL as four, each in an
int64 lane, so that no sum of fewer than 2^31 rows can overflow a lane and adding and subtracting stay plain int64 arithmetic.
Sums of doubles are not differential: subtracting leaves the rounding error of everything that ever passed through the window.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from muntin.aggregates.base import Array, Differential, LaneType, Partial, State
from muntin.columnar import decimal_limbs, flat, floats, integers
from muntin.schema import INTEGRAL_BITS, Kind, Type

LIMB_BITS = 32
LIMB_MASK = (1 << LIMB_BITS) - 1


class Additive(Partial):
    """Lanes that add element by element: sums of many can be had by a matrix product."""

    def combine(self, a: State, b: State) -> State:
        return tuple(x + y for x, y in zip(a, b, strict=True))

    def accumulate(self, state: State) -> State:
        return tuple(np.add.accumulate(lane, axis=0) for lane in state)

    def reduce(self, state: State, firsts: Array) -> State:
        return tuple(np.add.reduceat(lane, firsts) for lane in state)


@dataclass(frozen=True)
class _Exact(Additive, Differential):
    """int64 lanes that add and subtract element by element."""

    def lanes(self, *types: Type) -> tuple[LaneType, ...]:
        return (LaneType.INT64,) * len(self.identity())

    def decode(self, *columns: Any) -> State:
        return tuple(integers(column, null=0) for column in columns)

    def uncombine(self, a: State, b: State) -> State:
        return tuple(x - y for x, y in zip(a, b, strict=True))


def row_numbers(by: tuple[str, ...] = ()) -> str:
    """The column of row numbers in the rows of a batch, for those who count by them: of the stream, or of each value of some columns."""
    return f"_muntin_row by {', '.join(by)}" if by else "_muntin_row"


@dataclass(frozen=True)
class Count(_Exact):
    """Rows, or rows where the argument is not NULL."""

    name: str = "count"

    def lift(self, functions: Any, *columns: Any) -> tuple[Any, ...]:
        return (functions.count(columns[0] if columns else functions.lit(1)),)

    def identity(self) -> tuple[Any, ...]:
        return (0,)


@dataclass(frozen=True)
class CountNth(Count):
    """Rows whose number is the last of each `every`: where slide-by-tuple windows end that slide by several rows, each `by` itself."""

    name: str = "count_nth"
    every: int = 1
    by: tuple[str, ...] = ()

    def lift(self, functions: Any, *columns: Any) -> tuple[Any, ...]:
        return (functions.count(functions.when(self._is_last(functions), functions.lit(1))),)

    def _is_last(self, functions: Any) -> Any:
        number = functions.col(f"`{row_numbers(self.by).replace('`', '``')}`")
        return functions.pmod(number, functions.lit(self.every)) == self.every - 1


#: Columns of rows that were joined: whether a row found a match in every table, and which of its matches stands for it.
MATCHED, FIRST = "_muntin_matched", "_muntin_first"


@dataclass(frozen=True)
class CountTuples(CountNth):
    """The same of rows that were joined: a tuple of the stream counts once, however many matches it has, and also if it has none."""

    name: str = "count_tuples"

    def lift(self, functions: Any, *columns: Any) -> tuple[Any, ...]:
        counted = functions.col(FIRST) if self.every == 1 else functions.col(FIRST) & self._is_last(functions)
        return (functions.count(functions.when(counted, functions.lit(1))),)


@dataclass(frozen=True)
class NarrowSum(_Exact):
    """Sum of TINYINT, SMALLINT or INT: one lane, since 2^31 rows of them fit into 64 bits."""

    name: str = "sum"

    def lift(self, functions: Any, *columns: Any) -> tuple[Any, ...]:
        return (functions.sum(columns[0]),)

    def identity(self) -> tuple[Any, ...]:
        return (0,)


@dataclass(frozen=True)
class WideSum(_Exact):
    """Sum of BIGINT as a low and a high limb."""

    name: str = "sum"

    def lift(self, functions: Any, *columns: Any) -> tuple[Any, ...]:
        value = columns[0]
        low = value.bitwiseAND(functions.lit(LIMB_MASK))
        return functions.sum(low), functions.sum(functions.shiftright(value, LIMB_BITS))

    def identity(self) -> tuple[Any, ...]:
        return 0, 0


@dataclass(frozen=True)
class DecimalSum(_Exact):
    """Sum of DECIMAL as four limbs, and a lane that counts shards whose sum Spark could not hold in 38 digits."""

    name: str = "sum"

    def lift(self, functions: Any, *columns: Any) -> tuple[Any, ...]:
        return functions.try_sum(columns[0]), functions.count(columns[0])

    def decode(self, *columns: Any) -> State:
        total, present = flat(columns[0]), integers(columns[1], null=0)
        missing = np.asarray(total.is_null().to_numpy(zero_copy_only=False), dtype=bool)
        return *decimal_limbs(total), (missing & (present > 0)).astype(np.int64)

    def identity(self) -> tuple[Any, ...]:
        return 0, 0, 0, 0, 0


@dataclass(frozen=True)
class FloatSum(Additive):
    """Sum of FLOAT or DOUBLE: combined, never subtracted."""

    name: str = "sum"

    def lanes(self, *types: Type) -> tuple[LaneType, ...]:
        return (LaneType.FLOAT64,)

    def lift(self, functions: Any, *columns: Any) -> tuple[Any, ...]:
        return (functions.sum(columns[0].cast("double")),)

    def decode(self, *columns: Any) -> State:
        return (floats(columns[0], null=0.0),)

    def identity(self) -> tuple[Any, ...]:
        return (0.0,)


@dataclass(frozen=True)
class ProductSum(FloatSum):
    """Sum of x · w over rows that have both: the numerator of a centre of mass."""

    name: str = "sum_product"

    def lift(self, functions: Any, *columns: Any) -> tuple[Any, ...]:
        x, w = columns
        return (functions.sum(x.cast("double") * w.cast("double")),)


@dataclass(frozen=True)
class WeightSum(FloatSum):
    """Sum of w over rows that have both x and w: the denominator of a centre of mass."""

    name: str = "sum_weight"

    def lift(self, functions: Any, *columns: Any) -> tuple[Any, ...]:
        x, w = columns
        return (functions.sum(functions.when(x.isNotNull(), w.cast("double"))),)


def sum_partial(type: Type) -> Partial:
    """The partial that sums values of this type."""
    if type.kind is Kind.DECIMAL:
        return DecimalSum()
    if type.kind in INTEGRAL_BITS:
        return WideSum() if type.kind is Kind.BIGINT else NarrowSum()
    return FloatSum()


def whole_numbers(state: State) -> Array:
    """The exact sums that limbs stand for, as Python integers."""
    total = state[-1].astype(object)
    for limb in reversed(state[:-1]):
        total = (total << LIMB_BITS) + limb.astype(object)
    return total


def bigints(state: State) -> tuple[Array, Array]:
    """Sums from one or two limbs as int64, and where they fit."""
    if len(state) == 1:
        return state[0], np.ones(state[0].shape, dtype=bool)
    low, high = state
    high = high + (low >> LIMB_BITS)
    fits = (high >= -(1 << 31)) & (high < (1 << 31))
    return (high << LIMB_BITS) | (low & LIMB_MASK), fits
