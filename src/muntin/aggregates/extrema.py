"""Partials that keep an extreme value: minimum and maximum of any ordered type.

Convention: as in Spark, NaN is greater than every other double. Emptiness is not in the lane; the count of non-NULL values beside
it says whether there is a value, so the identity may be any value that never wins.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any

import numpy as np

from muntin.aggregates.base import Array, LaneType, Partial, State
from muntin.columnar import floats, integers, objects
from muntin.schema import Kind, Type


class Direction(Enum):
    MIN = "min"
    MAX = "max"


def lane_type(type: Type) -> LaneType:
    """How extreme values of a type are held."""
    if type.fractional:
        return LaneType.FLOAT64
    return LaneType.OBJECT if type.kind in (Kind.STRING, Kind.DECIMAL) else LaneType.INT64


def _smaller(a: Any, b: Any) -> Any:
    return b if a is None or (b is not None and b < a) else a


def _greater(a: Any, b: Any) -> Any:
    return b if a is None or (b is not None and b > a) else a


_INT64 = np.iinfo(np.int64)
#: (direction, lane) → the operation and its identity. fmin skips NaN and maximum keeps it: NaN is the greatest.
_OPERATIONS: dict[tuple[Direction, LaneType], tuple[Any, Any]] = {
    (Direction.MIN, LaneType.INT64): (np.minimum, _INT64.max),
    (Direction.MAX, LaneType.INT64): (np.maximum, _INT64.min),
    (Direction.MIN, LaneType.FLOAT64): (np.fmin, np.nan),
    (Direction.MAX, LaneType.FLOAT64): (np.maximum, -np.inf),
    (Direction.MIN, LaneType.OBJECT): (np.frompyfunc(_smaller, 2, 1), None),
    (Direction.MAX, LaneType.OBJECT): (np.frompyfunc(_greater, 2, 1), None),
}


@dataclass(frozen=True)
class Extremum(Partial):
    """The least or greatest value."""

    direction: Direction
    lane: LaneType

    @property
    def name(self) -> str:  # type: ignore[override]
        return self.direction.value

    def lanes(self, *types: Type) -> tuple[LaneType, ...]:
        return (self.lane,)

    def lift(self, functions: Any, *columns: Any) -> tuple[Any, ...]:
        extreme: Callable[..., Any] = functions.min if self.direction is Direction.MIN else functions.max
        return (extreme(columns[0]),)

    def decode(self, *columns: Any) -> State:
        if self.lane is LaneType.OBJECT:
            return (objects(columns[0]),)
        (identity,) = self.identity()
        as_lane = integers if self.lane is LaneType.INT64 else floats
        return (as_lane(columns[0], null=identity),)

    def identity(self) -> tuple[Any, ...]:
        return (_OPERATIONS[self.direction, self.lane][1],)

    def combine(self, a: State, b: State) -> State:
        return (_OPERATIONS[self.direction, self.lane][0](a[0], b[0]),)

    def accumulate(self, state: State) -> State:
        return (_OPERATIONS[self.direction, self.lane][0].accumulate(state[0], axis=0, dtype=self.lane.dtype),)

    def reduce(self, state: State, firsts: Array) -> State:
        return (_OPERATIONS[self.direction, self.lane][0].reduceat(state[0], firsts, dtype=self.lane.dtype),)
