"""Families: queries over the same rows and windowing attribute with the same groups, which can share whatever they hold.

In: a query. Out: its `Family`. Convention: the order of GROUP BY counts, the names of its columns do not.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache

from muntin.expression.tree import Expression
from muntin.hashing import hashed_once, shared
from muntin.query.model import Join, Query
from muntin.semantics import Attribute, TupleSlide

#: Buckets that groups fall into: a power of two, many more than instances that share them.
BUCKETS = 1 << 14


@hashed_once
@dataclass(frozen=True)
class Family:
    """The static tables that rows are joined with, the expressions they are grouped by, and what their windows are over.

    Slide-by-tuple windows are apart from those made of slices: they hold rows. A family that is `spread` is assembled by several
    instances, each with some of the groups. Which one, the bucket of a group says: one more group column, computed from the others.
    """

    joins: tuple[Join, ...]
    keys: tuple[Expression, ...]
    over: Attribute
    by_tuple: bool = False
    spread: bool = False

    @property
    def in_one(self) -> Family:
        """The same, assembled once: what is known of the load does not depend on where windows are assembled."""
        return replace(self, spread=False) if self.spread else self

    def rolls_up(self, finer: Family) -> bool:
        """Whether results by these groups can be had from partials by the finer ones; those of one group are not spread."""
        same = (self.joins, self.over, self.by_tuple) == (finer.joins, finer.over, finer.by_tuple)
        return same and set(self.keys) < set(finer.keys) and not (self.spread or finer.spread)

    def __str__(self) -> str:
        joined = "".join(f" ⋈ {join.table}" for join in self.joins)
        return f"by {', '.join(map(str, self.keys)) or 'nothing'}{joined}"


@lru_cache(maxsize=10_000)
def family_of(query: Query) -> Family:
    """Kept, and one object for all that are the same."""
    keys = tuple(group.expression for group in query.group_by)
    return shared(Family(query.joins, keys, query.window.attribute, by_tuple=isinstance(query.window, TupleSlide)))
