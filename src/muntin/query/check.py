"""Statements to checked definitions and queries: every rule of the SQL, each refusal with its place.

In: statements of `text`, the stream they read, the tables and aggregates there are. Out: `Query`, `Pipeline`.
Convention: results always carry window_start and window_end, so a select item that is just that is dropped, and nothing else may
be called that. A position in a query's trees counts from the beginning of the query's own text.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from sqlglot import exp

from muntin.aggregates.base import Aggregate
from muntin.errors import QueryError, Refusal
from muntin.expression.own import OwnFunction
from muntin.expression.tree import Bound, Column, Expression, GroupKey, WindowBound
from muntin.hashing import shared
from muntin.query.allowed import Clause
from muntin.query.definitions import check_stream, check_table
from muntin.query.emission import emission_of
from muntin.query.grouping import SelectItem, group_columns, over_groups, select_items
from muntin.query.joins import joined
from muntin.query.model import REVISION, GroupColumn, Output, Pipeline, Query, StreamDefinition, TableDefinition
from muntin.query.names import Scope
from muntin.query.rebuild import Rebuild
from muntin.query.registry import Registry
from muntin.query.shape import select_of
from muntin.query.sources import sources_of
from muntin.query.supported import check_supported
from muntin.query.text import CreateQuery, CreateStream, CreateTable, DropQuery, Statement, parse
from muntin.query.windowing import window_of

__all__ = ["changed", "check_pipeline", "check_query", "check_stream", "check_table"]

NO_TABLES: Mapping[str, TableDefinition] = MappingProxyType({})
NO_FUNCTIONS: Mapping[str, OwnFunction] = MappingProxyType({})


def check_query(
    statement: CreateQuery,
    stream: StreamDefinition,
    aggregates: Mapping[str, Aggregate],
    tables: Mapping[str, TableDefinition] = NO_TABLES,
    functions: Mapping[str, OwnFunction] = NO_FUNCTIONS,
) -> Query:
    """The query a statement describes over a stream and the tables it joins. Tables and functions go by their names in lower case."""
    select = select_of(statement)
    sources = sources_of(statement, select, {stream.name.lower(): stream}, tables)
    found = joined(Scope(statement, stream, sources.qualifiers, aggregates, sources.tables, functions), select)
    grouped: Sequence[exp.Expr] = select.args["group"].expressions if select.args.get("group") else ()
    clause = window_of(found.scope, sources.stream, grouped)
    scope = replace(found.scope, bound_type=clause.window.measure.bound_type)
    emission = emission_of(scope, statement, clause.window, select)
    items = select_items(scope, select)
    groups = group_columns(scope, grouped, items, clause.partition)
    outputs = _outputs(scope, items, groups)
    query = Query(
        name=statement.name,
        stream=stream.name,
        window=clause.window,
        outputs=outputs,
        where=found.where,
        group_by=_named(scope, select, groups, outputs),
        having=_having(scope, select.args.get("having"), items, groups),
        emit_empty=emission.empty,
        joins=found.joins,
        text=statement.source,
        emit_every=emission.every,
        late=emission.late,
    )
    _check_aggregates(statement, select, query, grouped)
    _check_marks(scope, items, query)
    return query


def check_pipeline(text: str, aggregates: Mapping[str, Aggregate], functions: Mapping[str, OwnFunction] = NO_FUNCTIONS) -> Pipeline:
    """A whole pipeline file, statement by statement: a stream is declared before the queries that read it."""
    streams: dict[str, StreamDefinition] = {}
    tables: dict[str, TableDefinition] = {}
    registry = Registry()
    for statement in parse(text):
        if isinstance(statement, CreateStream | CreateTable):
            _check_new(statement, [*streams.values(), *tables.values()])
            if isinstance(statement, CreateStream):
                streams[statement.name.lower()] = check_stream(statement)
            else:
                tables[statement.name.lower()] = check_table(statement)
        elif isinstance(statement, CreateQuery | DropQuery):
            registry = changed(registry, statement, streams, tables, aggregates, functions)
    return Pipeline(tuple(streams.values()), tuple(tables.values()), registry.queries)


def changed(
    registry: Registry,
    statement: CreateQuery | DropQuery,
    streams: Mapping[str, StreamDefinition],
    tables: Mapping[str, TableDefinition],
    aggregates: Mapping[str, Aggregate],
    functions: Mapping[str, OwnFunction] = NO_FUNCTIONS,
) -> Registry:
    """The registry after a CREATE QUERY or DROP QUERY. Streams, tables and functions go by their names in lower case."""
    try:
        if isinstance(statement, DropQuery):
            return registry.drop(statement.name)
        sources = sources_of(statement, select_of(statement), streams, tables)
        stream = streams[sources.stream.name.lower()]
        query = check_query(statement, stream, aggregates, tables, functions)
        check_supported(statement, query)
        # A query that comes back is the object it was: whoever looks it up compares no trees.
        return registry.add(shared((query, query.text))[0])
    except QueryError:
        raise
    except Refusal as refusal:
        place = statement.tree.this or statement.tree
        raise statement.refusal(place, refusal.law, values=refusal.values, way_out=refusal.way_out) from None


def _check_new(statement: Statement, known: Iterable[StreamDefinition | TableDefinition]) -> None:
    same = next((definition for definition in known if definition.name.lower() == statement.name.lower()), None)
    if same:
        law = "streams and tables have names of their own, whatever the case"
        found = f"{statement.name}, and there is {same.name} already"
        raise statement.refusal(statement.tree.this, law, values=found, way_out="choose another name")


def _outputs(scope: Scope, items: Sequence[SelectItem], groups: Sequence[GroupColumn]) -> tuple[Output, ...]:
    outputs: dict[str, Output] = {}
    for item in items:
        expression = over_groups(scope, item.node, Rebuild(scope, Clause.SELECT)(item.node), groups)
        if isinstance(expression, WindowBound) and item.name.lower() == expression.bound.value:
            continue
        _check_not_hidden(scope, item.name, item.node)
        if item.name.lower() in outputs:
            law, way_out = "results have one column of a name, whatever the case", "name one of them with AS"
            raise scope.statement.refusal(item.node, law, values=f"{item.name} twice", way_out=way_out)
        outputs[item.name.lower()] = Output(item.name, expression)
    return tuple(outputs.values())


def _check_not_hidden(scope: Scope, name: str, node: exp.Expr) -> None:
    if name.lower() in {bound.value for bound in Bound}:
        law = f"{name.lower()} in a result is the window's bound, and nothing else hides it"
        raise scope.statement.refusal(node, law, values=scope.statement.written(node), way_out="give it another name with AS")


def _check_marks(scope: Scope, items: Sequence[SelectItem], query: Query) -> None:
    """Early and corrected results are marked as such."""
    marks = {name: "LATE REEMIT" if name == REVISION else "EMIT EVERY" for name, _ in query.marks}
    for item in items:
        if item.name.lower() in marks:
            law = f"{item.name.lower()} in a result of a query with {marks[item.name.lower()]} says what the result is"
            raise scope.statement.refusal(item.node, law, values=scope.statement.written(item.node), way_out="give it another name with AS")


def _named(scope: Scope, select: exp.Select, groups: Sequence[GroupColumn], outputs: Sequence[Output]) -> tuple[GroupColumn, ...]:
    """Group columns under the names they come out by, if they do."""
    selected = {output.expression.index: output.name for output in reversed(outputs) if isinstance(output.expression, GroupKey)}
    named = tuple(GroupColumn(selected.get(index, group.name), group.expression) for index, group in enumerate(groups))
    place = select.args.get("group") or select  # PATTR groups without GROUP BY
    for index, group in enumerate(named):
        _check_not_hidden(scope, group.name, place)
        if group.name.lower() in {other.name.lower() for other in named[:index]}:
            law, way_out = "group columns have names of their own, whatever the case", "give the select item another name with AS"
            raise scope.statement.refusal(place, law, values=f"{group.name} twice", way_out=way_out)
    return named


def _having(scope: Scope, having: exp.Expr | None, items: Sequence[SelectItem], groups: Sequence[GroupColumn]) -> Expression | None:
    """HAVING may use the names of select items; a group column of the same name comes first, as in Spark."""
    if having is None:
        return None
    declared = {name: column for table in scope.tables for column, name in table.columns.items()}
    columns = {declared.get(one.expression.name, one.expression.name).lower() for one in groups if isinstance(one.expression, Column)}
    aliases = {item.name.lower(): item.node for item in items if item.aliased and item.name.lower() not in columns}
    return over_groups(scope, having, Rebuild(scope, Clause.HAVING, aliases).boolean(having.this), groups)


def _check_aggregates(statement: CreateQuery, select: exp.Select, query: Query, grouped: Sequence[exp.Expr]) -> None:
    if query.emit_empty and query.group_by:
        law = "EMIT EMPTY is for queries without GROUP BY: an empty window has no groups"
        found = ", ".join(group.name for group in query.group_by)
        place = select.args.get("group") or select
        raise statement.refusal(place, law, values=f"GROUP BY {found}", way_out="leave EMIT EMPTY or GROUP BY out")
    if not query.aggregate_calls and not grouped:
        law, way_out = "a query aggregates its windows", "add an aggregate such as count(*), or a GROUP BY"
        found = ", ".join(map(statement.written, select.expressions))
        raise statement.refusal(select.expressions[0] if select.expressions else select, law, values=found or "nothing", way_out=way_out)
