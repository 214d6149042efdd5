"""The shared plan: which partial columns are computed once, grouped how, and which query stands on which.

In: checked queries, a slicing and a sharing. Out: a `SharedPlan` of groupings and query plans.
Convention: a grouping is one Spark aggregation, keyed by slice, cell and group columns; a partial column is stored once per grouping,
however many aggregates of however many queries stand on it. How predicates are shared is `divide`'s to say.
Papers: panes-2005, section 3.1 (PLQ and WLQ); on-the-fly-sharing-2006, sections 3.2, 4 and 5.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from muntin.aggregates.base import Aggregate, Partial
from muntin.aggregates.sums import Count
from muntin.expression.functions import FUNCTIONS
from muntin.expression.signature import Function
from muntin.expression.tree import AggregateCall, Call, Expression, walk
from muntin.plan.divide import Division, Load, Sharing, divisions
from muntin.plan.fragments import Axis, Predicate, decomposed
from muntin.plan.slices import SliceManager, Slicing
from muntin.query.model import Query

FIRST_LOAD = Load()


@dataclass(frozen=True)
class Failures(Count):
    """Rows on which an expression of the query failed (overflow, division by zero, a cast that does not fit)."""

    name: str = "failures"


@dataclass(frozen=True)
class PartialColumn:
    """A partial over the rows that satisfy `where`, stored once for all that use it."""

    partial: Partial
    args: tuple[Expression, ...] = ()
    where: Expression | None = None

    def __str__(self) -> str:
        call = f"{self.partial.name}({', '.join(map(str, self.args)) or '*'})"
        return f"{call} where {self.where}" if self.where else call


@dataclass(frozen=True)
class Grouping:
    """One aggregation over the stream: slices × group columns, with its partial columns."""

    keys: tuple[Expression, ...]
    columns: tuple[PartialColumn, ...]
    queries: tuple[Query, ...] = field(repr=False)
    slicing: Slicing
    axes: tuple[Axis, ...] = ()

    def slice_manager(self) -> SliceManager:
        return SliceManager({query.window for query in self.queries}, self.slicing)


@dataclass(frozen=True)
class QueryPlan:
    """Where a query finds its parts: positions of columns in its grouping."""

    query: Query
    grouping: int
    predicate: Predicate | None
    rows: int
    failures: int | None
    calls: Mapping[AggregateCall, tuple[Aggregate, tuple[int, ...]]]

    @property
    def columns(self) -> tuple[int, ...]:
        """Every column the query stands on, each once."""
        used = [self.rows, *([] if self.failures is None else [self.failures])]
        return tuple(dict.fromkeys(used + [at for _, positions in self.calls.values() for at in positions]))


@dataclass(frozen=True)
class SharedPlan:
    groupings: tuple[Grouping, ...]
    queries: tuple[QueryPlan, ...]
    slicing: Slicing
    sharing: Sharing

    def in_grouping(self, index: int) -> tuple[QueryPlan, ...]:
        return tuple(plan for plan in self.queries if plan.grouping == index)


def shared_plan(
    queries: Sequence[Query],
    aggregates: Mapping[str, Aggregate],
    *,
    slicing: Slicing = Slicing.PAIRED,
    sharing: Sharing = Sharing.AUTOMATIC,
    load: Load = FIRST_LOAD,
) -> SharedPlan:
    """The plan for these queries over one stream."""
    groupings: list[Grouping] = []
    plans: list[QueryPlan] = []
    for division in divisions(queries, sharing, load):
        columns: dict[PartialColumn, int] = {}
        for query in division.queries:
            plans.append(query_plan(query, len(groupings), division, columns, aggregates))
        keys = tuple(group.expression for group in division.queries[0].group_by)
        groupings.append(Grouping(keys, tuple(columns), division.queries, slicing, division.axes))
    return SharedPlan(tuple(groupings), tuple(plans), slicing, sharing)


def query_plan(
    query: Query, grouping: int, division: Division, columns: dict[PartialColumn, int], aggregates: Mapping[str, Aggregate]
) -> QueryPlan:
    """Find or add the columns of one query: over all rows where cells tell predicates apart, else over the rows that satisfy its own."""
    by_cell = bool(division.axes)
    where = None if by_cell else query.where

    def position(partial: Partial, args: tuple[Expression, ...]) -> int:
        return columns.setdefault(PartialColumn(partial, args, where), len(columns))

    rows = position(Count(), ())
    fallible = fallible_parts(query, with_predicate=not by_cell)
    failures = position(Failures(), fallible) if fallible else None
    calls = {}
    for call in query.aggregate_calls:
        aggregate = aggregates[call.aggregate]
        placed = aggregate.partials(*(arg.type for arg in call.args))
        calls[call] = aggregate, tuple(position(partial, tuple(call.args[at] for at in taken)) for partial, taken in placed)
    predicate = decomposed(query.where) if by_cell and query.where is not None else None
    return QueryPlan(query, grouping, predicate, rows, failures, calls)


def fallible_parts(query: Query, *, with_predicate: bool) -> tuple[Expression, ...]:
    """The row-level expressions of a query that can fail on some row; a predicate told apart by cells has a position for that."""
    parts = [group.expression for group in query.group_by] + [arg for call in query.aggregate_calls for arg in call.args]
    parts += [query.where] if query.where and with_predicate else []
    return tuple(dict.fromkeys(part for part in parts if can_fail(part)))


def can_fail(expression: Expression) -> bool:
    """Whether some row could make a function in the expression fail."""
    return any(
        isinstance(node, Call) and isinstance(row := FUNCTIONS[node.function], Function) and row.can_fail(node) for node in walk(expression)
    )
