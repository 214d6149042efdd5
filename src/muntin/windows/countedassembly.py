"""Assembly of windows over rows counted by partition (PATTR): partials in, results of the windows that each partition closes out.

In: `Partials` per grouping, and how many rows of each partition came; plans that change as queries come and go. Out: `ResultChunk`s, and a
`Holding` per query for snapshots. Convention: what `assembly` is for windows that a whole stream closes. Queries of a family share the fold
of a batch, by slice and predicate; each holds its own windows, sparsely, since each partition stands elsewhere.
Paper: window-id-2005, section 3.2 (Q4).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field

from muntin.expression.tree import Expression
from muntin.plan.family import Family
from muntin.plan.shared import QueryPlan, SharedPlan
from muntin.timeline import BEGINNING
from muntin.windows.assembly import Aggregations
from muntin.windows.counted import CountedFamily, CountedQuery
from muntin.windows.folding import Fold
from muntin.windows.life import QueryLife
from muntin.windows.lowering import ResultChunk
from muntin.windows.shards import Partials
from muntin.windows.snapshots import Holding
from muntin.windows.substreams import NO_SUBSTREAMS, Substreams


@dataclass(frozen=True)
class Feed:
    """How the partials of a grouping come to the queries of a family that it serves."""

    grouping: int
    fold: Fold
    predicates: dict[Expression | None, int]
    names: tuple[str, ...]


@dataclass
class CountedAssembly:
    """The windows of a stream over the rows of each partition. `substreams` is how many rows of each came."""

    plan: SharedPlan
    punctuation: int = BEGINNING
    latest: int = BEGINNING
    lives: dict[str, QueryLife] = field(default_factory=dict)
    aggregations: Aggregations = field(default_factory=Aggregations)
    substreams: Substreams = NO_SUBSTREAMS

    def __post_init__(self) -> None:
        self.families: dict[Family, CountedFamily] = {}
        self.queries: dict[str, CountedQuery] = {}
        self.use(self.plan)

    # -- queries come and go ----------------------------------------------------------------------------------------------------

    def use(self, plan: SharedPlan) -> None:
        """Go on with another plan. A query that the old one had not takes part in windows that start after every row so far."""
        wanted = {one.query.name: one for one in plan.queries}
        for name, known in list(self.queries.items()):
            if name not in wanted or wanted[name].query != known.plan.query:
                del self.queries[name], self.lives[name]
        for name, one in wanted.items():
            if name not in self.queries:
                self.lives.setdefault(name, QueryLife())
                home = self.families.setdefault(one.family, CountedFamily(one.family))
                self.queries[name] = CountedQuery(one, home, plan.slicing, self.substreams)
        self.families = {family: home for family, home in self.families.items() if any(family == one.family for one in plan.queries)}
        self.plan = plan
        self._feeds = [feed for at in range(len(plan.groupings)) for feed in self._feeds_of(at)]

    def _feeds_of(self, grouping: int) -> Iterator[Feed]:
        served: dict[Family, list[QueryPlan]] = {}
        for one in self.plan.in_grouping(grouping):
            served.setdefault(one.family, []).append(one)
        for family, plans in served.items():
            predicates = {where: number for number, where in enumerate(dict.fromkeys(one.query.where for one in plans))}
            fold = Fold(self.plan.groupings[grouping], plans, self.families[family].groups, predicates)
            yield Feed(grouping, fold, predicates, tuple(one.query.name for one in plans))

    # -- rows come in, windows close --------------------------------------------------------------------------------------------

    def step(
        self, partials: Sequence[Partials], punctuation: int, latest: int, substreams: Substreams, early: Collection[int] = ()
    ) -> Iterator[ResultChunk]:
        """Absorb the partials of one batch, then close what the rows of each partition close. Exhaust it before the next step.

        No query here gives early results (`supported`), whichever are due.
        """
        self.latest = max(self.latest, latest)
        for feed in self._feeds:
            self._absorb(feed, partials[feed.grouping])
        self.punctuation, self.substreams = max(punctuation, self.punctuation), substreams
        for family, home in self.families.items():
            home.know_groups()
            closed, last = home.step(substreams, self.punctuation)
            for name, query in self.queries.items():
                if query.plan.family == family:
                    before = query.windows.work.combines
                    for chunk in query.close(closed, last, self.lives[name]) if not self.lives[name].stopped else ():
                        yield from self._recorded(chunk)
                    self.aggregations.final += query.windows.work.combines - before

    def _absorb(self, feed: Feed, partials: Partials) -> None:
        before = feed.fold.combined
        for folded in feed.fold.folded(feed.fold.shards(partials)):
            for name in feed.names:
                if not self.lives[name].stopped:
                    self.queries[name].absorb(folded, feed.predicates[self.queries[name].plan.query.where])
        self.aggregations.final += feed.fold.combined - before

    def _recorded(self, chunk: ResultChunk) -> Iterator[ResultChunk]:
        chunk.count(self.lives[chunk.query])
        if chunk.table.num_rows or chunk.error:
            yield chunk

    # -- snapshots --------------------------------------------------------------------------------------------------------------

    def snapshot(self) -> list[Holding]:
        return [query.holding() for name, query in self.queries.items() if not self.lives[name].stopped]

    def restore(self, holdings: Sequence[Holding], punctuation: int, substreams: Substreams) -> None:
        """Take a snapshot back, into an assembly of the same queries that has absorbed nothing."""
        self.punctuation, self.substreams = punctuation, substreams
        for one in holdings:
            self.queries[one.predicates[0]].take_back(one.partials)
        for home in self.families.values():
            home.know_partitions(substreams)
            home.reached = home.counted(substreams, punctuation)

    # -- what there is ----------------------------------------------------------------------------------------------------------

    slices_seen = 0

    @property
    def slices(self) -> int:
        """Slices in hand, of all partitions."""
        return sum(query.windows.ticks_held for query in self.queries.values())

    @property
    def groups(self) -> int:
        return sum(len(home.groups) for home in self.families.values())

    @property
    def cells(self) -> int:
        return self.slices
