"""The nodes that Muntin's SQL adds to sqlglot's: window clauses, declarations, and queries with a name.

In: built by `dialect`. Out: read by `text` (statements) and `windowing` (windows).
Convention: values stay as they were written, in `exp.Var`s that carry their span; nothing is interpreted here.
"""

from __future__ import annotations

from typing import ClassVar

from sqlglot import exp


class Parameter(exp.Expression):
    """`RANGE 12 minutes` inside the brackets: `this` is the keyword, `expression` the words after it, if any."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "expression": False}


class BracketedWindow(exp.Expression):
    """`[RANGE … SLIDE … WATTR … ]` behind a stream's name: its `Parameter`s."""

    arg_types: ClassVar[dict[str, bool]] = {"expressions": False}


class WindowFunction(exp.Expression):
    """`HOP` or `TUMBLE` in FROM: `this` is its name, `time` the time column, `expressions` the durations in order."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "time": True, "expressions": False}


class Option(exp.Expression):
    """`key = 'value'` of WITH."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "expression": True}


class ColumnDeclaration(exp.Expression):
    """`name TYPE` of a stream or table."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "kind": True}


class Declaration(exp.Expression):
    """`CREATE STREAM` or `CREATE TABLE`: `kind` says which; `expressions` are the columns, `options` those of WITH."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "kind": True, "expressions": False, "options": False}


class WindowQuery(exp.Expression):
    """A query and what stands around it: its name (`this`, absent for a bare SELECT) and its `EmissionClause`s."""

    arg_types: ClassVar[dict[str, bool]] = {"this": False, "expression": True, "emission": False}


class EmissionClause(exp.Expression):
    """`EMIT EMPTY`, `EMIT EVERY duration` or `LATE policy [FOR length]`: `this` is EMIT EMPTY, EMIT EVERY or LATE."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "policy": False, "expression": False}


class QueryRemoval(exp.Expression):
    """`DROP QUERY name`."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True}
