"""What a name in a query may mean: the stream's columns, the window's bounds, functions and aggregates.

In: names as the user wrote them. Out: `Column`s and `WindowBound`s, or a refusal that suggests the nearest name there is.
Convention: names are looked up without regard to case, as Spark does; a column keeps the stream's spelling.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches

from sqlglot import exp

from muntin.aggregates.base import Aggregate
from muntin.errors import QueryError
from muntin.expression.tree import Bound, Column, WindowBound
from muntin.query.model import StreamDefinition
from muntin.query.text import Statement
from muntin.schema import Kind

#: Column references that mean a bound: `window_start` as in Flink and RisingWave, `window.start` as in Spark.
BOUNDS = {
    (None, "window_start"): Bound.START,
    (None, "window_end"): Bound.END,
    ("window", "start"): Bound.START,
    ("window", "end"): Bound.END,
}


@dataclass(frozen=True)
class Scope:
    """The names one query can see. `qualifiers` are those that may stand before a column's name."""

    statement: Statement
    stream: StreamDefinition
    qualifiers: frozenset[str]
    aggregates: Mapping[str, Aggregate] = field(repr=False)

    def aggregate(self, name: str) -> Aggregate | None:
        wanted = name.lower()
        return next((aggregate for known, aggregate in self.aggregates.items() if known.lower() == wanted), None)

    def has_column(self, node: exp.Expr) -> bool:
        """Whether a node refers to a column that the stream has."""
        if not isinstance(node, exp.Column) or (node.table and node.table.lower() not in self.qualifiers):
            return False
        return self.stream.schema.field(node.name) is not None

    def column(self, node: exp.Column) -> Column:
        """The column of the stream that a reference names."""
        self._check_qualifier(node)
        found = self.stream.schema.field(node.name)
        if found is None:
            raise self._unknown_column(node)
        if found.type.kind is Kind.OTHER:
            raise self.statement.refusal(
                node,
                "expressions work on scalar columns",
                values=f"{found.name} is an array, a map, a struct, binary or the like",
                way_out="put the scalar you need into a column of its own where the stream is made",
            )
        return Column(found.name, found.type, self.statement.at(node))

    def bound(self, node: exp.Expr) -> WindowBound | None:
        """The bound of the window that a reference names, if it names one."""
        if not isinstance(node, exp.Column):
            return None
        table = node.table.lower() or None
        qualifier = None if table in self.qualifiers else table
        bound = BOUNDS.get((qualifier, node.name.lower()))
        return WindowBound(bound, at=self.statement.at(node)) if bound else None

    def _check_qualifier(self, node: exp.Column) -> None:
        if node.args.get("db") or (node.table and node.table.lower() not in self.qualifiers):
            raise self.statement.refusal(
                node,
                "a query sees the columns of its own stream",
                values=self.statement.written(node),
                way_out=f"write {self.stream.name}.{node.name}, or the column's name alone",
            )

    def _unknown_column(self, node: exp.Column) -> QueryError:
        names = [known.name for known in self.stream.schema.fields]
        return self.statement.refusal(
            node,
            f"a column is one that the stream {self.stream.name} has",
            values=node.name,
            way_out=suggestion(node.name, names) or "its columns are " + ", ".join(names),
        )


def suggestion(name: str, known: Iterable[str]) -> str:
    """`did you mean …?` for the nearest known name; empty if none is near."""
    by_lower = {candidate.lower(): candidate for candidate in known}
    near = get_close_matches(name.lower(), by_lower, n=1)
    return f"did you mean {by_lower[near[0]]}?" if near else ""
