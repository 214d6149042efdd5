"""sqlglot's expressions to typed trees, by the allow-list of `allowed`: what is not in it does not get through.

In: a node, the names it can see, and the clause it stands in. Out: a typed `Expression` over columns, bounds and aggregates.
Convention: column references become `Column`s everywhere; that a select list stands on group keys is for `grouping`.
`agg(x) FILTER (WHERE p)` becomes `agg(CASE WHEN p THEN x END)`: aggregates skip NULLs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from sqlglot import exp

from muntin.errors import QueryError, TypeMismatch
from muntin.expression import functions
from muntin.expression.tree import Expression, children
from muntin.query.allowed import OPERATORS, PREDICATES, REFUSED, Clause
from muntin.query.forms import FORMS
from muntin.query.names import Scope
from muntin.schema import Kind

#: Deeper trees would overflow Python's stack somewhere behind us.
MAX_DEPTH = 100


@dataclass(frozen=True)
class Rebuild:
    """Rebuilds the expressions of one clause. `aliases` are names of select items that the clause may use (lower case)."""

    scope: Scope
    clause: Clause
    aliases: Mapping[str, exp.Expr] = field(default_factory=dict, repr=False)

    def __call__(self, node: exp.Expr) -> Expression:
        try:
            expression = self.build(node)
        except RecursionError:
            raise self._too_deep(node) from None
        if depth_of(expression) > MAX_DEPTH:
            raise self._too_deep(node)
        return expression

    def build(self, node: exp.Expr) -> Expression:
        form = FORMS.get(type(node))
        if form:
            return form(self, node)
        if type(node) in OPERATORS:
            return self.operator(node)
        law, way_out = REFUSED.get(type(node), ("an expression is made of what Muntin computes", "write it with the supported functions"))
        raise self.refusal(node, law, values=self.scope.statement.written(node), way_out=way_out)

    def operator(self, node: exp.Expr) -> Expression:
        name, keys = OPERATORS[type(node)]
        operands = [operand for key in keys for operand in _listed(node.args.get(key))]
        if node.args.get("query"):
            return self.build(node.args["query"])
        strange = {key for key, value in node.args.items() if value} - {*keys, "negate", "typed", "safe"}
        if strange:
            found, way_out = self.scope.statement.written(node), f"write {name.upper()} as in standard SQL"
            raise self.refusal(node, f"{name.upper()} is used in its plain form", values=found, way_out=way_out)
        if isinstance(node, PREDICATES):
            self._check_not_chained(node)
        result = self.call(name, node, *map(self.build, operands))
        return self.call("not", node, result) if node.args.get("negate") else result

    def call(self, function: str, node: exp.Expr, *args: Expression) -> Expression:
        """A scalar function, with the place of `node` on it and on its complaint."""
        try:
            return functions.call(function, *args, at=self.scope.statement.at(node))
        except TypeMismatch as mismatch:
            raise self.placed(mismatch, node) from None

    def boolean(self, node: exp.Expr) -> Expression:
        """A condition: the expression, refused unless it is BOOLEAN."""
        expression = self(node)
        if expression.type.kind is Kind.BOOLEAN:
            return expression
        raise self.refusal(
            node,
            f"{self.clause.value} is a condition: true or false",
            values=f"{self.scope.statement.written(node)} is {str(expression.type).upper()}",
            way_out="compare it with something",
        )

    def refusal(self, node: exp.Expr, law: str, *, values: str = "", way_out: str = "") -> QueryError:
        return self.scope.statement.refusal(node, law, values=values, way_out=way_out)

    def placed(self, mismatch: TypeMismatch, node: exp.Expr) -> QueryError:
        return self.refusal(node, mismatch.law, values=mismatch.values, way_out=mismatch.way_out)

    def _check_not_chained(self, node: exp.Expr) -> None:
        operands = [node.args.get(key) for key in ("this", "expression", "low", "high")]
        if any(isinstance(operand, (*PREDICATES, exp.Not)) for operand in operands):
            found = self.scope.statement.written(node)
            raise self.refusal(node, "comparisons do not chain", values=found, way_out="put parentheses around one, or join them with AND")

    def _too_deep(self, node: exp.Expr) -> QueryError:
        law = f"expressions are nested at most {MAX_DEPTH} deep"
        return self.refusal(node, law, values="a deeper one", way_out="compute a part of it where the stream is made")


def depth_of(expression: Expression) -> int:
    level, depth = [expression], 0
    while level:
        level = [child for parent in level for child in children(parent)]
        depth += 1
    return depth


def _listed(value: object) -> Iterator[exp.Expr]:
    if isinstance(value, list):
        yield from value
    elif isinstance(value, exp.Expr):
        yield value
