"""Users' own aggregates, given as functions: lift, combine, lower.

In: `own_aggregate(name, lift=…, combine=…, lower=…)`. Out: an `Aggregate` like any built-in one.
Convention: `lift(F, *columns)` returns named Spark aggregate Columns of BIGINT or DOUBLE type; `combine` says for each name how two
values combine: 'sum', 'min' or 'max', or is one function of two mappings of NumPy arrays; `lower` takes a mapping of arrays and
returns an array, NaN-free values being valid where `valid`, if given, says so. Exact sums of integers are differential by themselves;
a function `combine` may come with `uncombine`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from muntin.aggregates.base import Aggregate, Array, Differential, LaneType, Lowered, Partial, State
from muntin.aggregates.bounded import Placed
from muntin.columnar import floats, integers
from muntin.errors import Refusal
from muntin.schema import DOUBLE, Type

Named = Mapping[str, Array]
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
    lift_columns: Callable[..., Mapping[str, Any]]
    combine_parts: Callable[[Named, Named], Named]

    def lanes(self, *types: Type) -> tuple[LaneType, ...]:
        return tuple(part.lane for part in self.parts)

    def lift(self, functions: Any, *columns: Any) -> tuple[Any, ...]:
        lifted = self.lift_columns(functions, *columns)
        return tuple(lifted[part.name] for part in self.parts)

    def decode(self, *columns: Any) -> State:
        return tuple(
            integers(column, null=int(part.identity)) if part.lane is LaneType.INT64 else floats(column, null=part.identity)
            for part, column in zip(self.parts, columns, strict=True)
        )

    def identity(self) -> tuple[Any, ...]:
        return tuple(int(part.identity) if part.lane is LaneType.INT64 else part.identity for part in self.parts)

    def combine(self, a: State, b: State) -> State:
        return self._lanes(self.combine_parts(self.named(a), self.named(b)))

    def named(self, state: State) -> Named:
        return {part.name: lane for part, lane in zip(self.parts, state, strict=True)}

    def _lanes(self, named: Named) -> State:
        return tuple(np.asarray(named[part.name], dtype=part.lane.dtype) for part in self.parts)


@dataclass(frozen=True)
class OwnDifferential(OwnPartial, Differential):
    uncombine_parts: Callable[[Named, Named], Named]

    def uncombine(self, a: State, b: State) -> State:
        return self._lanes(self.uncombine_parts(self.named(a), self.named(b)))


@dataclass(frozen=True)
class OwnAggregate(Aggregate):
    name: str
    partial: OwnPartial
    lower_parts: Callable[[Named], Array | tuple[Array, Array]]
    type: Type
    evaluate_rows: Callable[[Sequence[tuple[Any, ...]]], object] | None
    arity: int = 1

    def result_type(self, *types: Type) -> Type:
        return self.type

    def partials(self, *types: Type) -> Sequence[Placed]:
        return ((self.partial, tuple(range(self.arity))),)

    def lower(self, result: Type, *states: State) -> Lowered:
        with np.errstate(all="ignore"):
            values = self.lower_parts(self.partial.named(states[0]))
        values, valid = values if isinstance(values, tuple) else (values, np.ones(np.shape(values), dtype=bool))
        return Lowered(np.asarray(values), np.asarray(valid, dtype=bool))

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
