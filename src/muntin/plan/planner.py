"""The planner: a shared plan for every version of the registry, chosen from what was observed.

In: versions, loads. Out: `SharedPlan`s, each also to be had again by the names of its divisions, which is what a batch is pinned to.
Convention: a plan is changed for a better one once that would have saved as much as new code in Spark costs: where loads and queries change
from batch to batch, the next plan may be a short one too.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from muntin.aggregates.base import Aggregate
from muntin.plan.divide import FIRST_LOAD, NEW_CODE_NS, Division, Load, Sharing, adapted, cost, divisions, nowhere
from muntin.plan.family import Family, family_of
from muntin.plan.shared import SharedPlan, divided_plan
from muntin.plan.slices import Slicing
from muntin.query.model import Query

#: A plan is better if it costs less than this part of the present one.
WORTHWHILE = 0.8

#: Where the number of queries grows or shrinks by this factor, the divisions are decided on again.
GROWN = 1.5

#: How much the latest batch counts in what is remembered of changes.
RECENT = 0.25

#: Plans kept, for batches pinned to one of the latest versions.
MOST_KEPT = 4

#: For each division the names of its queries, whether they are told apart by cells, and whether they are spread over instances.
Names = tuple[tuple[tuple[str, ...], bool, bool], ...]


@dataclass
class Planner:
    """Plans for one stream; `queries_of` gives the queries of a version of the registry."""

    queries_of: Callable[[int], Sequence[Query]]
    aggregates: Mapping[str, Aggregate]
    sharing: Sharing = Sharing.AUTOMATIC
    slicing: Slicing = Slicing.PAIRED
    spread: Callable[[Family], bool] = nowhere
    _kept: dict[tuple[int, Names], SharedPlan] = field(default_factory=dict, repr=False)
    _chosen: tuple[int, Load, SharedPlan] | None = field(default=None, repr=False)
    _decided_for: int = 0
    _wasted: float = 0.0  #: what a better plan would save in every batch
    _regret: float = 0.0  #: what it would have saved so far
    _changes: float = 0.0

    def nothing(self) -> SharedPlan:
        """A plan without queries."""
        return SharedPlan((), (), self.slicing, self.sharing)

    def choose(self, version: int, load: Load = FIRST_LOAD, present: SharedPlan | None = None) -> SharedPlan:
        """The plan for a version under a load. What it divides as the one before does, it does so unless another way is much better."""
        changed = self._chosen is not None and self._chosen[0] != version
        self._changes += RECENT * (changed - self._changes)
        self._regret += self._wasted
        due = self._regret >= NEW_CODE_NS
        if self._chosen is None or self._chosen[:2] != (version, load) or due:
            queries = self.queries_of(version)
            before = present.division if present is not None else self._adapted(queries)
            known = self._chosen is not None and self._chosen[1] is load and not due
            parts = before if before and known else self._decided(queries, replace(load, changes=self._changes), before)
            self._chosen = version, load, self._plan(version, parts)
        return self._chosen[2]

    def _decided(self, queries: Sequence[Query], load: Load, before: Sequence[Division] | None) -> Sequence[Division]:
        """The best divisions; those before, if they do for these queries and what they waste is not worth new code yet."""
        parts, self._decided_for = divisions(queries, self.sharing, load, self.spread), len(queries)
        if before and same_places(parts, before):
            present, best = cost(before, load), cost(parts, load)
            self._wasted = present - best if best <= WORTHWHILE * present else 0.0
            self._regret = max(self._regret, self._wasted) if self._wasted else 0.0
            if self._regret < NEW_CODE_NS:
                return before
        self._wasted = self._regret = 0.0
        return parts

    def _adapted(self, queries: Sequence[Query]) -> Sequence[Division] | None:
        """The divisions chosen last, for other queries; None if there are many more or fewer than they were for, or one does not fit."""
        few, many = self._decided_for / GROWN, self._decided_for * GROWN
        if self._chosen is None or self.sharing is not Sharing.AUTOMATIC or not few <= len(queries) <= many:
            return None
        return adapted(self._chosen[2].division, queries)

    def placed(self, version: int, spread: Collection[str]) -> SharedPlan:
        """A plan for a version, with the families of these queries spread, and no others."""
        queries = self.queries_of(version)
        families = {family_of(query) for query in queries if query.name in spread}
        return self._plan(version, divisions(queries, self.sharing, FIRST_LOAD, families.__contains__))

    def named(self, version: int, names: Names) -> SharedPlan:
        """The plan that a batch was pinned to."""
        if (version, names) not in self._kept:
            known = {query.name: query for query in self.queries_of(version)}
            self._plan(version, [Division(tuple(known[name] for name in members), *how) for members, *how in names])
        return self._kept[version, names]

    def _plan(self, version: int, parts: Sequence[Division]) -> SharedPlan:
        """A plan made once, and kept with the few latest."""
        names = names_of(parts)
        if (version, names) not in self._kept:
            while len(self._kept) >= MOST_KEPT:
                self._kept.pop(next(iter(self._kept)))
            self._kept[version, names] = divided_plan(parts, self.aggregates, slicing=self.slicing, sharing=self.sharing)
        return self._kept[version, names]


def same_places(some: Sequence[Division], others: Sequence[Division]) -> bool:
    """Whether the same queries are spread over instances."""
    return spread_in(some) == spread_in(others)


def spread_in(parts: Sequence[Division]) -> set[Query]:
    return {query for part in parts if part.spread for query in part.queries}


def division_names(plan: SharedPlan) -> Names:
    return names_of(plan.division)


def names_of(parts: Sequence[Division]) -> Names:
    return tuple((tuple(query.name for query in part.queries), part.by_cell, part.spread) for part in parts)
