"""What a name in a query may mean: columns of the stream and of joined tables, the window's bounds, functions and aggregates.

In: names as the user wrote them. Out: `Column`s and `WindowBound`s, or a refusal that suggests the nearest name there is.
Convention: names are looked up without regard to case, as Spark does; a column keeps the spelling of its declaration, and one of a
table has the name of the join before it (`close.cp`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import cached_property

from sqlglot import exp

from muntin.aggregates.base import Aggregate
from muntin.errors import QueryError
from muntin.expression.own import OwnFunction
from muntin.expression.tree import Bound, Column, WindowBound
from muntin.query.model import StreamDefinition, TableDefinition
from muntin.query.text import Statement
from muntin.schema import TIMESTAMP, Kind, Schema, Type

#: Column references that mean a bound: `window_start` as in Flink and RisingWave, `window.start` as in Spark.
BOUNDS = {
    (None, "window_start"): Bound.START,
    (None, "window_end"): Bound.END,
    ("window", "start"): Bound.START,
    ("window", "end"): Bound.END,
}


@dataclass(frozen=True)
class JoinedTable:
    """A static table of FROM: where it stands, what trees call it (`Join.name`), what stands before its columns in the query."""

    node: exp.Table = field(repr=False)
    definition: TableDefinition
    name: str
    qualifier: str

    @cached_property
    def columns(self) -> Mapping[str, str]:
        """Names in trees by declared names."""
        return {known.name: f"{self.name}.{known.name}" for known in self.definition.schema.fields}


@dataclass(frozen=True)
class _Source:
    """Columns of FROM: what trees put before their names, what users may, and whose they are."""

    schema: Schema
    prefix: str
    qualifier: str
    owner: str


@dataclass(frozen=True)
class Scope:
    """The names one query can see. `qualifiers` are those that may stand before a column of the stream."""

    statement: Statement
    stream: StreamDefinition
    qualifiers: frozenset[str]
    aggregates: Mapping[str, Aggregate] = field(repr=False)
    tables: tuple[JoinedTable, ...] = ()
    functions: Mapping[str, OwnFunction] = field(default_factory=dict, repr=False)
    bound_type: Type = TIMESTAMP  #: of window_start and window_end

    def aggregate(self, name: str) -> Aggregate | None:
        wanted = name.lower()
        return next((aggregate for known, aggregate in self.aggregates.items() if known.lower() == wanted), None)

    def has_column(self, node: exp.Expr) -> bool:
        """Whether a node refers to a column that the stream or a table has."""
        return isinstance(node, exp.Column) and bool(self._meant(node))

    def column(self, node: exp.Column) -> Column:
        """The column that a reference names."""
        self._check_qualifier(node)
        meant = self._meant(node)
        if not meant:
            raise self._unknown_column(node)
        if len(meant) > 1:
            raise self._ambiguous(node)
        (found,) = meant
        if found.type.kind is Kind.OTHER:
            raise self.statement.refusal(
                node,
                "expressions work on scalar columns",
                values=f"{found.name} is an array, a map, a struct, binary or the like",
                way_out="put the scalar you need into a column of its own where its rows are made",
            )
        return found

    def _meant(self, node: exp.Column) -> list[Column]:
        """Every column that a reference may mean."""
        at, table = self.statement.at(node), node.table.lower()
        found = []
        for source in self._seen(table):
            known = source.schema.field(node.name)
            if known:
                found.append(Column(source.prefix + known.name, known.type, at))
        return found

    def _seen(self, qualifier: str) -> list[_Source]:
        """What a qualifier stands for; everything if there is none."""
        stream = _Source(self.stream.schema, "", self.stream.name, f"the stream {self.stream.name}")
        tables = [
            _Source(table.definition.schema, f"{table.name}.", table.node.alias_or_name, f"the table {table.definition.name}")
            for table in self.tables
            if qualifier in ("", table.qualifier)
        ]
        return [stream, *tables] if qualifier in ("", *self.qualifiers) else tables

    def bound(self, node: exp.Expr) -> WindowBound | None:
        """The bound of the window that a reference names, if it names one."""
        if not isinstance(node, exp.Column):
            return None
        table = node.table.lower() or None
        if any(table == joined.qualifier for joined in self.tables):
            return None
        qualifier = None if table in self.qualifiers else table
        bound = BOUNDS.get((qualifier, node.name.lower()))
        return WindowBound(bound, self.bound_type, at=self.statement.at(node)) if bound else None

    def _check_qualifier(self, node: exp.Column) -> None:
        if node.args.get("db") or not self._seen(node.table.lower()):
            written = [f"{source.qualifier}.{node.name}" for source in self._seen("")]
            raise self.statement.refusal(
                node,
                "a query sees the columns of what its FROM names",
                values=self.statement.written(node),
                way_out=f"write {' or '.join(written)}, or the column's name alone",
            )

    def _unknown_column(self, node: exp.Column) -> QueryError:
        sources = self._seen(node.table.lower())
        names = [known.name for source in sources for known in source.schema.fields]
        return self.statement.refusal(
            node,
            f"a column is one that {' or '.join(source.owner for source in sources)} has",
            values=self.statement.written(node),
            way_out=suggestion(node.name, names) or "the columns are " + ", ".join(names),
        )

    def _ambiguous(self, node: exp.Column) -> QueryError:
        owners = [source.qualifier for source in self._seen("") if source.schema.field(node.name)]
        way_out = "write " + " or ".join(f"{owner}.{node.name}" for owner in owners)
        law, found = "a column's name means one column", f"{node.name} of {', '.join(owners)}"
        return self.statement.refusal(node, law, values=found, way_out=way_out)


def suggestion(name: str, known: Iterable[str]) -> str:
    """`did you mean …?` for the nearest known name; empty if none is near."""
    by_lower = {candidate.lower(): candidate for candidate in known}
    near = get_close_matches(name.lower(), by_lower, n=1)
    return f"did you mean {by_lower[near[0]]}?" if near else ""
