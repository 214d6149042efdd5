"""What a query reads FROM: exactly one stream, anywhere in the list, and the static tables it joins.

In: the tables of a SELECT and the streams and tables that are declared. Out: `Sources`, or a refusal at the name in the way.
Convention: a table goes by its alias if it has one, by its name otherwise; the stream by both. Trees call a table by its declared
name, and by `close#2` where it is joined a second time: here in the order of FROM, for good in the order of `joins`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sqlglot import exp

from muntin.query.model import StreamDefinition, TableDefinition
from muntin.query.names import JoinedTable, suggestion
from muntin.query.shape import tables_of
from muntin.query.text import CreateQuery

Streams = Mapping[str, StreamDefinition]
Tables = Mapping[str, TableDefinition]


@dataclass(frozen=True)
class Sources:
    """The stream's place in FROM and the names that may stand before its columns; the tables in the order of FROM."""

    stream: exp.Table
    qualifiers: frozenset[str]
    tables: tuple[JoinedTable, ...]


def sources_of(statement: CreateQuery, select: exp.Select, streams: Streams, tables: Tables) -> Sources:
    """What the query reads. Streams and tables go by their names in lower case."""
    nodes = tables_of(statement, select)
    stream = _stream(statement, nodes, streams, tables)
    joined = _joined(statement, [node for node in nodes if node is not stream], tables)
    qualifiers = frozenset({stream.name.lower(), stream.alias_or_name.lower()})
    _check_qualifiers(statement, qualifiers, joined)
    _check_stream_columns(statement, streams[stream.name.lower()], joined)
    return Sources(stream, qualifiers, joined)


def join_name(table: str, count: int) -> str:
    """What trees call the `count`-th table of that name."""
    return table if count == 1 else f"{table}#{count}"


def _stream(statement: CreateQuery, nodes: Sequence[exp.Table], streams: Streams, tables: Tables) -> exp.Table:
    found = [node for node in nodes if node.name.lower() in streams]
    if len(found) > 1:
        names = " and ".join(node.name for node in found)
        way_out = "join the streams where one of them is made"
        raise statement.refusal(found[1].this, "a query reads one stream", values=names, way_out=way_out)
    if not found:
        raise _no_stream(statement, nodes, streams, tables)
    return found[0]


def _no_stream(statement: CreateQuery, nodes: Sequence[exp.Table], streams: Streams, tables: Tables) -> Exception:
    unknown = next((node for node in nodes if node.name.lower() not in tables), None)
    if unknown is None:
        law, way_out = "a query reads a stream, and tables are joined with it", "name a stream in FROM"
        return statement.refusal(nodes[0].this, law, values=f"the table {nodes[0].name}", way_out=way_out)
    known = [stream.name for stream in streams.values()]
    way_out = suggestion(unknown.name, known) or f"the streams are: {', '.join(known) or 'none; begin with CREATE STREAM'}"
    return statement.refusal(unknown.this, "a query reads a stream that is declared before it", values=unknown.name, way_out=way_out)


def _joined(statement: CreateQuery, nodes: Sequence[exp.Table], tables: Tables) -> tuple[JoinedTable, ...]:
    joined, counts = [], Counter[str]()
    for node in nodes:
        name = node.name.lower()
        if name not in tables:
            known = [table.name for table in tables.values()]
            way_out = suggestion(node.name, known) or f"the tables are: {', '.join(known) or 'none; declare it with CREATE TABLE'}"
            law = "a query joins tables that are declared before it"
            raise statement.refusal(node.this, law, values=node.name, way_out=way_out)
        if node.args.get("windows"):
            law, way_out = "a window is the stream's; a table has none", "state the window behind the stream's name"
            raise statement.refusal(node.args["windows"][0], law, values=f"a window of the table {node.name}", way_out=way_out)
        counts[name] += 1
        joined.append(JoinedTable(node, tables[name], join_name(name, counts[name]), node.alias_or_name.lower()))
    return tuple(joined)


def _check_qualifiers(statement: CreateQuery, qualifiers: frozenset[str], joined: Sequence[JoinedTable]) -> None:
    taken = set(qualifiers)
    for table in joined:
        if table.qualifier in taken:
            law, way_out = "what FROM names goes by names of its own, whatever the case", "give one of them an alias"
            raise statement.refusal(table.node, law, values=f"{table.node.alias_or_name} twice", way_out=way_out)
        taken.add(table.qualifier)


def _check_stream_columns(statement: CreateQuery, stream: StreamDefinition, joined: Sequence[JoinedTable]) -> None:
    for table in joined:
        same = next((name for name in table.columns.values() if stream.schema.field(name)), None)
        if same:
            law = f"a joined column goes by its table's name and its own, and no column of the stream {stream.name} is called so"
            raise statement.refusal(table.node, law, values=same, way_out="rename the column where the stream is made")
