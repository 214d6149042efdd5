"""The bounded aggregates: count, sum, avg, min, max, variance, standard deviation and centre of mass.

In: states of partials, element by element. Out: `Lowered` values with Spark's ANSI result types. Each also has `evaluate`, the
obvious computation over rows, which the reference and the laws use. Paper: panes-2005, sections 3.2.1 and 3.3.1.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Context, Decimal
from typing import Any

import numpy as np

from muntin.aggregates.base import Aggregate, Array, Lowered, Partial, State
from muntin.aggregates.extrema import Direction, Extremum, lane_type
from muntin.aggregates.moments import Moments
from muntin.aggregates.sums import Count, ProductSum, WeightSum, bigints, sum_partial, whole_numbers
from muntin.errors import DataError, TypeMismatch
from muntin.schema import BIGINT, DOUBLE, Kind, Type, adjusted_decimal, decimal

Placed = tuple[Partial, tuple[int, ...]]
#: Wide enough for any sum of DECIMAL(38): nothing is rounded except where a result says so.
EXACT = Context(prec=120, rounding=ROUND_HALF_UP)


def present(rows: Sequence[tuple[Any, ...]]) -> list[Any]:
    """The non-NULL values of a one-argument aggregate."""
    return [row[0] for row in rows if row[0] is not None]


def require_numeric(aggregate: str, *types: Type) -> None:
    for type in types:
        if not type.numeric and type.kind is not Kind.NULL:
            raise TypeMismatch(f"{aggregate} is defined on numbers", values=str(type), way_out="cast the argument to a number")


def scaled(unscaled: int, scale: int) -> Decimal:
    return Decimal(unscaled).scaleb(-scale, EXACT)


def rounded(value: Decimal, scale: int) -> Decimal:
    return value.quantize(Decimal(1).scaleb(-scale), context=EXACT)


def fits_decimal(value: Decimal, type: Type) -> bool:
    return abs(value) < Decimal(10) ** (type.precision - type.scale)


@dataclass(frozen=True)
class CountAggregate(Aggregate):
    name: str = "count"
    arity: int = 1  # and count(*), which has none

    def result_type(self, *types: Type) -> Type:
        return BIGINT

    def partials(self, *types: Type) -> Sequence[Placed]:
        return ((Count(), tuple(range(len(types)))),)

    def lower(self, result: Type, *states: State) -> Lowered:
        count = states[0][0]
        return Lowered(count, np.ones(count.shape, dtype=bool))

    def evaluate(self, rows: Sequence[tuple[Any, ...]], result: Type) -> object:
        return sum(1 for row in rows if not row or row[0] is not None)


@dataclass(frozen=True)
class SumAggregate(Aggregate):
    name: str = "sum"

    def result_type(self, *types: Type) -> Type:
        require_numeric("sum", *types)
        (type,) = types
        if type.kind is Kind.DECIMAL:
            return decimal(type.precision + 10, type.scale)
        return BIGINT if type.integral else DOUBLE

    def partials(self, *types: Type) -> Sequence[Placed]:
        return (sum_partial(types[0]), (0,)), (Count(), (0,))

    def lower(self, result: Type, *states: State) -> Lowered:
        total, (count,) = states
        valid = count > 0
        if result.kind is Kind.DECIMAL:
            return lower_decimal(total, valid, result)
        if result.kind is Kind.BIGINT:
            values, fits = bigints(total)
            return Lowered(values, valid, None if fits.all() else ~fits)
        return Lowered(total[0], valid)

    def evaluate(self, rows: Sequence[tuple[Any, ...]], result: Type) -> object:
        values = present(rows)
        if not values:
            return None
        total = exact_sum(values)
        if result.kind is Kind.BIGINT and not -(2**63) <= total < 2**63:
            raise DataError("a sum of integers fits BIGINT", values=str(total), way_out="sum(cast(x AS DECIMAL(38, 0)))")
        if result.kind is Kind.DECIMAL and not fits_decimal(total, result):
            raise DataError(f"a sum of decimals fits {result}", values=str(total), way_out="cast the argument to fewer digits")
        return total


def lower_decimal(total: State, valid: Array, result: Type) -> Lowered:
    *limbs, overflowed = total
    unscaled = whole_numbers(tuple(limbs))
    overflow = (overflowed > 0) | (np.abs(unscaled) >= 10**result.precision).astype(bool)
    values = np.frompyfunc(lambda number: scaled(number, result.scale), 1, 1)(unscaled)
    return Lowered(values, valid, overflow if overflow.any() else None)


def is_none(values: Array) -> Array:
    """Where an array of objects holds None."""
    return np.fromiter((value is None for value in values.flat), dtype=bool, count=values.size).reshape(values.shape)


def exact_sum(values: Sequence[Any]) -> Any:
    if isinstance(values[0], float):
        return math.fsum(values) if all(map(math.isfinite, values)) else sum(values)
    total = values[0]
    for value in values[1:]:
        total = EXACT.add(total, value) if isinstance(value, Decimal) else total + value
    return total


@dataclass(frozen=True)
class AvgAggregate(Aggregate):
    name: str = "avg"

    def result_type(self, *types: Type) -> Type:
        require_numeric("avg", *types)
        (type,) = types
        if type.kind is Kind.DECIMAL and type.scale > 34:
            raise TypeMismatch(
                "an average of decimals has four digits more after the point, 38 at the most", values=str(type), way_out="cast to fewer"
            )
        return decimal(type.precision + 4, type.scale + 4) if type.kind is Kind.DECIMAL else DOUBLE

    def partials(self, *types: Type) -> Sequence[Placed]:
        return (sum_partial(types[0]), (0,)), (Count(), (0,))

    def lower(self, result: Type, *states: State) -> Lowered:
        total, (count,) = states
        valid = count > 0
        if result.kind is Kind.DECIMAL:
            scale = result.scale - 4
            *limbs, overflowed = total
            divide = np.frompyfunc(lambda number, n: decimal_average(scaled(number, scale), n, result) if n else None, 2, 1)
            values = divide(whole_numbers(tuple(limbs)), count.astype(object))
            overflow = (overflowed > 0) | (is_none(values) & valid)
            return Lowered(values, valid, overflow if overflow.any() else None)
        return Lowered(self._doubles(total) / np.maximum(count, 1), valid)

    @staticmethod
    def _doubles(total: State) -> Array:
        if total[0].dtype == np.float64:
            return total[0]
        values, fits = bigints(total)
        return values.astype(np.float64) if fits.all() else whole_numbers(total).astype(np.float64)

    def evaluate(self, rows: Sequence[tuple[Any, ...]], result: Type) -> object:
        values = present(rows)
        if not values:
            return None
        if result.kind is not Kind.DECIMAL:
            return exact_sum(values) / len(values)
        average = decimal_average(exact_sum(values), len(values), result)
        if average is None:
            raise DataError(f"an average of decimals fits {result}", values=str(exact_sum(values)), way_out="cast to fewer digits")
        return average


def decimal_average(total: Decimal, count: int, result: Type) -> Decimal | None:
    """Sum over count as Spark rounds it: first to the type of the division, then to the type of the average."""
    scale = result.scale - 4
    sum_digits = min(result.precision - 4 + 10, 38)
    division = adjusted_decimal(sum_digits - scale + max(6, scale + 21), max(6, scale + 21))
    average = rounded(rounded(EXACT.divide(total, Decimal(count)), division.scale), result.scale)
    return average if fits_decimal(average, result) else None


@dataclass(frozen=True)
class ExtremumAggregate(Aggregate):
    name: str
    direction: Direction

    def result_type(self, *types: Type) -> Type:
        (type,) = types
        if type.kind is Kind.OTHER:
            raise TypeMismatch(f"{self.name} is defined on ordered scalar types", values=str(type), way_out="take a scalar column")
        return type

    def partials(self, *types: Type) -> Sequence[Placed]:
        return (Extremum(self.direction, lane_type(types[0])), (0,)), (Count(), (0,))

    def lower(self, result: Type, *states: State) -> Lowered:
        (extreme,), (count,) = states
        return Lowered(extreme, count > 0)

    def evaluate(self, rows: Sequence[tuple[Any, ...]], result: Type) -> object:
        values = present(rows)
        if not values:
            return None
        extreme = min if self.direction is Direction.MIN else max
        return extreme(values, key=lambda value: (value != value, value if value == value else 0))


@dataclass(frozen=True)
class VarianceAggregate(Aggregate):
    """Variance or its root; `freedom` is 0 for the population and 1 for a sample. A sample of one has none: NULL, as in Spark."""

    name: str
    freedom: int
    root: bool

    def result_type(self, *types: Type) -> Type:
        require_numeric(self.name, *types)
        return DOUBLE

    def partials(self, *types: Type) -> Sequence[Placed]:
        return ((Moments(), (0,)),)

    def lower(self, result: Type, *states: State) -> Lowered:
        count, _, m2 = states[0]
        variance = m2 / np.maximum(count - self.freedom, 1)
        return Lowered(np.sqrt(variance) if self.root else variance, count > self.freedom)

    def evaluate(self, rows: Sequence[tuple[Any, ...]], result: Type) -> object:
        values = [float(value) for value in present(rows)]
        if len(values) <= self.freedom:
            return None
        mean = exact_sum(values) / len(values)
        variance = exact_sum([(value - mean) ** 2 for value in values]) / (len(values) - self.freedom)
        return math.sqrt(variance) if self.root else variance


@dataclass(frozen=True)
class WeightedAvgAggregate(Aggregate):
    """Centre of mass Σ x·w / Σ w over rows that have both; NULL where the weights add up to zero."""

    name: str = "weighted_avg"
    arity: int = 2

    def result_type(self, *types: Type) -> Type:
        require_numeric(self.name, *types)
        return DOUBLE

    def partials(self, *types: Type) -> Sequence[Placed]:
        return (ProductSum(), (0, 1)), (WeightSum(), (0, 1))

    def lower(self, result: Type, *states: State) -> Lowered:
        (product,), (weight,) = states
        valid = weight != 0
        return Lowered(product / np.where(valid, weight, 1.0), valid)

    def evaluate(self, rows: Sequence[tuple[Any, ...]], result: Type) -> object:
        pairs = [(float(x), float(w)) for x, w in rows if x is not None and w is not None]
        weight = exact_sum([w for _, w in pairs]) if pairs else 0.0
        return exact_sum([x * w for x, w in pairs]) / weight if weight else None
