"""Assembly of windows over rows counted by partition (PATTR): partials in, results of the windows that each partition closes out.

In: `Partials` per grouping, and how many rows of each partition came; plans that change as queries come and go. Out: `ResultChunk`s, and a
`Holding` per query for snapshots. Convention: what `assembly` is for windows that a whole stream closes. Queries of a family share the fold
of a batch, by slice and predicate; each holds its own windows, sparsely, since each partition stands elsewhere.
Paper: window-id-2005, section 3.2 (Q4).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from muntin.expression.tree import Expression
from muntin.plan.family import Family
from muntin.plan.shared import QueryPlan, SharedPlan
from muntin.timeline import BEGINNING
from muntin.windows.counted import CountedFamily, CountedQuery
from muntin.windows.folding import Fold
from muntin.windows.lowering import ResultChunk
from muntin.windows.ownassembly import OwnAssembly
from muntin.windows.shards import Partials
from muntin.windows.snapshots import Holding
from muntin.windows.substreams import Substreams


@dataclass(frozen=True)
class Feed:
    """How the partials of a grouping come to the queries of a family that it serves."""

    grouping: int
    fold: Fold
    predicates: dict[Expression | None, int]
    names: tuple[str, ...]


@dataclass
class CountedAssembly(OwnAssembly[CountedQuery]):
    """The windows of a stream over the rows of each partition. `substreams` is how many rows of each came."""

    def __post_init__(self) -> None:
        self.families: dict[Family, CountedFamily] = {}
        super().__post_init__()

    # -- queries come and go ----------------------------------------------------------------------------------------------------

    def use(self, plan: SharedPlan) -> None:
        super().use(plan)
        self.families = {family: home for family, home in self.families.items() if any(family == one.family for one in plan.queries)}
        self._feeds = [feed for at in range(len(plan.groupings)) for feed in self._feeds_of(at)]

    def _since(self) -> int:
        """Each partition has rows of its own that came before."""
        return BEGINNING

    def _joined(self, one: QueryPlan, plan: SharedPlan) -> CountedQuery:
        home = self.families.setdefault(one.family, CountedFamily(one.family))
        return CountedQuery(one, home, plan.slicing, self.substreams)

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
        self.latest = max(self.latest, latest)
        for feed in self._feeds:
            self._absorb(feed, partials[feed.grouping])
        self.punctuation, self.substreams = max(punctuation, self.punctuation), substreams
        for family, home in self.families.items():
            home.know_groups()
            closed, last = home.step(substreams, self.punctuation)
            for name, query in self.queries.items():
                if query.plan.family == family and not self.lives[name].stopped:
                    yield from self._counted(name, query.close(closed, last, self.lives[name]))
                    every = query.plan.query.emit_every
                    if every is not None and every.micros in early and not self.lives[name].stopped:
                        yield from self._recorded(name, query.early(closed.now, last))

    def _absorb(self, feed: Feed, partials: Partials) -> None:
        before = feed.fold.combined
        for folded in feed.fold.folded(feed.fold.shards(partials)):
            for name in feed.names:
                if not self.lives[name].stopped:
                    self.queries[name].absorb(folded, feed.predicates[self.queries[name].plan.query.where])
        self.aggregations.final += feed.fold.combined - before

    # -- snapshots --------------------------------------------------------------------------------------------------------------

    def _holding(self, name: str, query: CountedQuery) -> Holding:
        return query.holding()

    def restore(self, holdings: Sequence[Holding], punctuation: int, substreams: Substreams) -> None:
        self.punctuation, self.substreams = punctuation, substreams
        for one in holdings:
            self.queries[one.predicates[0]].take_back(one.partials)
        for home in self.families.values():
            home.know_partitions(substreams)
            home.reached = home.counted(substreams, punctuation)

    # -- what there is ----------------------------------------------------------------------------------------------------------

    @property
    def groups(self) -> int:
        return sum(len(home.groups) for home in self.families.values())
