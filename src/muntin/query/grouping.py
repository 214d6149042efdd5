"""GROUP BY and what stands on it: group columns, and select lists rewritten over group keys.

In: the items of GROUP BY and of the select list. Out: `GroupColumn`s; expressions over `GroupKey`, aggregates and bounds only.
Convention: as in Spark, an item of GROUP BY may be a column, an expression, the name of a select item (a column of the stream
comes first) or the number of one. The window and its bounds divide results anyway and make no group column.
Not supported: CUBE, ROLLUP, GROUPING SETS, GROUP BY ALL.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from muntin.expression.tree import Call, Column, Expression, GroupKey, OwnCall
from muntin.query.allowed import Clause
from muntin.query.model import GroupColumn
from muntin.query.names import Scope
from muntin.query.rebuild import Rebuild
from muntin.query.windowing import is_window_call


@dataclass(frozen=True)
class SelectItem:
    """One item of the select list as written: its name and its expression."""

    name: str
    node: exp.Expr
    aliased: bool


def select_items(scope: Scope, select: exp.Select) -> tuple[SelectItem, ...]:
    return tuple(_select_item(scope, node) for node in select.expressions)


def _select_item(scope: Scope, node: exp.Expr) -> SelectItem:
    if isinstance(node, exp.Star) or (isinstance(node, exp.Column) and isinstance(node.this, exp.Star)):
        law, way_out = "a select list names what comes out; * is not supported", "list group columns and aggregates"
        raise scope.statement.refusal(node, law, values=scope.statement.written(node), way_out=way_out)
    if isinstance(node, exp.Alias):
        return SelectItem(node.alias, node.this, aliased=True)
    return SelectItem(node.name if isinstance(node, exp.Column) else scope.statement.written(node), node, aliased=False)


def group_columns(
    scope: Scope, nodes: Sequence[exp.Expr], items: Sequence[SelectItem], partition: Sequence[Column] = ()
) -> tuple[GroupColumn, ...]:
    """The group columns, those of PATTR first; an expression that is given twice counts once."""
    columns: dict[Expression, GroupColumn] = {column: GroupColumn(column.name, column) for column in partition}
    for written in nodes:
        item = _meant(scope, written, items)
        if is_window_call(item.node) or _is_bound(scope, item.node):
            continue
        expression = Rebuild(scope, Clause.GROUP_BY)(item.node)
        columns.setdefault(expression, GroupColumn(item.name, expression))
    return tuple(columns.values())


def _meant(scope: Scope, node: exp.Expr, items: Sequence[SelectItem]) -> SelectItem:
    """The select item that a number or an alias in GROUP BY stands for; else the item itself."""
    if isinstance(node, exp.Literal) and not node.is_string and node.name.isdigit():
        return _by_number(scope, node, items)
    if isinstance(node, exp.Column) and not node.table and not scope.has_column(node):
        named = next((item for item in items if item.aliased and item.name.lower() == node.name.lower()), None)
        if named:
            return named
    return _select_item(scope, node)


def _by_number(scope: Scope, node: exp.Literal, items: Sequence[SelectItem]) -> SelectItem:
    if len(node.name) > 9 or not 1 <= int(node.name) <= len(items):
        law, way_out = "a number in GROUP BY counts the select list's items from 1", f"there are {len(items)}"
        raise scope.statement.refusal(node, law, values=node.name, way_out=way_out)
    return items[int(node.name) - 1]


def _is_bound(scope: Scope, node: exp.Expr) -> bool:
    if scope.bound(node) is None:
        return False
    if scope.has_column(node):
        law = f"{node.name} is the window's bound, and the stream {scope.stream.name} has a column of that name too"
        way_out = "leave it out for the bound; rename the column where the stream is made to group by it"
        raise scope.statement.refusal(node, law, values=node.name, way_out=way_out)
    return True


def over_groups(scope: Scope, node: exp.Expr, expression: Expression, groups: Sequence[GroupColumn]) -> Expression:
    """`expression` with each group expression in it replaced by its `GroupKey`; a column that remains is refused."""
    for index, group in enumerate(groups):
        if expression == group.expression:
            return GroupKey(index, expression.type, expression.at)
    if isinstance(expression, Column):
        place = next((column for column in node.find_all(exp.Column) if scope.statement.at(column) == expression.at), node)
        raise scope.statement.refusal(
            place,
            "outside of aggregates, a result has the columns of GROUP BY only",
            values=scope.statement.written(place),
            way_out=f"add {scope.statement.written(place)} to GROUP BY, or aggregate it",
        )
    if isinstance(expression, OwnCall):
        _check_meaning(scope, node, expression)
    if isinstance(expression, Call | OwnCall):
        return replace(expression, args=tuple(over_groups(scope, node, arg, groups) for arg in expression.args))
    return expression


def _check_meaning(scope: Scope, node: exp.Expr, call: OwnCall) -> None:
    """What stands over aggregates and group keys is evaluated in Python."""
    if call.function.python is not None:
        return
    place = next((one for one in node.find_all(exp.Anonymous) if scope.statement.at(one) == call.at), node)
    name = call.function.name
    law = "a function over aggregates and group columns has a Python meaning; one of Spark Columns alone stands where rows are"
    way_out = f"give spark_function a python= for {name}, or use it in WHERE, GROUP BY or inside an aggregate"
    raise scope.statement.refusal(place, law, values=scope.statement.written(place), way_out=way_out)
