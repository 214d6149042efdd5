"""Expressions with a syntax of their own: columns, constants, AND and OR, IS, CASE, CAST. One function a form.

In: the `Rebuild` of a clause and a node. Out: a typed expression. Convention: `5L` and `DATE '2026-01-31'` are constants like
others, though sqlglot shows them as casts; one that does not read as its type is refused here and not when rows come.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from muntin import schema
from muntin.errors import TypeMismatch
from muntin.expression import functions
from muntin.expression.tree import Expression, Literal
from muntin.query import datatypes, literals
from muntin.query.calls import call, filtered

if TYPE_CHECKING:
    from muntin.query.rebuild import Rebuild


def column(rebuild: Rebuild, node: exp.Column) -> Expression:
    scope = rebuild.scope
    alias = rebuild.aliases.get(node.name.lower()) if not node.table else None
    if alias is not None:
        return replace(rebuild, aliases={}).build(alias)
    if isinstance(node.this, exp.Star):
        return rebuild.build(node.this)
    bound = scope.bound(node)
    if bound and rebuild.clause.over_windows:
        return bound
    if scope.has_column(node):
        return scope.column(node)
    if bound:
        law = f"a window's bounds are known when it closes, not in {rebuild.clause.value}"
        raise rebuild.refusal(node, law, values=scope.statement.written(node), way_out=f"use the column {scope.stream.time}")
    if node.name.lower() == "window" and not node.table:
        law = "a window is no value of its own"
        raise rebuild.refusal(node, law, values="window", way_out="leave it out: results carry window_start and window_end")
    return scope.column(node)


def constant(rebuild: Rebuild, node: exp.Expr) -> Expression:
    at = rebuild.scope.statement.at(node)
    if isinstance(node, exp.Null):
        return Literal(None, schema.NULL, at)
    if isinstance(node, exp.Boolean):
        return Literal(bool(node.this), schema.BOOLEAN, at)
    if isinstance(node, exp.Literal) and not node.is_string:
        return _number(rebuild, node, node.name)
    return Literal(node.name, schema.STRING, at)


def adjacent_strings(rebuild: Rebuild, node: exp.Concat) -> Expression:
    """`'a' 'b'` is `'ab'`, as in Spark."""
    return Literal("".join(part.name for part in node.expressions), schema.STRING, rebuild.scope.statement.at(node))


def negative(rebuild: Rebuild, node: exp.Neg) -> Expression:
    """A minus before digits belongs to the number: -2147483648 is an INT, while 2147483648 is not."""
    digits = _digits(rebuild, node.this)
    return _number(rebuild, node, f"-{digits}") if digits else rebuild.operator(node)


def _digits(rebuild: Rebuild, node: exp.Expr) -> str:
    """A number as written; sqlglot takes one with a suffix (`5L`) for a cast. Empty for anything else."""
    if isinstance(node, exp.Literal) and not node.is_string:
        return node.name
    written = rebuild.scope.statement.written(node) if isinstance(node, exp.Cast) else ""
    return written if literals.is_number(written) else ""


def _number(rebuild: Rebuild, node: exp.Expr, text: str) -> Expression:
    try:
        return literals.number(text, rebuild.scope.statement.at(node))
    except TypeMismatch as mismatch:
        raise rebuild.placed(mismatch, node) from None


def parentheses(rebuild: Rebuild, node: exp.Paren) -> Expression:
    return rebuild.build(node.this)


def connected(rebuild: Rebuild, node: exp.Connector) -> Expression:
    """`a AND b AND c AND …`: sqlglot nests them to the left; halves keep a list of hundreds shallow."""
    operands, rest = [], [node.expression, node.this]
    while rest:
        operand = rest.pop()
        if type(operand) is type(node):
            rest += [operand.expression, operand.this]
        else:
            operands.append(rebuild.build(operand))
    name = "and" if isinstance(node, exp.And) else "or"
    while len(operands) > 1:
        halves = [operands[i : i + 2] for i in range(0, len(operands), 2)]
        operands = [rebuild.call(name, node, *half) if len(half) == 2 else half[0] for half in halves]
    return operands[0]


def is_(rebuild: Rebuild, node: exp.Is) -> Expression:
    operand = rebuild.build(node.this)
    if isinstance(node.expression, exp.Null):
        result = rebuild.call("is_null", node, operand)
    elif isinstance(node.expression, exp.Boolean):
        result = rebuild.call("<=>", node, operand, constant(rebuild, node.expression))
    else:
        found = rebuild.scope.statement.written(node)
        raise rebuild.refusal(node, "IS is followed by NULL, TRUE, FALSE or DISTINCT FROM", values=found, way_out="compare with =")
    return rebuild.call("not", node, result) if node.args.get("negate") else result


def is_distinct(rebuild: Rebuild, node: exp.NullSafeNEQ) -> Expression:
    same = rebuild.call("<=>", node, rebuild.build(node.this), rebuild.build(node.expression))
    return rebuild.call("not", node, same)


def case(rebuild: Rebuild, node: exp.Case) -> Expression:
    operand = rebuild.build(node.this) if node.this else None
    args = []
    for branch in node.args["ifs"]:
        condition = rebuild.build(branch.this)
        args.append(rebuild.call("=", branch.this, operand, condition) if operand else condition)
        args.append(rebuild.build(branch.args["true"]))
    if node.args.get("default"):
        args.append(rebuild.build(node.args["default"]))
    return rebuild.call("case", node, *args)


def cast(rebuild: Rebuild, node: exp.Cast) -> Expression:
    digits = _digits(rebuild, node)
    if digits:
        return _number(rebuild, node, digits)
    try:
        target = datatypes.scalar_type_of(node.to)
        made = functions.cast(rebuild.build(node.this), target, rebuild.scope.statement.at(node))
    except TypeMismatch as mismatch:
        raise rebuild.placed(mismatch, node) from None
    typed = not rebuild.scope.statement.written(node).lower().startswith("cast")
    if typed and node.this.is_string and not isinstance(made, Literal):
        law, way_out = (
            f"a {str(target).upper()} names a day and time that exist",
            "write DATE '2026-01-31' or TIMESTAMP '2026-01-31 09:30:00'",
        )
        raise rebuild.refusal(node, law, values=node.this.name, way_out=way_out)
    return made


#: What has a form of its own; the operators of `allowed` have not. `Any`: each function takes the node it is listed under.
FORMS: dict[type[exp.Expr], Callable[[Rebuild, Any], Expression]] = {
    exp.Column: column,
    exp.Literal: constant,
    exp.RawString: constant,
    exp.Null: constant,
    exp.Boolean: constant,
    exp.Concat: adjacent_strings,
    exp.Neg: negative,
    exp.Paren: parentheses,
    exp.And: connected,
    exp.Or: connected,
    exp.Is: is_,
    exp.NullSafeNEQ: is_distinct,
    exp.Case: case,
    exp.Cast: cast,
    exp.Anonymous: call,
    exp.Filter: filtered,
}
