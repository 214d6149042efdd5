"""Calls by name: scalar functions, built-in or the user's own, and aggregates with their FILTER.

In: the `Rebuild` of a clause and a node with the name the user wrote. Out: `Call`s, `OwnCall`s and `AggregateCall`s.
Convention: an aggregate goes by its own name whatever synonym was written, so that AVG and MEAN are one; `count(*)` has no argument.
Not supported: DISTINCT, ORDER BY and IGNORE NULLS inside an aggregate.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from sqlglot import exp

from muntin import schema
from muntin.aggregates.base import Aggregate
from muntin.errors import QueryError, TypeMismatch
from muntin.expression import functions
from muntin.expression.own import OwnFunction
from muntin.expression.tree import AggregateCall, Expression, Literal
from muntin.query.allowed import Clause
from muntin.query.names import suggestion

if TYPE_CHECKING:
    from muntin.query.rebuild import Rebuild

#: Scalar functions that are called by name; operators and CAST have a syntax of their own.
SCALARS = frozenset(filter(str.isidentifier, (*functions.FUNCTIONS, *functions.ALIASES, *functions.REWRITES))) - {"cast"}


def call(rebuild: Rebuild, node: exp.Anonymous) -> Expression:
    """A function by name: the engine's aggregates, then the user's own functions, then the built-in ones. No two have one name."""
    aggregate = rebuild.scope.aggregate(node.name)
    if aggregate:
        return _aggregate_call(rebuild, node, aggregate, condition=None)
    own = rebuild.scope.functions.get(node.name.lower())
    if own:
        return _own_call(rebuild, node, own)
    if node.name.lower() not in SCALARS:
        raise _unknown(rebuild, node)
    return rebuild.call(node.name.lower(), node, *map(rebuild.build, node.expressions))


def _own_call(rebuild: Rebuild, node: exp.Anonymous, function: OwnFunction) -> Expression:
    args = [rebuild.build(arg) for arg in node.expressions]
    try:
        return functions.own_call(function, *args, at=rebuild.scope.statement.at(node))
    except TypeMismatch as mismatch:
        raise rebuild.placed(mismatch, node) from None


def filtered(rebuild: Rebuild, node: exp.Filter) -> Expression:
    inner = node.this
    aggregate = rebuild.scope.aggregate(inner.name) if isinstance(inner, exp.Anonymous) else None
    if aggregate is None:
        raise rebuild.refusal(node, "FILTER follows an aggregate", values=rebuild.scope.statement.written(node), way_out="use CASE")
    _check_place(rebuild, node, aggregate)
    condition = replace(rebuild, clause=Clause.FILTER, aliases={}).boolean(node.expression.this)
    return _aggregate_call(rebuild, inner, aggregate, condition=condition)


def _aggregate_call(rebuild: Rebuild, node: exp.Anonymous, aggregate: Aggregate, *, condition: Expression | None) -> AggregateCall:
    _check_place(rebuild, node, aggregate)
    args = _arguments(rebuild, node, aggregate)
    if condition:
        # NULL, which aggregates skip, on the rows that FILTER leaves out. A constant behind the first argument is a setting.
        args = args or (Literal(1, schema.INT),)
        args = tuple(
            arg if i > 0 and isinstance(arg, Literal) else rebuild.call("case", node, condition, arg) for i, arg in enumerate(args)
        )
    try:
        result = aggregate.result_type(*(arg.type for arg in args)) if args else schema.BIGINT
    except TypeMismatch as mismatch:
        raise rebuild.placed(mismatch, node) from None
    return AggregateCall(aggregate.name, args, result, rebuild.scope.statement.at(node))


def _arguments(rebuild: Rebuild, node: exp.Anonymous, aggregate: Aggregate) -> tuple[Expression, ...]:
    if aggregate.name == "count" and [type(arg) for arg in node.expressions] == [exp.Star]:
        return ()
    arguments = replace(rebuild, clause=Clause.ARGUMENT, aliases={})
    args = tuple(map(arguments.build, node.expressions))
    _check_arity(rebuild, node, aggregate)
    return args


def _check_place(rebuild: Rebuild, node: exp.Expr, aggregate: Aggregate) -> None:
    if rebuild.clause.over_windows:
        return
    way_out = {
        Clause.WHERE: "put the condition into HAVING",
        Clause.ON: "put the condition into HAVING",
        Clause.GROUP_BY: "group by columns of the stream",
        Clause.ARGUMENT: "aggregates do not nest: aggregate the columns themselves",
        Clause.FILTER: "put the condition into HAVING",
    }
    law = "aggregates stand in the select list and in HAVING"
    raise rebuild.refusal(node, law, values=f"{aggregate.name} in {rebuild.clause.value}", way_out=way_out[rebuild.clause])


def _check_arity(rebuild: Rebuild, node: exp.Anonymous, aggregate: Aggregate) -> None:
    given = len(node.expressions)
    if given != aggregate.arity:
        law = f"{aggregate.name} takes {aggregate.arity} argument{'s' if aggregate.arity != 1 else ''}"
        way_out = "write count(*) to count rows" if aggregate.name == "count" else "give it that many"
        raise rebuild.refusal(node, law, values=f"{given} in {rebuild.scope.statement.written(node)}", way_out=way_out)


def _unknown(rebuild: Rebuild, node: exp.Anonymous) -> QueryError:
    if node.name.lower() == "window":
        way_out = "name it in GROUP BY only; results carry window_start and window_end"
        return rebuild.refusal(node, "window(…) states the window and is no value", values=rebuild.clause.value, way_out=way_out)
    aggregates = sorted({aggregate.name for aggregate in rebuild.scope.aggregates.values()})
    near = suggestion(node.name, [*aggregates, *(own.name for own in rebuild.scope.functions.values()), *SCALARS])
    way_out = near or "the aggregates are " + ", ".join(aggregates)
    return rebuild.refusal(node, "a function is one that Muntin knows", values=node.name, way_out=way_out)
