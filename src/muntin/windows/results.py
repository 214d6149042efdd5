"""From combined states to result rows: lower the aggregates, compute the select list, apply HAVING.

In: for a set of queries that select the same things, the windows that close and the combined state of each partial column.
Out: one Arrow table for the set, rows in order of query, window end, group; and where a query's data went wrong.
Convention: queries that differ only in their windows go through together, so hundreds of them cost a few array operations.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa

from muntin.aggregates.base import Array, State
from muntin.columnar import arrow_type, to_arrow
from muntin.errors import DataError
from muntin.expression.beyond import array_of, values_of
from muntin.expression.evaluate import Scope, compiled
from muntin.expression.tree import AggregateCall, Bound, Expression, GroupKey, WindowBound, aggregates_of, walk
from muntin.plan.shared import PartialColumn, QueryPlan
from muntin.query.model import FINAL, REVISION, Query
from muntin.schema import Kind, Type
from muntin.semantics import Measure, Unit
from muntin.timeline import BEGINNING


@dataclass(frozen=True)
class Rows:
    """The result rows to be: for each, the index of its window, the number of its group, and how often it was emitted before."""

    window: Array
    group: Array
    start: Array
    end: Array
    keys: Sequence[pa.Array]
    revision: Array
    final: bool = True  #: not running values of open windows

    def __len__(self) -> int:
        return len(self.window)

    def at(self, chosen: Array) -> Rows:
        window, group, start, end, revision = (one[chosen] for one in (self.window, self.group, self.start, self.end, self.revision))
        return Rows(window, group, start, end, self.keys, revision, self.final)


@dataclass(frozen=True)
class Failure:
    """A query's data went wrong in a row: it emits the window of that row and later ones no more."""

    row: int
    error: DataError


def lowered_calls(plan: QueryPlan, states: Mapping[PartialColumn, State]) -> tuple[dict[AggregateCall, pa.Array], list[Failure]]:
    """The value of each aggregate for each row, as Arrow arrays, and the rows whose value its type cannot hold.

    `states` has one element per row.
    """
    values: dict[AggregateCall, pa.Array] = {}
    failures: list[Failure] = []
    for call, (aggregate, columns) in plan.calls.items():
        lowered = aggregate.lower(call.type, *(states[column] for column in columns))
        valid = lowered.valid
        if lowered.overflow is not None:
            over = np.asarray(lowered.overflow & valid, dtype=bool)
            valid = valid & ~over
            failures += [Failure(int(row), overflow(call)) for row in np.nonzero(over)[0]]
        values[call] = to_arrow(lowered.values, valid, call.type)
    return values, failures


def overflow(call: AggregateCall) -> DataError:
    return DataError(f"{call} fits its type {call.type}", values="the result is larger", way_out="cast the argument to a wider type")


def result_schema(query: Query) -> pa.Schema:
    """The columns of a query's results."""
    bound = query.window.measure.bound_type
    fields = [("window_start", bound), ("window_end", bound), *((output.name, output.expression.type) for output in query.outputs)]
    return pa.schema([(name, arrow_type(type)) for name, type in [*fields, *query.marks]])


class SelectList:
    """The outputs and HAVING of a query, ready to be applied to rows."""

    def __init__(self, plan: QueryPlan) -> None:
        self.plan = plan
        self.schema = result_schema(plan.query)
        measure = plan.query.window.measure
        self.outputs = [Projection(output.expression, measure) for output in plan.query.outputs]
        self.having = Projection(plan.query.having, measure) if plan.query.having else None

    def table(self, rows: Rows, states: Mapping[PartialColumn, State]) -> tuple[pa.Table, Array, list[Failure]]:
        """The results, the row each came from, and the failures."""
        calls, failures = lowered_calls(self.plan, states)
        kept = np.arange(len(rows))
        if self.having:
            passed = self.having.column(rows, calls, failures)
            kept = np.nonzero(np.asarray(passed.fill_null(False).to_numpy(zero_copy_only=False), dtype=bool))[0]
            if len(kept) < len(rows):
                rows, calls = rows.at(kept), {call: values.take(pa.array(kept)) for call, values in calls.items()}
        found: list[Failure] = []
        columns = [projection.column(rows, calls, found) for projection in self.outputs]
        failures += [Failure(int(kept[failure.row]), failure.error) for failure in found]
        bounds = [bound_column(ticks, self.plan.query.window.measure) for ticks in (rows.start, rows.end)]
        return pa.Table.from_arrays([*bounds, *columns, *self._marks(rows)], schema=self.schema), kept, failures

    def _marks(self, rows: Rows) -> list[pa.Array]:
        """What says of each result if it is a correction, and if it is final; where the query asks for such."""
        told = {REVISION: pa.array(rows.revision, type=pa.int64()), FINAL: pa.array(np.full(len(rows), rows.final))}
        return [told[name] for name, _ in self.plan.query.marks]


def bound_column(ticks: Array, measure: Measure) -> pa.Array:
    """Bounds of windows in the type of their attribute; one that lies before everything has no value."""
    valid, type = ticks > BEGINNING, measure.bound_type
    if type.kind is Kind.DECIMAL:
        whole = pa.array(ticks, mask=~valid, type=pa.int64())
        return pa.array([None if one is None else Decimal(one).scaleb(-measure.scale) for one in whole.to_pylist()], type=arrow_type(type))
    return to_arrow(ticks / measure.per_one if measure.unit is Unit.DOUBLE else ticks, valid, type)


class Projection:
    """One expression over rows. A bare aggregate, group key or bound is taken as it is; anything else is computed row by row."""

    def __init__(self, expression: Expression, measure: Measure) -> None:
        self.expression = expression
        self.measure = measure
        self._compute = compiled(expression)
        self._calls = aggregates_of(expression)
        self._keys = {node.index for node in walk(expression) if isinstance(node, GroupKey)}

    def column(self, rows: Rows, calls: Mapping[AggregateCall, pa.Array], failures: list[Failure]) -> pa.Array:
        match self.expression:
            case AggregateCall():
                return calls[self.expression]
            case GroupKey(index=index):
                return rows.keys[index].take(pa.array(rows.group))
            case WindowBound(bound=bound):
                return bound_column(rows.start if bound is Bound.START else rows.end, self.measure)
        return self._computed(rows, calls, self.expression.type, failures)

    def _computed(self, rows: Rows, calls: Mapping[AggregateCall, pa.Array], type: Type, failures: list[Failure]) -> pa.Array:
        unused = [None] * len(rows)
        keys = [values_of(key.take(pa.array(rows.group))) if at in self._keys else unused for at, key in enumerate(rows.keys)]
        values = {call: values_of(calls[call]) for call in self._calls}
        starts, ends = self._bounds(rows.start), self._bounds(rows.end)
        out: list[Any] = []
        for row in range(len(rows)):
            aggregates = {call: column[row] for call, column in values.items()}
            scope = Scope(columns={}, groups=[key[row] for key in keys], aggregates=aggregates, start=starts[row], end=ends[row])
            try:
                out.append(self._compute(scope))
            except DataError as error:
                failures.append(Failure(row, error))
                out.append(None)
        return array_of(out, type)

    def _bounds(self, ticks: Array) -> list[Any]:
        """As expressions take them: times in microseconds, numbers as values."""
        if self.measure.unit is not Unit.TIME:
            return list(bound_column(ticks, self.measure).to_pylist())
        return [tick if tick > BEGINNING else None for tick in ticks.tolist()]
