"""The assemblies of a stream: one for each attribute that windows are over, since each has its own slices and punctuations.

In: a plan of all queries, partials per grouping, and how far each attribute has come. Out: `ResultChunk`s of all of them.
Convention: a query is in the assembly of its attribute; what queries went through (`lives`) and the counts are kept in common.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

from muntin.plan.shared import SharedPlan
from muntin.semantics import Attribute
from muntin.timeline import BEGINNING
from muntin.windows.assembly import Aggregations, Assembly
from muntin.windows.closing import ResultChunk
from muntin.windows.life import QueryLife
from muntin.windows.shards import Partials
from muntin.windows.snapshots import Holding, restore, snapshot

#: How far an attribute has come: its punctuation, and its greatest tick.
Reaches = Callable[[Attribute], tuple[int, int]]


def nowhere(_: Attribute) -> tuple[int, int]:
    return BEGINNING, BEGINNING


class Assemblies:
    """`reaches` says how far attributes had come before: a query that joins takes part in windows that start after that."""

    def __init__(self, plan: SharedPlan, lives: dict[str, QueryLife] | None = None, aggregations: Aggregations | None = None) -> None:
        self.plan = SharedPlan((), (), plan.slicing, plan.sharing)
        self.lives = {} if lives is None else lives
        self.aggregations = aggregations or Aggregations()
        self.of: dict[Attribute, Assembly] = {}
        self.use(plan, nowhere)

    def use(self, plan: SharedPlan, reaches: Reaches) -> None:
        """Go on with another plan."""
        known = {one.query.name: one.query for one in self.plan.queries}
        staying = tuple(one for one in plan.queries if known.get(one.query.name) == one.query)
        for over, assembly in self.of.items():  # a query of the same name may come back over another attribute
            assembly.use(part_of(replace(plan, queries=staying), over))
        for over in dict.fromkeys(one.query.window.attribute for one in plan.queries):
            if over not in self.of:
                punctuation, latest = reaches(over)
                nothing = SharedPlan((), (), plan.slicing, plan.sharing)
                self.of[over] = Assembly(nothing, punctuation, latest, lives=self.lives, aggregations=self.aggregations)
            self.of[over].use(part_of(plan, over))
        self.of = {over: assembly for over, assembly in self.of.items() if assembly.plan.queries}
        self.plan = plan

    def step(self, partials: Sequence[Partials], reaches: Reaches) -> Iterator[ResultChunk]:
        """Absorb the partials of one batch, then close what punctuations close. Exhaust it before the next step."""
        for over, assembly in list(self.of.items()):
            yield from assembly.step(partials, *reaches(over))

    # -- snapshots --------------------------------------------------------------------------------------------------------------

    def snapshot(self) -> list[Holding]:
        return [holding for assembly in self.of.values() for holding in snapshot(assembly)]

    def restore(self, holdings: Sequence[Holding], reaches: Reaches) -> None:
        """Take a snapshot back, into assemblies of the same queries that have absorbed nothing."""
        over_of = {one.query.name: one.query.window.attribute for one in self.plan.queries}
        for over, assembly in self.of.items():
            punctuation, assembly.latest = reaches(over)
            restore(assembly, [one for one in holdings if over_of[one.predicates[0]] == over], punctuation)

    # -- what there is ----------------------------------------------------------------------------------------------------------

    @property
    def stopped(self) -> Mapping[str, str]:
        """Queries that stopped on their data, with the error of each."""
        return {name: life.stopped for name, life in self.lives.items() if life.stopped}

    @property
    def slices_seen(self) -> int:
        return sum(one.slices_seen for one in self.of.values())

    @property
    def slices(self) -> int:
        return sum(one.slices for one in self.of.values())

    @property
    def groups(self) -> int:
        return sum(one.groups for one in self.of.values())

    @property
    def cells(self) -> int:
        return sum(one.cells for one in self.of.values())


def part_of(plan: SharedPlan, over: Attribute) -> SharedPlan:
    """The plan with the queries over one attribute; the groupings stay, so that partials are those of the whole."""
    return replace(plan, queries=tuple(one for one in plan.queries if one.query.window.attribute == over))
