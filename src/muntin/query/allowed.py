"""The allow-list of expressions: which nodes of sqlglot mean what, what is refused by name, and what is known in which clause.

In: read by `rebuild`. Out: tables. Convention: functions go by the names of `expression.functions`, aggregates by those of the
engine's mapping; both come as `exp.Anonymous`, since `grammar` turns sqlglot's own function table off. A node in no table is refused.
"""

from __future__ import annotations

from enum import Enum

from sqlglot import exp

#: Operators: sqlglot's node, the name `functions.call` knows, and the node's arguments in order.
OPERATORS: dict[type[exp.Expr], tuple[str, tuple[str, ...]]] = {
    exp.Add: ("+", ("this", "expression")),
    exp.Sub: ("-", ("this", "expression")),
    exp.Mul: ("*", ("this", "expression")),
    exp.Div: ("/", ("this", "expression")),
    exp.Mod: ("%", ("this", "expression")),
    exp.DPipe: ("||", ("this", "expression")),
    exp.EQ: ("=", ("this", "expression")),
    exp.NEQ: ("<>", ("this", "expression")),
    exp.LT: ("<", ("this", "expression")),
    exp.LTE: ("<=", ("this", "expression")),
    exp.GT: (">", ("this", "expression")),
    exp.GTE: (">=", ("this", "expression")),
    exp.NullSafeEQ: ("<=>", ("this", "expression")),
    exp.Not: ("not", ("this",)),
    exp.Neg: ("negative", ("this",)),
    exp.Between: ("between", ("this", "low", "high")),
    exp.In: ("in", ("this", "expressions")),
    exp.Like: ("like", ("this", "expression")),
    exp.ILike: ("ilike", ("this", "expression")),
}
#: What SQL has and Muntin does not, with the way out.
REFUSED: dict[type[exp.Expr], tuple[str, str]] = {
    exp.Window: ("OVER is not supported: a query aggregates over its own window", "state the window behind the stream's name"),
    exp.Distinct: ("DISTINCT aggregates are not supported yet", "leave DISTINCT out, or group by the column"),
    exp.Subquery: ("subqueries are not supported", "write the condition out"),
    exp.Select: ("subqueries are not supported", "write the condition out"),
    exp.Exists: ("subqueries are not supported", "write the condition out"),
    exp.Interval: ("an interval stands only in a window, not in an expression", "compare with a TIMESTAMP, or use unix_micros(…)"),
    exp.Cube: ("CUBE is not supported", "create a query for each grouping"),
    exp.Rollup: ("ROLLUP is not supported", "create a query for each grouping"),
    exp.GroupingSets: ("GROUPING SETS are not supported", "create a query for each grouping"),
    exp.TryCast: ("TRY_CAST is not supported yet", "use CAST"),
    exp.Escape: ("LIKE … ESCAPE is not supported yet", "escape with \\ in the pattern"),
    exp.RegexpLike: ("RLIKE is not supported yet", "use LIKE"),
    exp.CurrentDate: ("the clock is not a function of the stream", "compare with the stream's own times"),
    exp.CurrentTimestamp: ("the clock is not a function of the stream", "compare with the stream's own times"),
    exp.Star: ("* stands only in count(*)", "name the columns"),
}
#: Comparisons and the like: Spark and sqlglot group a chain of them differently, so a chain needs parentheses.
PREDICATES = (
    exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.NullSafeEQ, exp.NullSafeNEQ, exp.In, exp.Between, exp.Like, exp.ILike,
)  # fmt: skip


class Clause(Enum):
    """Where an expression stands. The value is what users call it."""

    SELECT = "the select list"
    HAVING = "HAVING"
    WHERE = "WHERE"
    ON = "ON"
    GROUP_BY = "GROUP BY"
    ARGUMENT = "an aggregate's argument"
    FILTER = "FILTER"

    @property
    def over_windows(self) -> bool:
        """Whether aggregates and bounds of windows are known there; elsewhere there are only rows."""
        return self in (Clause.SELECT, Clause.HAVING)
