"""Rows of the oracle: joined with tables, grouped, and evaluated to a result.

In: rows as mappings. Out: rows, groups in order, a result row. Convention: NULL is a group; zero and negative zero are one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol, Self, TypeVar

from muntin.aggregates.base import Aggregate
from muntin.expression import functions
from muntin.expression.evaluate import Scope, evaluate, holds
from muntin.expression.tree import Expression
from muntin.query.model import Query
from muntin.semantics import LandmarkWindow, TupleSlide, Unit, extent

Row = Mapping[str, Any]
Tables = Mapping[str, Sequence[Row]]
Key = tuple[Any, ...]


class HasRow(Protocol):
    """What carries a row and can carry another in its place."""

    @property
    def row(self) -> Row: ...

    def with_row(self, row: Row) -> Self: ...


Holder = TypeVar("Holder", bound=HasRow)


def joined(query: Query, rows: Sequence[Holder], tables: Tables) -> Sequence[Holder]:
    """Each row once for every row of the joined tables that it matches; a pair that is NULL or fails is no match."""
    for join in query.joins:
        equalities = [functions.call("=", *pair) for pair in join.on]
        others = [{f"{join.name}.{name}": part for name, part in other.items()} for other in tables[join.table]]
        both = [one.with_row({**one.row, **other}) for one in rows for other in others]
        rows = [one for one in both if all(holds(equality, Scope(one.row)) for equality in equalities)]
    return rows


def value(expression: Expression, row: Row) -> Any:
    return evaluate(expression, Scope(columns=row))


def passes(query: Query, row: Row) -> bool:
    return query.where is None or value(query.where, row) is True


def group_key(query: Query, row: Row) -> Key:
    parts = (value(group.expression, row) for group in query.group_by)
    return tuple(part + 0.0 if isinstance(part, float) else part for part in parts)


def grouped(query: Query, rows: Iterable[Holder]) -> dict[str, tuple[Key, list[Holder]]]:
    """Rows by group values; EMIT EMPTY has its one group even without rows."""
    groups: dict[str, tuple[Key, list[Holder]]] = {"()": ((), [])} if query.emit_empty else {}
    for one in rows:
        key = group_key(query, one.row)
        groups.setdefault(repr(key), (key, []))[1].append(one)
    return groups


def sort_key(part: Any) -> tuple[bool, bool, Any]:
    """NULL first, NaN last."""
    return part is not None, part != part, part if part == part and part is not None else 0


def result_row(query: Query, aggregates: Mapping[str, Aggregate], window_id: int, key: Key, rows: Sequence[Row]) -> dict[str, Any] | None:
    """What a window emits for a group of rows; None if HAVING leaves it out."""
    args = {call: [tuple(value(arg, row) for arg in call.args) for row in rows] for call in query.aggregate_calls}
    values = {call: aggregates[call.aggregate].evaluate(given, call.type) for call, given in args.items()}
    start, end = bounds(query, window_id)
    measure = query.window.measure
    named = [None if bound is None else measure.value(bound) for bound in (start, end)]
    scope = Scope({}, key, values, *((start, end) if measure.unit is Unit.TIME else named))
    if query.having is not None and evaluate(query.having, scope) is not True:
        return None
    return dict(zip(("window_start", "window_end"), named, strict=True)) | {
        output.name: evaluate(output.expression, scope) for output in query.outputs
    }


def bounds(query: Query, window_id: int) -> tuple[int | None, int]:
    """The bounds that a result carries, in ticks: of slide-by-tuple `(start, end]`, of a landmark window without period no start."""
    window = query.window
    if isinstance(window, TupleSlide):
        return window_id - window.range, window_id
    inside = extent(window_id, window)
    return None if isinstance(window, LandmarkWindow) and window.period is None else inside.start, inside.end
