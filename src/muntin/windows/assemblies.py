"""The assemblies of a stream: one for each attribute that windows are over, since each has its own slices and punctuations.

In: a plan of all queries, partials per grouping, and how far each attribute has come. Out: `ResultChunk`s of all of them.
Convention: a query is in the assembly of its attribute, slide-by-tuple windows in one of their own; what queries went through (`lives`)
and the counts are kept in common.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from muntin.hashing import hashed_once, shared
from muntin.plan.shared import QueryPlan, SharedPlan
from muntin.query.model import Query
from muntin.semantics import Attribute, TupleSlide, Window
from muntin.timeline import BEGINNING
from muntin.windows.assembly import Aggregations, Assembly
from muntin.windows.life import QueryLife, stopped
from muntin.windows.lowering import ResultChunk
from muntin.windows.shards import Partials
from muntin.windows.snapshots import Holding, restore, snapshot
from muntin.windows.substreams import NO_SUBSTREAMS, Substreams
from muntin.windows.tupleassembly import TupleAssembly

#: How far an attribute has come: its punctuation, and its greatest tick.
Reaches = Callable[[Attribute], tuple[int, int]]


@hashed_once
@dataclass(frozen=True)
class Place:
    """Which assembly a query is in."""

    over: Attribute
    by_tuple: bool


def place_of(query: Query) -> Place:
    return _place_of(query.window)


@lru_cache(maxsize=10_000)
def _place_of(window: Window) -> Place:
    """Kept, so that it is one object for all queries of a place."""
    return shared(Place(window.attribute, isinstance(window, TupleSlide)))


#: No sub-stream is further than its stream.
NOTHING_KNOWN: Mapping[Attribute, Substreams] = {}


def nowhere(_: Attribute) -> tuple[int, int]:
    return BEGINNING, BEGINNING


class Assemblies:
    """`reaches` says how far attributes had come before: a query that joins takes part in windows that start after that."""

    def __init__(self, plan: SharedPlan, lives: dict[str, QueryLife] | None = None, aggregations: Aggregations | None = None) -> None:
        self.plan = SharedPlan((), (), plan.slicing, plan.sharing)
        self.lives = {} if lives is None else lives
        self.aggregations = aggregations or Aggregations()
        self.of: dict[Place, Assembly | TupleAssembly] = {}
        self.use(plan, nowhere)

    def use(self, plan: SharedPlan, reaches: Reaches) -> None:
        """Go on with another plan."""
        places = {one.query.name: one.query for one in self.plan.queries}
        changed = ((one.query, places.get(one.query.name, one.query)) for one in plan.queries)
        moved = {new.name for new, old in changed if new is not old and place_of(new) != place_of(old)}
        if moved:  # of queries that come back with another window, the old ones leave first: what they went through goes by the name
            staying = replace(plan, queries=tuple(one for one in plan.queries if one.query.name not in moved))
            self._use(parts_of(staying), plan, reaches)
        self._use(parts_of(plan), plan, reaches)
        self.plan = plan

    def _use(self, parts: Mapping[Place, SharedPlan], whole: SharedPlan, reaches: Reaches) -> None:
        nothing = SharedPlan((), (), whole.slicing, whole.sharing)
        for place in parts:
            if place not in self.of:
                kind = TupleAssembly if place.by_tuple else Assembly
                self.of[place] = kind(nothing, *reaches(place.over), lives=self.lives, aggregations=self.aggregations)
        for place, assembly in self.of.items():
            assembly.use(parts.get(place, replace(whole, queries=())))
        self.of = {place: assembly for place, assembly in self.of.items() if assembly.plan.queries}

    def step(
        self,
        partials: Sequence[Partials],
        reaches: Reaches,
        substreams: Mapping[Attribute, Substreams] = NOTHING_KNOWN,
        early: Collection[int] = (),
    ) -> Iterator[ResultChunk]:
        """Absorb the partials of one batch, then close what punctuations close. Exhaust it before the next step.

        `early` are the EMIT EVERY, in microseconds, of queries that give early results.
        """
        for place, assembly in list(self.of.items()):
            if isinstance(assembly, TupleAssembly):
                yield from assembly.step(partials, *reaches(place.over), early=early)
            else:
                yield from assembly.step(partials, *reaches(place.over), self._substreams(place.over, substreams), early=early)

    @staticmethod
    def _substreams(over: Attribute, substreams: Mapping[Attribute, Substreams]) -> Substreams:
        return substreams.get(over, NO_SUBSTREAMS)

    # -- snapshots --------------------------------------------------------------------------------------------------------------

    def snapshot(self) -> list[Holding]:
        parts = (one.snapshot() if isinstance(one, TupleAssembly) else snapshot(one) for one in self.of.values())
        return [holding for part in parts for holding in part]

    def restore(self, holdings: Sequence[Holding], reaches: Reaches, substreams: Mapping[Attribute, Substreams] = NOTHING_KNOWN) -> None:
        """Take a snapshot back, into assemblies of the same queries that have absorbed nothing."""
        places = {one.query.name: place_of(one.query) for one in self.plan.queries}
        for place, assembly in self.of.items():
            punctuation, assembly.latest = reaches(place.over)
            mine = [one for one in holdings if places[one.predicates[0]] == place]
            if isinstance(assembly, TupleAssembly):
                assembly.restore(mine, punctuation)
            else:
                restore(assembly, mine, punctuation)
                assembly.substreams = self._substreams(place.over, substreams)

    def take_in(self, holdings: Sequence[Holding], reaches: Reaches, substreams: Mapping[Attribute, Substreams] = NOTHING_KNOWN) -> None:
        """What another assembly of the same stream held, for queries that have just come from there."""
        places = {one.query.name: place_of(one.query) for one in self.plan.queries}
        for place in dict.fromkeys(places[one.predicates[0]] for one in holdings):
            assembly = self.of[place]
            assert isinstance(assembly, Assembly), "slide-by-tuple windows stay where they are"
            restore(assembly, [one for one in holdings if places[one.predicates[0]] == place], reaches(place.over)[0])
            assembly.substreams = self._substreams(place.over, substreams)

    # -- what there is ----------------------------------------------------------------------------------------------------------

    @property
    def stopped(self) -> Mapping[str, str]:
        """Queries that stopped on their data, with the error of each."""
        return stopped(self.lives)

    @property
    def slices_seen(self) -> int:
        return sum(one.slices_seen for one in self.of.values())

    @property
    def slices(self) -> int:
        return sum(one.slices for one in self.of.values())

    @property
    def groups(self) -> int:
        return sum(one.groups for one in self.of.values())

    def groups_of(self) -> dict[str, int]:
        """For each query over slices, how many groups its family has in hand."""
        return {name: count for one in self.of.values() if isinstance(one, Assembly) for name, count in one.groups_of().items()}

    @property
    def cells(self) -> int:
        return sum(one.cells for one in self.of.values())


def parts_of(plan: SharedPlan) -> dict[Place, SharedPlan]:
    """The plan of each assembly, with its queries; the groupings stay, so that partials are those of the whole."""
    members: dict[Place, list[QueryPlan]] = {}
    for one in plan.queries:
        members.setdefault(place_of(one.query), []).append(one)
    return {place: replace(plan, queries=tuple(some)) for place, some in members.items()}
