"""The door for aggregates: `lift`, `combine`, `lower`, `identity`, and `uncombine` only where the aggregate is differential.

A `Partial` is what is stored for a shard: it says how Spark computes it over rows (`lift`), which named and typed lanes hold it,
and how two of them combine. An `Aggregate` says which partials it stands on and how it lowers them to a value, so that an AVG and
a SUM of the same expression share one stored sum. Built-in aggregates come through this door and so do users' own.

In: typed argument expressions at planning; NumPy arrays, one per lane, afterwards. Out: arrays of the same shape.
Convention: every operation works element by element on arrays of any shape; a state is a tuple of lanes.
Paper: panes-2005, section 3.2 (bounded, differential).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

import numpy as np
import numpy.typing as npt

from muntin.schema import Type

Array = npt.NDArray[Any]
State = tuple[Array, ...]


class LaneType(Enum):
    """How a lane is held in memory and in the slice log."""

    INT64 = "int64"
    FLOAT64 = "float64"
    OBJECT = "object"  # strings and decimals: Python values, None where there is none yet

    @property
    def dtype(self) -> npt.DTypeLike:
        return np.dtype(self.value)


class Partial(ABC):
    """A partial aggregate of the rows of one shard."""

    #: A short word, unique among the partials: `sum`, `count`, `min`. With the arguments it names a stored column.
    name: str

    @abstractmethod
    def lanes(self, *types: Type) -> tuple[LaneType, ...]:
        """The lanes that hold the state, for arguments of these types."""

    @abstractmethod
    def lift(self, functions: Any, *columns: Any) -> tuple[Any, ...]:
        """Spark aggregate Columns, one per column Spark returns. `functions` is `pyspark.sql.functions`."""

    def decode(self, *columns: Any) -> State:
        """What Spark returned for `lift`, as Arrow arrays, to lanes. NULL becomes the identity."""
        return tuple(
            np.asarray(column.fill_null(identity).to_numpy(zero_copy_only=False))
            for column, identity in zip(columns, self.identity(), strict=True)
        )

    @abstractmethod
    def identity(self) -> tuple[Any, ...]:
        """One scalar per lane: `combine(identity, a) = a`."""

    @abstractmethod
    def combine(self, a: State, b: State) -> State:
        """Associative and commutative, element by element."""

    def accumulate(self, state: State) -> State:
        """Running combine along axis 0. The default doubles its stride: log2(n) combines of whole arrays."""
        lanes = tuple(lane.copy() for lane in state)
        stride = 1
        while stride < len(lanes[0]):
            later = tuple(lane[stride:] for lane in lanes)
            earlier = tuple(lane[:-stride] for lane in lanes)
            combined = self.combine(earlier, later)
            for lane, values in zip(lanes, combined, strict=True):
                lane[stride:] = values
            stride *= 2
        return lanes

    def reduce(self, state: State, firsts: Array) -> State:
        """Combine runs of neighbours: run i begins at position `firsts[i]`. The default halves every run until all are single."""
        run = np.zeros(len(state[0]), dtype=np.int64)
        run[firsts] = 1
        run = np.cumsum(run) - 1
        while len(run) > len(firsts):
            rank = np.arange(len(run)) - np.nonzero(np.diff(run, prepend=-1))[0][run]
            keep = np.nonzero(rank % 2 == 0)[0]
            paired = keep[(keep + 1 < len(run))]
            paired = paired[run[paired] == run[paired + 1]]
            combined = self.combine(tuple(lane[paired] for lane in state), tuple(lane[paired + 1] for lane in state))
            lanes = tuple(lane.copy() for lane in state)
            for lane, values in zip(lanes, combined, strict=True):
                lane[paired] = values
            state, run = tuple(lane[keep] for lane in lanes), run[keep]
        return state


class Differential(Partial):
    """A partial that can also be taken away exactly: `uncombine(combine(a, b), b) = a`."""

    @abstractmethod
    def uncombine(self, a: State, b: State) -> State:
        """`a` without `b`."""


@dataclass(frozen=True)
class Lowered:
    """Values of a result, where they are not NULL, and where the result's type could not hold them.

    `values` may be of any NumPy type, objects included. An overflow stops the query whose window it is in, and no other.
    """

    values: Array
    valid: Array
    overflow: Array | None = None


class Aggregate(ABC):
    """A function of a query's select list, over partials."""

    name: str
    arity: int = 1

    @abstractmethod
    def result_type(self, *types: Type) -> Type:
        """The type of the result; raises `TypeMismatch` for arguments it is not defined on."""

    @abstractmethod
    def partials(self, *types: Type) -> Sequence[tuple[Partial, tuple[int, ...]]]:
        """The partials it stands on, each with the positions of the arguments it takes."""

    @abstractmethod
    def lower(self, result: Type, *states: State) -> Lowered:
        """The value of the aggregate from the states of its partials."""

    @abstractmethod
    def evaluate(self, rows: Sequence[tuple[Any, ...]], result: Type) -> object:
        """The aggregate over rows of argument values, the slow and obvious way: what the reference and the laws use."""
