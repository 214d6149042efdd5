"""Habits: what the code of a pass depends on besides its queries, and what the next plan keeps of it.

In: the passes of a plan. Out: `Habits`, for those of the next. Convention: none of it changes a result. While queries come and go, code
that Spark has compiled, and that the JVM has compiled well, is worth more than the code that would be best for one batch.
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass, field

from muntin.expression.tree import Expression
from muntin.plan.family import Family
from muntin.spark.grid import Grid
from muntin.timeline import Progression


@dataclass(frozen=True)
class Habits:
    """The grid over the constants of each expression, and the ticks that rows of a family are grouped by besides cells or groups."""

    grids: Mapping[Expression, Grid] = field(default_factory=dict)
    ticks: Set[tuple[Family, Progression]] = frozenset()

    def ticks_of(self, family: Family) -> Set[Progression]:
        return {tick for one, tick in self.ticks if one == family}

    def __or__(self, other: Habits) -> Habits:
        return Habits({**self.grids, **other.grids}, self.ticks | other.ticks)
