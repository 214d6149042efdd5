"""WHERE and ON to joins: which table is joined when, on which equal pairs, and what is left as a condition on joined rows.

In: a scope with the tables of FROM. Out: `Joined`. Convention: for an inner join it does not matter whether a condition stands in ON
or in WHERE, so all of them are looked at together. The order depends on the tables and the pairs only, not on how FROM lists them
nor on aliases: queries that join the same things have equal joins. Paper: on-the-fly sharing, 6.1, Query 4.
Not supported: a table without an equality that connects it, which would be a cross join; `<=>` as such an equality.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from muntin.errors import QueryError
from muntin.expression import functions
from muntin.expression.tree import Call, Expression, columns_of, with_columns
from muntin.query.allowed import Clause
from muntin.query.model import Join
from muntin.query.names import JoinedTable, Scope
from muntin.query.rebuild import Rebuild
from muntin.query.sources import join_name

Pair = tuple[Expression, Expression]


@dataclass(frozen=True)
class Joined:
    """The scope whose tables go by the names of the joins, the joins, and the rest of the conditions."""

    scope: Scope
    joins: tuple[Join, ...]
    where: Expression | None


def joined(scope: Scope, select: exp.Select) -> Joined:
    """The joins of a query and its WHERE without them."""
    where = Rebuild(scope, Clause.WHERE).boolean(select.args["where"].this) if select.args.get("where") else None
    if not scope.tables:
        return Joined(scope, (), where)
    on = [Rebuild(scope, Clause.ON).boolean(join.args["on"]) for join in select.args["joins"] if join.args.get("on")]
    conditions = [part for condition in (*on, where) if condition is not None for part in conjuncts(condition)]
    order = _in_order(scope, conditions)
    named, names = _named(order)
    return _split(replace(scope, tables=named), [with_columns(condition, names) for condition in conditions])


def conjuncts(condition: Expression) -> Iterator[Expression]:
    """What AND connects."""
    if isinstance(condition, Call) and condition.function == "and":
        for arg in condition.args:
            yield from conjuncts(arg)
    else:
        yield condition


def _split(scope: Scope, conditions: Sequence[Expression]) -> Joined:
    """The joins in the order of the scope's tables; a condition that makes a pair of one is used up."""
    joins: list[Join] = []
    left = list(dict.fromkeys(conditions))
    for at, table in enumerate(scope.tables):
        pairs = {condition: pair for condition in left for pair in _pairs(condition, table, scope.tables[:at], scope.tables)}
        left = [condition for condition in left if condition not in pairs]
        joins.append(Join(table.definition.name.lower(), table.name, tuple(sorted(set(pairs.values()), key=repr))))
    return Joined(scope, tuple(joins), _conjunction(left))


def _conjunction(conditions: Sequence[Expression]) -> Expression | None:
    """Conditions connected by AND in halves, which keeps a long list shallow."""
    if len(conditions) < 2:
        return conditions[0] if conditions else None
    half = len(conditions) // 2
    left, right = _conjunction(conditions[:half]), _conjunction(conditions[half:])
    assert left is not None
    assert right is not None
    return functions.call("and", left, right)


def _in_order(scope: Scope, conditions: Sequence[Expression]) -> list[JoinedTable]:
    """Of the tables that a pair connects with what is joined already, always the least by name and pairs."""
    order: list[JoinedTable] = []
    waiting = list(scope.tables)
    while waiting:
        _, names = _named(order)
        keys: list[tuple[tuple[str, list[str]], int]] = []
        for at, table in enumerate(waiting):
            pairs = [pair for condition in conditions for pair in _pairs(condition, table, order, scope.tables)]
            if pairs:
                keys.append((_key(table, pairs, names), at))
        if not keys:
            raise _unconnected(scope, waiting[0])
        order.append(waiting.pop(min(keys)[1]))
    return order


def _key(table: JoinedTable, pairs: Sequence[Pair], names: Mapping[str, str]) -> tuple[str, list[str]]:
    """What a table is sorted by, free of aliases and of the order of FROM."""
    plain = {**names} | {name: column for column, name in table.columns.items()}
    return table.definition.name.lower(), sorted(repr(tuple(with_columns(side, plain) for side in pair)) for pair in pairs)


def _named(order: Sequence[JoinedTable]) -> tuple[tuple[JoinedTable, ...], dict[str, str]]:
    """The tables under names that count in their order, and the new names of their columns by the old ones."""
    named, names, counts = [], dict[str, str](), Counter[str]()
    for table in order:
        counts[table.definition.name.lower()] += 1
        new = replace(table, name=join_name(table.definition.name.lower(), counts[table.definition.name.lower()]))
        named.append(new)
        names |= {table.columns[column]: name for column, name in new.columns.items()}
    return tuple(named), names


def _pairs(condition: Expression, table: JoinedTable, before: Sequence[JoinedTable], tables: Sequence[JoinedTable]) -> Iterator[Pair]:
    """The pair that an equality makes of a table and what is joined before it, if it makes one."""
    if not isinstance(condition, Call) or condition.function != "=":
        return
    own = set(table.columns.values())
    joined_names = {other.name for other in before}
    not_yet = {name for other in tables if other.name not in joined_names for name in other.columns.values()}
    for other_side, side in (condition.args, condition.args[::-1]):
        used, used_before = columns_of(side), columns_of(other_side)
        if used and used <= own and used_before and not used_before & not_yet:
            yield other_side, side


def _unconnected(scope: Scope, table: JoinedTable) -> QueryError:
    name = table.node.alias_or_name
    return scope.statement.refusal(
        table.node,
        "a table is joined by an equality with the stream, or with a table that is; a cross join is not supported",
        values=f"none for {name}",
        way_out=f"add {scope.stream.name}.… = {name}.… to WHERE",
    )
