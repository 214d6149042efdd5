"""The assemblies of a stream: one for each attribute that windows are over, since each has its own slices and punctuations.

In: a plan of all queries, partials per grouping, and how far each attribute has come. Out: `ResultChunk`s of all of them.
Convention: a query is in the assembly of its attribute, slide-by-tuple windows in one of their own, and so are windows over the rows of
each partition; what queries went through (`lives`) and the counts are kept in common.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from muntin.plan.shared import SharedPlan
from muntin.query.model import Query
from muntin.semantics import Attribute, TupleSlide
from muntin.timeline import BEGINNING
from muntin.windows.assembly import Aggregations, Assembly
from muntin.windows.closing import ResultChunk
from muntin.windows.countedassembly import CountedAssembly
from muntin.windows.life import QueryLife
from muntin.windows.shards import Partials
from muntin.windows.snapshots import Holding, restore, snapshot
from muntin.windows.substreams import NO_SUBSTREAMS, Substreams
from muntin.windows.tupleassembly import TupleAssembly

#: How far an attribute has come: its punctuation, and its greatest tick.
Reaches = Callable[[Attribute], tuple[int, int]]


@dataclass(frozen=True)
class Place:
    """Which assembly a query is in."""

    over: Attribute
    by_tuple: bool

    @property
    def kind(self) -> type[Assembly] | type[TupleAssembly] | type[CountedAssembly]:
        return TupleAssembly if self.by_tuple else CountedAssembly if self.over.pattr else Assembly


def place_of(query: Query) -> Place:
    return Place(query.window.attribute, isinstance(query.window, TupleSlide))


#: No sub-stream is further than its stream.
NOTHING_KNOWN: Mapping[Attribute, Substreams] = {}


def nowhere(_: Attribute) -> tuple[int, int]:
    return BEGINNING, BEGINNING


class Assemblies:
    """`reaches` says how far attributes had come before: a query that joins takes part in windows that start after that."""

    def __init__(
        self,
        plan: SharedPlan,
        lives: dict[str, QueryLife] | None = None,
        aggregations: Aggregations | None = None,
        substreams: Mapping[Attribute, Substreams] = NOTHING_KNOWN,
    ) -> None:
        self.plan = SharedPlan((), (), plan.slicing, plan.sharing)
        self.lives = {} if lives is None else lives
        self.aggregations = aggregations or Aggregations()
        self.of: dict[Place, Assembly | TupleAssembly | CountedAssembly] = {}
        self.use(plan, nowhere, substreams)

    def use(self, plan: SharedPlan, reaches: Reaches, substreams: Mapping[Attribute, Substreams] = NOTHING_KNOWN) -> None:
        """Go on with another plan."""
        known = {one.query.name: one.query for one in self.plan.queries}
        staying = tuple(one for one in plan.queries if known.get(one.query.name) == one.query)
        for place, assembly in self.of.items():  # a query of the same name may come back with another window
            assembly.use(part_of(replace(plan, queries=staying), place))
        for place in dict.fromkeys(place_of(one.query) for one in plan.queries):
            if place not in self.of:
                nothing, parts = SharedPlan((), (), plan.slicing, plan.sharing), self._substreams(place.over, substreams)
                self.of[place] = place.kind(
                    nothing, *reaches(place.over), lives=self.lives, aggregations=self.aggregations, substreams=parts
                )
            self.of[place].use(part_of(plan, place))
        self.of = {place: assembly for place, assembly in self.of.items() if assembly.plan.queries}
        self.plan = plan

    def step(
        self, partials: Sequence[Partials], reaches: Reaches, substreams: Mapping[Attribute, Substreams] = NOTHING_KNOWN
    ) -> Iterator[ResultChunk]:
        """Absorb the partials of one batch, then close what punctuations close. Exhaust it before the next step."""
        for place, assembly in list(self.of.items()):
            yield from assembly.step(partials, *reaches(place.over), self._substreams(place.over, substreams))

    @staticmethod
    def _substreams(over: Attribute, substreams: Mapping[Attribute, Substreams]) -> Substreams:
        return substreams.get(over, NO_SUBSTREAMS)

    # -- snapshots --------------------------------------------------------------------------------------------------------------

    def snapshot(self) -> list[Holding]:
        parts = (snapshot(one) if isinstance(one, Assembly) else one.snapshot() for one in self.of.values())
        return [holding for part in parts for holding in part]

    def restore(self, holdings: Sequence[Holding], reaches: Reaches, substreams: Mapping[Attribute, Substreams] = NOTHING_KNOWN) -> None:
        """Take a snapshot back, into assemblies of the same queries that have absorbed nothing."""
        places = {one.query.name: place_of(one.query) for one in self.plan.queries}
        for place, assembly in self.of.items():
            punctuation, assembly.latest = reaches(place.over)
            mine = [one for one in holdings if places[one.predicates[0]] == place]
            known = self._substreams(place.over, substreams)
            if isinstance(assembly, Assembly):
                restore(assembly, mine, punctuation)
                assembly.substreams = known
            else:
                assembly.restore(mine, punctuation, known)

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

    def groups_of(self) -> dict[str, int]:
        """For each query over slices, how many groups its family has in hand."""
        return {name: count for one in self.of.values() if isinstance(one, Assembly) for name, count in one.groups_of().items()}

    @property
    def cells(self) -> int:
        return sum(one.cells for one in self.of.values())


def part_of(plan: SharedPlan, place: Place) -> SharedPlan:
    """The plan with the queries of one assembly; the groupings stay, so that partials are those of the whole."""
    return replace(plan, queries=tuple(one for one in plan.queries if place_of(one.query) == place))
