"""Families: queries over the same rows and windowing attribute with the same groups, which can share whatever they hold.

In: a query. Out: its `Family`. Convention: the order of GROUP BY counts, the names of its columns do not.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from muntin.expression.tree import Expression
from muntin.hashing import hashed_once, shared
from muntin.query.model import Join, Query
from muntin.semantics import Attribute


@hashed_once
@dataclass(frozen=True)
class Family:
    """The static tables that rows are joined with, the expressions they are grouped by, and what their windows are over."""

    joins: tuple[Join, ...]
    keys: tuple[Expression, ...]
    over: Attribute

    def rolls_up(self, finer: Family) -> bool:
        """Whether results by these groups can be had from partials by the finer ones."""
        return (self.joins, self.over) == (finer.joins, finer.over) and set(self.keys) < set(finer.keys)

    def __str__(self) -> str:
        joined = "".join(f" ⋈ {join.table}" for join in self.joins)
        return f"by {', '.join(map(str, self.keys)) or 'nothing'}{joined}"


@lru_cache(maxsize=10_000)
def family_of(query: Query) -> Family:
    """Kept, and one object for all that are the same."""
    return shared(Family(query.joins, tuple(group.expression for group in query.group_by), query.window.attribute))
