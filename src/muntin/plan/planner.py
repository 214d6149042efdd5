"""The planner: a shared plan for every version of the registry, chosen from what was observed.

In: versions, loads. Out: `SharedPlan`s, each also to be had again by the names of its divisions, which is what a batch is pinned to.
Convention: a plan is changed for a better one only where that saves enough to be worth new code in Spark.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from muntin.aggregates.base import Aggregate
from muntin.plan.divide import FIRST_LOAD, Division, Load, Sharing, cost, divisions
from muntin.plan.shared import SharedPlan, divided_plan
from muntin.plan.slices import Slicing
from muntin.query.model import Query

#: A new plan is taken if it costs less than this part of the present one.
WORTHWHILE = 0.8

#: For each division the names of its queries, and whether they are told apart by cells.
Names = tuple[tuple[tuple[str, ...], bool], ...]


@dataclass
class Planner:
    """Plans for one stream; `queries_of` gives the queries of a version of the registry."""

    queries_of: Callable[[int], Sequence[Query]]
    aggregates: Mapping[str, Aggregate]
    sharing: Sharing = Sharing.AUTOMATIC
    slicing: Slicing = Slicing.PAIRED
    _kept: tuple[int, Names, SharedPlan] | None = field(default=None, repr=False)

    def choose(self, version: int, load: Load = FIRST_LOAD, present: SharedPlan | None = None) -> SharedPlan:
        """The plan for a version under a load; the present one, if it is for the same version and not much worse than the best."""
        best = divisions(self.queries_of(version), self.sharing, load)
        if present is not None and cost(best, load) > WORTHWHILE * cost(present.division, load):
            return present
        return self._plan(version, best)

    def named(self, version: int, names: Names) -> SharedPlan:
        """The plan that a batch was pinned to."""
        if self._kept is not None and self._kept[:2] == (version, names):
            return self._kept[2]
        known = {query.name: query for query in self.queries_of(version)}
        return self._plan(version, [Division(tuple(known[name] for name in members), by_cell) for members, by_cell in names])

    def _plan(self, version: int, parts: Sequence[Division]) -> SharedPlan:
        plan = divided_plan(parts, self.aggregates, slicing=self.slicing, sharing=self.sharing)
        self._kept = version, division_names(plan), plan
        return plan


def division_names(plan: SharedPlan) -> Names:
    return tuple((tuple(query.name for query in part.queries), part.by_cell) for part in plan.division)
