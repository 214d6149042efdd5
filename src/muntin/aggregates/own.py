"""Users' own aggregates, given as functions: lift, combine, lower.

In: `own_aggregate(name, lift=…, combine=…, lower=…)`. Out: an `Aggregate` like any built-in one.
Convention: `lift(F, *columns)` returns named Spark aggregate Columns of BIGINT or DOUBLE type; `combine` says for each name how two
values combine: 'sum', 'min' or 'max', or is one function of two mappings of NumPy arrays; `lower` takes a mapping of arrays and
returns an array, NaN-free values being valid where `valid`, if given, says so. Exact sums of integers are differential by themselves;
a function `combine` may come with `uncombine`.
An overflow stops the queries whose windows it is in. In Spark: `lift` is handed guarded functions and Columns (`guarded`), and the state
counts the shards that failed. In NumPy: the same function is applied to the parts as doubles, and by how many times 2^64 the two
results differ is kept beside each integer part, so that a running total may wrap and a window of it still be exact. A function that
doubles do not have, a bitwise one, does not overflow.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from muntin.aggregates.base import Aggregate, Array, Differential, LaneType, Lowered, Partial, State
from muntin.aggregates.bounded import Placed
from muntin.aggregates.guarded import Guarded, GuardedFunctions
from muntin.columnar import floats, integers
from muntin.errors import Refusal
from muntin.expression.signature import either
from muntin.identity import identity_of
from muntin.schema import DOUBLE, Type

Named = Mapping[str, Array]
#: How far a wrapped integer is from what it should be.
_ROUND = 2.0**64
_OPERATIONS: dict[str, tuple[Callable[..., Any], dict[LaneType, Any]]] = {
    "sum": (np.add, {LaneType.INT64: 0, LaneType.FLOAT64: 0.0}),
    "min": (np.fmin, {LaneType.INT64: np.iinfo(np.int64).max, LaneType.FLOAT64: np.nan}),
    "max": (np.fmax, {LaneType.INT64: np.iinfo(np.int64).min, LaneType.FLOAT64: np.nan}),
}


@dataclass(frozen=True)
class Part:
    """One named value of an own aggregate's state: its lane and its identity."""

    name: str
    lane: LaneType = LaneType.FLOAT64
    identity: float = 0.0


@dataclass(frozen=True)
class OwnPartial(Partial):
    """The state of an own aggregate: all its parts together, combined by the user's function or name by name."""

    name: str
    parts: tuple[Part, ...]
    lift_columns: Callable[..., Mapping[str, Any]] = field(compare=False)
    combine_parts: Callable[[Named, Named], Named] = field(compare=False)
    functions: str = field(default="", kw_only=True, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "functions", self.functions or identity_of(self.lift_columns, self.combine_parts))

    @property
    def whole(self) -> tuple[int, ...]:
        """The positions of the integer parts. Behind the parts a state has a lane of wraps for each, then one of failures."""
        return tuple(at for at, part in enumerate(self.parts) if part.lane is LaneType.INT64)

    def lanes(self, *types: Type) -> tuple[LaneType, ...]:
        return (*(part.lane for part in self.parts), *(LaneType.INT64 for _ in self.whole), LaneType.INT64)

    def lift(self, functions: Any, *columns: Any) -> tuple[Any, ...]:
        guarded = GuardedFunctions(functions)
        parts = [guarded.guarded(one) for one in self._lifted(guarded, [guarded.guarded(column) for column in columns])]
        failed = either(*(part.failed for part in parts))
        return (*(part.column for part in parts), functions.max(functions.lit(0)) if failed is None else failed.cast("bigint"))

    def _lifted(self, functions: GuardedFunctions, columns: Sequence[Guarded]) -> list[Any]:
        """The Columns in the order of the parts."""
        try:
            lifted = self.lift_columns(functions, *columns)
            return [lifted[part.name] for part in self.parts]
        except Exception as error:  # a user's function may raise anything
            raise Refusal(
                f"the lift of {self.name} makes a Column for each part, of the functions and Columns it is given",
                values=f"{type(error).__name__}: {error}".splitlines()[0],
                way_out=f"write it with its first argument: lambda F, x: {{'{self.parts[0].name}': F.count(x), …}}",
            ) from error

    def decode(self, *columns: Any) -> State:
        *of_parts, failed = columns
        held = [
            integers(column, null=int(part.identity)) if part.lane is LaneType.INT64 else floats(column, null=part.identity)
            for part, column in zip(self.parts, of_parts, strict=True)
        ]
        failures = integers(failed, null=0)
        return (*held, *(np.zeros_like(failures) for _ in self.whole), failures)

    def identity(self) -> tuple[Any, ...]:
        parts = (int(part.identity) if part.lane is LaneType.INT64 else part.identity for part in self.parts)
        return (*parts, *(0 for _ in self.whole), 0)

    def combine(self, a: State, b: State) -> State:
        return self._joined(self.combine_parts, a, b, a[-1] + b[-1])

    def _joined(self, join: Callable[[Named, Named], Named], a: State, b: State, failures: Array) -> State:
        with np.errstate(all="ignore"):
            named = join(self.named(a), self.named(b))
            parts = tuple(np.asarray(named[part.name], dtype=part.lane.dtype) for part in self.parts)
            return (*parts, *self._wraps(join, parts, a, b), failures)

    def _wraps(self, join: Callable[[Named, Named], Named], parts: State, a: State, b: State) -> State:
        """By how many times 2^64 each integer part is less than it should be."""
        if not self.whole:
            return ()
        try:
            doubles = join(self._doubles(a), self._doubles(b))
        except TypeError:  # NumPy's answer to a bitwise operation on doubles
            return tuple(x + y for x, y in zip(self.wraps(a), self.wraps(b), strict=True))
        apart = [(np.asarray(doubles[self.parts[at].name], dtype=np.float64) - parts[at]) / _ROUND for at in self.whole]
        return tuple(np.nan_to_num(np.rint(one), posinf=0, neginf=0).astype(np.int64) for one in apart)

    def _doubles(self, state: State) -> Named:
        """The parts as doubles, integers as large as they are without wrapping."""
        wraps = dict(zip(self.whole, self.wraps(state), strict=True))
        return {
            part.name: lane.astype(np.float64) + wraps[at] * _ROUND if at in wraps else lane
            for at, (part, lane) in enumerate(zip(self.parts, state, strict=False))
        }

    def wraps(self, state: State) -> State:
        return state[len(self.parts) : -1]

    def overflowed(self, state: State) -> Array:
        """Where a row failed in Spark, or an integer part is larger than its lane."""
        failed: Array = state[-1] > 0
        for wraps in self.wraps(state):
            failed = failed | (wraps != 0)
        return failed

    def named(self, state: State) -> Named:
        return {part.name: lane for part, lane in zip(self.parts, state, strict=False)}


@dataclass(frozen=True)
class OwnDifferential(OwnPartial, Differential):
    uncombine_parts: Callable[[Named, Named], Named] = field(compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "functions", self.functions or identity_of(self.lift_columns, self.combine_parts, self.uncombine_parts))

    def uncombine(self, a: State, b: State) -> State:
        return self._joined(self.uncombine_parts, a, b, a[-1] - b[-1])


@dataclass(frozen=True)
class OwnAggregate(Aggregate):
    name: str
    partial: OwnPartial
    lower_parts: Callable[[Named], Array | tuple[Array, Array]] = field(compare=False)
    type: Type
    evaluate_rows: Callable[[Sequence[tuple[Any, ...]]], object] | None = field(compare=False)
    arity: int = 1
    functions: str = field(default="", kw_only=True, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "functions", self.functions or identity_of(self.lower_parts, self.evaluate_rows))

    def result_type(self, *types: Type) -> Type:
        return self.type

    def partials(self, *types: Type) -> Sequence[Placed]:
        return ((self.partial, tuple(range(self.arity))),)

    def lower(self, result: Type, *states: State) -> Lowered:
        with np.errstate(all="ignore"):
            values = self.lower_parts(self.partial.named(states[0]))
        values, valid = values if isinstance(values, tuple) else (values, np.ones(np.shape(values), dtype=bool))
        overflow = self.partial.overflowed(states[0])
        return Lowered(np.asarray(values), np.asarray(valid, dtype=bool) | overflow, overflow if overflow.any() else None)

    def evaluate(self, rows: Sequence[tuple[Any, ...]], result: Type) -> object:
        if self.evaluate_rows is None:
            raise Refusal(f"{self.name} has no `evaluate`", way_out="give own_aggregate an evaluate= to use it with the reference")
        return self.evaluate_rows(rows)


def own_aggregate(
    name: str,
    *,
    lift: Callable[..., Mapping[str, Any]],
    combine: Mapping[str, str] | Callable[[Named, Named], Named],
    lower: Callable[[Named], Array | tuple[Array, Array]],
    parts: Sequence[Part] = (),
    uncombine: Callable[[Named, Named], Named] | None = None,
    arity: int = 1,
    result_type: Type = DOUBLE,
    evaluate: Callable[[Sequence[tuple[Any, ...]]], object] | None = None,
) -> OwnAggregate:
    """An aggregate of the user's own. `parts` name the state; with `combine` by name they default to DOUBLE parts of those names."""
    if isinstance(combine, Mapping):
        operations = {part: _operation(name, how) for part, how in combine.items()}
        given = {part.name: part for part in parts}
        parts = [_with_identity(given.get(part, Part(part)), identities) for part, (_, identities) in operations.items()]
        if uncombine is None and all(combine[part.name] == "sum" and part.lane is LaneType.INT64 for part in parts):
            uncombine = _by_name(dict.fromkeys(combine, np.subtract))
        combine = _by_name({part: operation for part, (operation, _) in operations.items()})
    if not parts:
        raise Refusal(f"the state of {name} has named parts", way_out="give parts=[Part('n', LaneType.INT64), …] with a function combine")
    if uncombine is not None:
        partial: OwnPartial = OwnDifferential(name, tuple(parts), lift, combine, uncombine)
    else:
        partial = OwnPartial(name, tuple(parts), lift, combine)
    return OwnAggregate(name, partial, lower, result_type, evaluate, arity)


def _operation(name: str, how: str) -> tuple[Callable[..., Any], dict[LaneType, Any]]:
    if how not in _OPERATIONS:
        raise Refusal(f"parts of {name} combine by name or by a function", values=how, way_out=f"one of {', '.join(_OPERATIONS)}")
    return _OPERATIONS[how]


def _with_identity(part: Part, identities: Mapping[LaneType, Any]) -> Part:
    return Part(part.name, part.lane, identities[part.lane])


def _by_name(operations: Mapping[str, Callable[..., Any]]) -> Callable[[Named, Named], Named]:
    return lambda a, b: {part: operation(a[part], b[part]) for part, operation in operations.items()}
