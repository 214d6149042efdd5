"""The shared plan: which partial columns are computed once, grouped how, and which query stands on which.

In: checked queries, a slicing and a sharing. Out: a `SharedPlan` of groupings and query plans.
Convention: a grouping is one aggregation in Spark, keyed by slice, cell and group columns; a query stands on partial columns over the
rows that satisfy its predicate, and how those come about (a column of their own, or cells folded by the predicate) is the grouping's
affair. So a plan can change from batch to batch while what is held for the queries stays.
Papers: panes-2005, section 3.1 (PLQ and WLQ); on-the-fly-sharing-2006, sections 3.2, 4 and 5.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache

from muntin.aggregates.base import Aggregate, Partial
from muntin.aggregates.sums import Count, CountNth
from muntin.expression.functions import FUNCTIONS
from muntin.expression.signature import Function
from muntin.expression.tree import AggregateCall, Call, Expression, OwnCall, walk
from muntin.hashing import hashed_once, shared
from muntin.plan.divide import FIRST_LOAD, Division, Load, Sharing, all_axes, divisions, nowhere
from muntin.plan.family import Family, family_of
from muntin.plan.fragments import Axis
from muntin.plan.slices import SliceManager, Slicing
from muntin.query.model import Query
from muntin.semantics import Attribute, SlideOrder, TupleSlide


@dataclass(frozen=True)
class Failures(Count):
    """Rows on which the query's predicate failed, or that satisfy it and on which another expression did.

    To fail is an overflow, a division by zero, a cast that does not fit.
    """

    name: str = "failures"


@dataclass(frozen=True)
class News(Count):
    """Rows that came since the last early results of queries with this EMIT EVERY, in microseconds. Spark does not count them:
    they are the rows of every batch, and forgotten once they are told.
    """

    name: str = "news"
    every: int = 0


@hashed_once
@dataclass(frozen=True)
class PartialColumn:
    """A partial over some arguments. In a grouping without cells, `where` says over which rows."""

    partial: Partial
    args: tuple[Expression, ...] = ()
    where: Expression | None = None

    def __str__(self) -> str:
        call = f"{self.partial.name}({', '.join(map(str, self.args)) or '*'})"
        return f"{call} where {self.where}" if self.where else call


ROWS = PartialColumn(Count())


@dataclass(frozen=True)
class Grouping:
    """One aggregation over the stream: slices × cells × group columns, with its partial columns."""

    family: Family
    columns: tuple[PartialColumn, ...]
    queries: tuple[Query, ...] = field(repr=False)
    slicing: Slicing
    by_cell: bool = False
    axes: tuple[Axis, ...] = ()

    @property
    def keys(self) -> tuple[Expression, ...]:
        return self.family.keys

    def slice_manager(self) -> SliceManager:
        return SliceManager({query.window for query in self.queries}, self.slicing)

    @property
    def by_tuple(self) -> bool:
        """Whether it serves slide-by-tuple windows: a shard is then a tick."""
        return self.family.by_tuple

    @cached_property
    def _positions(self) -> Mapping[PartialColumn, int]:
        return {column: at for at, column in enumerate(self.columns)}

    def source(self, column: PartialColumn, where: Expression | None) -> int | None:
        """Where the grouping has what a query with this predicate holds; None for failures that only cells tell of."""
        return self._positions.get(computed(column, where, by_cell=self.by_cell))


def computed(column: PartialColumn, where: Expression | None, *, by_cell: bool) -> PartialColumn:
    """The column of a grouping that a query's column comes from."""
    return column if by_cell else replace(column, where=where)


@dataclass(frozen=True)
class QueryPlan:
    """What a query stands on: columns over the rows that satisfy its predicate, and the grouping they come from."""

    query: Query
    grouping: int
    failures: PartialColumn | None
    calls: Mapping[AggregateCall, tuple[Aggregate, tuple[PartialColumn, ...]]]
    spread: bool = False

    @cached_property
    def family(self) -> Family:
        return shared(replace(family_of(self.query), spread=True)) if self.spread else family_of(self.query)

    @cached_property
    def columns(self) -> tuple[PartialColumn, ...]:
        """Every column the query stands on, each once, the rows first."""
        used = [ROWS, *([] if self.failures is None else [self.failures])]
        return tuple(dict.fromkeys(used + [column for _, columns in self.calls.values() for column in columns]))

    @cached_property
    def news(self) -> PartialColumn | None:
        """What is new to its early results, if it has any."""
        return None if self.query.emit_every is None else shared(PartialColumn(News(every=self.query.emit_every.micros)))

    @cached_property
    def held(self) -> tuple[PartialColumn, ...]:
        """Every column that is held for the query."""
        return self.columns if self.news is None else (*self.columns, self.news)

    @cached_property
    def selects(self) -> object:
        """What queries have in common that differ only in their windows and predicates."""
        query = self.query
        return shared((query.outputs, query.having, query.emit_empty, query.marks, self.columns))


@dataclass(frozen=True)
class SharedPlan:
    groupings: tuple[Grouping, ...]
    queries: tuple[QueryPlan, ...]
    slicing: Slicing
    sharing: Sharing
    division: tuple[Division, ...] = ()

    def part(self, *, spread: bool) -> SharedPlan:
        """The plan of the queries that are spread over instances, or of those that are assembled once; all groupings stay."""
        return replace(self, queries=tuple(plan for plan in self.queries if plan.spread is spread))

    @property
    def attributes(self) -> list[Attribute]:
        """What windows are over."""
        return list(dict.fromkeys(grouping.family.over for grouping in self.groupings))

    @cached_property
    def shape(self) -> object:
        """What plans have in common whose groupings count the same things, whatever their constants and windows."""
        return frozenset((one.family, frozenset(axis.expression for axis in one.axes), frozenset(one.columns)) for one in self.groupings)

    def in_grouping(self, index: int) -> tuple[QueryPlan, ...]:
        return tuple(plan for plan in self.queries if plan.grouping == index)


def shared_plan(
    queries: Sequence[Query],
    aggregates: Mapping[str, Aggregate],
    *,
    slicing: Slicing = Slicing.PAIRED,
    sharing: Sharing = Sharing.AUTOMATIC,
    load: Load = FIRST_LOAD,
    spread: Callable[[Family], bool] = nowhere,
) -> SharedPlan:
    """The plan for these queries over one stream; `spread` says which families are assembled by several instances."""
    return divided_plan(divisions(queries, sharing, load, spread), aggregates, slicing=slicing, sharing=sharing)


def divided_plan(parts: Sequence[Division], aggregates: Mapping[str, Aggregate], *, slicing: Slicing, sharing: Sharing) -> SharedPlan:
    """The plan for queries that are divided already."""
    groupings: list[Grouping] = []
    plans: list[QueryPlan] = []
    known = all_axes(parts)
    for part in parts:
        columns: dict[PartialColumn, None] = {}
        mine = [query_plan(query, len(groupings), aggregates, spread=part.spread) for query in part.queries]
        plans += mine
        for stood_on, where in dict.fromkeys((plan.columns, None if part.by_cell else plan.query.where) for plan in mine):
            for column in stood_on:
                source = computed(column, where, by_cell=part.by_cell)
                if source.args or source.where is not None or not isinstance(source.partial, Failures):
                    columns.setdefault(source)
        for window in dict.fromkeys(query.window for query in part.queries if isinstance(query.window, TupleSlide)):
            columns.setdefault(marks_of(window))
        groupings.append(Grouping(part.family, tuple(columns), part.queries, slicing, part.by_cell, part.axes(known)))
    return SharedPlan(tuple(groupings), tuple(plans), slicing, sharing, tuple(parts))


def marks_of(window: TupleSlide) -> PartialColumn:
    """The column that counts the tuples of a tick that SLIDE goes by, whatever WHERE says of them."""
    every_nth = window.order is SlideOrder.ARRIVAL and window.slide > 1
    return PartialColumn(CountNth(every=window.slide)) if every_nth else ROWS


def query_plan(query: Query, grouping: int, aggregates: Mapping[str, Aggregate], *, spread: bool = False) -> QueryPlan:
    return _query_plan(query, query.text, grouping, tuple(aggregates[call.aggregate] for call in query.aggregate_calls), spread)


@lru_cache(maxsize=10_000)
def _query_plan(query: Query, _text: str, grouping: int, aggregates: tuple[Aggregate, ...], spread: bool) -> QueryPlan:
    """Kept: when queries come and go, most of them stay."""
    calls = {}
    for call, aggregate in zip(query.aggregate_calls, aggregates, strict=True):
        placed = aggregate.partials(*(arg.type for arg in call.args))
        calls[call] = aggregate, tuple(shared(PartialColumn(partial, tuple(call.args[at] for at in taken))) for partial, taken in placed)
    return QueryPlan(query, grouping, failures_of(query), calls, spread)


def failures_of(query: Query) -> PartialColumn | None:
    """Counts the rows on which something of the query fails; None if nothing can.

    Its arguments are what is computed of rows that satisfy the predicate. That the predicate itself fails is told by the cell, or by
    the condition of the column: so queries that differ only in their predicates have one column.
    """
    parts = [group.expression for group in query.group_by] + [arg for call in query.aggregate_calls for arg in call.args]
    fallible = tuple(dict.fromkeys(part for part in parts if part != query.where and can_fail(part)))
    return shared(PartialColumn(Failures(), fallible)) if fallible or (query.where is not None and can_fail(query.where)) else None


@lru_cache(maxsize=10_000)
def can_fail(expression: Expression) -> bool:
    """Whether some row could make a function in the expression fail."""
    return any(node_can_fail(node) for node in walk(expression))


def node_can_fail(node: Expression) -> bool:
    if isinstance(node, OwnCall):
        return node.function.can_fail
    return isinstance(node, Call) and isinstance(row := FUNCTIONS[node.function], Function) and row.can_fail(node)
