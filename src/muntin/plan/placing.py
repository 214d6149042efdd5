"""Where queries are assembled: in one place, or spread over instances that have some of the groups each.

In: a shared plan. Out: which of its groupings are spread, and by which group columns. Convention: the rows of a group go to one instance,
for every query that the grouping serves; so the columns that say which one are those that all these queries group by. What no column is
left for, a query without GROUP BY above all, is assembled once.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from muntin.expression.tree import Expression
from muntin.plan.shared import SharedPlan


@dataclass(frozen=True)
class Placing:
    """`spread` has, for each grouping that is spread, the group columns that name an instance."""

    plan: SharedPlan
    spread: dict[int, tuple[Expression, ...]]

    @property
    def together(self) -> SharedPlan:
        """The plan of what is assembled once."""
        return self._of(set(range(len(self.plan.groupings))) - self.spread.keys())

    @property
    def apart(self) -> SharedPlan:
        """The plan of every instance."""
        return self._of(set(self.spread))

    def _of(self, groupings: set[int]) -> SharedPlan:
        return replace(self.plan, queries=tuple(one for one in self.plan.queries if one.grouping in groupings))


def common_keys(plan: SharedPlan, grouping: int) -> tuple[Expression, ...]:
    """The group columns of a grouping that every query on it has."""
    families = [one.family.keys for one in plan.in_grouping(grouping)]
    return tuple(key for key in plan.groupings[grouping].keys if all(key in keys for keys in families))


def spread_out(plan: SharedPlan) -> Placing:
    """Spread whatever can be."""
    keys = {number: common_keys(plan, number) for number in range(len(plan.groupings))}
    return Placing(plan, {number: one for number, one in keys.items() if one})
