"""What a window query is made of, and what it is not: the shape of the SELECT before any name is looked up.

In: a statement's tree. Out: the SELECT and the tables of its FROM, or a refusal with a sentence for the clause in the way.
Not supported: joins other than inner ones, USING, NATURAL, joins in parentheses.
"""

from __future__ import annotations

from sqlglot import exp

from muntin.query.text import CreateQuery, Statement

#: Clauses that window queries do not have, by sqlglot's key for them: the law and the way out.
_REFUSED = {
    "joins": ("tables are joined one after the other; a join inside a join is not supported", "write each ON behind its own JOIN"),
    "using": ("a join states its equal pairs; USING is not supported", "write ON and the columns of both sides, as in ON T.a = C.a"),
    "method": ("a join states its equal pairs; NATURAL and ASOF are not supported", "write JOIN and ON"),
    "laterals": ("a query reads one stream; LATERAL is not supported", "expand rows where the stream is made"),
    "distinct": ("SELECT DISTINCT is not supported", "group by the columns: each group is one result per window"),
    "order": ("results come by window end, then group; ORDER BY is not supported", "leave ORDER BY out and sort what comes out"),
    "sort": ("results come by window end, then group; SORT BY is not supported", "leave SORT BY out"),
    "limit": ("every window's results come out; LIMIT is not supported", "leave LIMIT out, or use HAVING"),
    "offset": ("every window's results come out; OFFSET is not supported", "leave OFFSET out; a window's own goes into its brackets"),
    "qualify": ("QUALIFY is not supported", "use HAVING"),
    "windows": ("named windows are not supported", "state the window behind the stream's name"),
    "sample": ("sampling is not supported", "read the whole stream"),
    "all": ("GROUP BY ALL is not supported", "name the columns"),
    "rollup": ("ROLLUP is not supported", "create a query for each grouping"),
    "cube": ("CUBE is not supported", "create a query for each grouping"),
    "grouping_sets": ("GROUPING SETS are not supported", "create a query for each grouping"),
    "into": ("a query's results go where the engine is told to put them; INTO is not supported", "leave INTO out"),
}
_SELECT_PARTS = frozenset({"expressions", "from_", "joins", "where", "group", "having"})
_JOIN_PARTS = frozenset({"this", "on", "kind"})
_TABLE_PARTS = frozenset({"this", "alias", "windows"})
_GROUP_PARTS = frozenset({"expressions"})


def select_of(statement: CreateQuery) -> exp.Select:
    """The SELECT of a query, which has nothing but a select list, FROM and JOIN, WHERE, GROUP BY and HAVING."""
    tree = statement.query
    if isinstance(tree, exp.SetOperation):
        law = f"a query is one SELECT; {type(tree).__name__.upper()} is not supported"
        raise statement.refusal(tree, law, values="two", way_out="create a query for each")
    if not isinstance(tree, exp.Select):
        law = "a query is one SELECT; subqueries are not supported"
        raise statement.refusal(tree, law, values=type(tree).__name__, way_out="write the SELECT without parentheses")
    _check_parts(statement, tree, _SELECT_PARTS)
    if tree.args.get("group"):
        _check_parts(statement, tree.args["group"], _GROUP_PARTS)
    return tree


def tables_of(statement: Statement, select: exp.Select) -> tuple[exp.Table, ...]:
    """What a query reads: the stream and the tables it joins, in the order they are written."""
    source = select.args.get("from_")
    if source is None:
        law, way_out = "a query reads a stream", "write FROM and the stream's name"
        raise statement.refusal(select, law, values="no FROM", way_out=way_out)
    joins = select.args.get("joins") or []
    for join in joins:
        _check_join(statement, join)
    return tuple(_table(statement, one) for one in (source, *joins))


def _check_join(statement: Statement, join: exp.Join) -> None:
    listed = statement.written(join).startswith(",")  # sqlglot calls both a comma and CROSS JOIN a cross join
    words = f"{join.side} {join.kind}".strip()
    if words not in ("", "INNER") and not listed:
        law = f"a table is joined by an inner join; {words} JOIN is not supported"
        raise statement.refusal(join, law, values=statement.written(join), way_out="write JOIN and ON, or a comma and WHERE")
    _check_parts(statement, join, _JOIN_PARTS, place=join)


def _table(statement: Statement, source: exp.From | exp.Join) -> exp.Table:
    table = source.this
    if not isinstance(table, exp.Table) or not isinstance(table.this, exp.Identifier):
        law = "a query reads a stream and joins tables; subqueries and other functions in FROM are not supported"
        way_out = "name the stream, or HOP or TUMBLE over it"
        raise statement.refusal(source, law, values=statement.written(source), way_out=way_out)
    _check_parts(statement, table, _TABLE_PARTS)
    if table.args.get("alias") and table.args["alias"].args.get("columns"):
        law, way_out = "an alias names a stream or a table, not its columns", "write the alias alone"
        raise statement.refusal(table.args["alias"], law, values=statement.written(table.args["alias"]), way_out=way_out)
    return table


def _check_parts(statement: Statement, node: exp.Expr, known: frozenset[str], *, place: exp.Expr | None = None) -> None:
    """Refuses a part that is not known, marking `place`, or the part itself."""
    for key, value in node.args.items():
        if value and key not in known:
            parts = [part for part in (value if isinstance(value, list) else [value]) if isinstance(part, exp.Expr)]
            place = place or next(iter(parts), node)
            name = key.strip("_").upper()
            law, way_out = _REFUSED.get(key, (f"{name} is not supported", f"leave {name} out"))
            raise statement.refusal(place, law, values=statement.written(place), way_out=way_out)
