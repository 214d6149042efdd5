"""Assembly: partials and punctuations in, results of windows out. The papers' window-level query, for all queries at once.

In: `Partials` per grouping and a punctuation; plans that change as queries come and go. Out: `ResultChunk`s, one query's rows in order
of window end and group. Convention: all state is the slices in hand, the last punctuation and what each query went through; how the
partials were grouped leaves no trace in it. Nothing here knows whether it runs in the driver or on an executor.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from muntin.plan.divide import Sharing
from muntin.plan.family import Family
from muntin.plan.numbering import distinct
from muntin.plan.shared import QueryPlan, SharedPlan
from muntin.query.model import Lateness
from muntin.semantics import LandmarkWindow
from muntin.timeline import BEGINNING, END
from muntin.windows.arena import MEMORY, Arena
from muntin.windows.folding import Fold
from muntin.windows.household import Household
from muntin.windows.landmarks import is_endless
from muntin.windows.life import QueryLife, Stop
from muntin.windows.lowering import ResultChunk
from muntin.windows.shards import Partials, Shards
from muntin.windows.substreams import NO_SUBSTREAMS, Substreams

#: Cells of slices × strands absorbed before windows are closed: bounds the memory of a batch that spans a long time.
CELLS_AT_ONCE = 4_000_000

Feeds = list[tuple[Fold, Shards]]
#: A family, and what of it keeps to itself under a strategy that shares less.
Home = tuple[Family, object]


@dataclass
class Aggregations:
    """By the definition of on-the-fly-sharing-2006: rows into shards; shards into predicates' slices, and slices into windows."""

    partial: int = 0
    final: int = 0


@dataclass
class Assembly:
    """The state of one stream's windows. `latest` is the time of the latest row of the stream."""

    plan: SharedPlan
    punctuation: int = BEGINNING
    latest: int = BEGINNING
    lives: dict[str, QueryLife] = field(default_factory=dict)
    aggregations: Aggregations = field(default_factory=Aggregations)
    arena: Arena = MEMORY
    substreams: Substreams = NO_SUBSTREAMS

    def __post_init__(self) -> None:
        self.households: dict[Home, Household] = {}
        self.stops: dict[str, Stop] = {}
        plan, self.plan = self.plan, SharedPlan((), (), self.plan.slicing, self.plan.sharing)
        self.use(plan)

    def __getstate__(self) -> dict[str, Any]:
        """Without the folds, which come from the plan."""
        return {name: value for name, value in self.__dict__.items() if name != "_folds"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._folds = self._all_folds()

    # -- queries come and go ----------------------------------------------------------------------------------------------------

    def use(self, plan: SharedPlan) -> None:
        """Go on with another plan. A query that the old one had not takes part in windows that start after every row so far."""
        since = BEGINNING if self.latest == BEGINNING else self.latest + 1
        known = {one.query.name: one for one in self.plan.queries}
        wanted = {one.query.name: one for one in plan.queries}
        gone = [one for name, one in known.items() if name not in wanted or wanted[name].query != one.query]
        self._evict(gone)
        for one in gone:
            del self.lives[one.query.name]
        for name, one in wanted.items():
            if name not in known or known[name].query != one.query:
                self.lives.setdefault(name, QueryLife(since))
                self._add(one)
        self.plan = plan
        self._folds = self._all_folds()

    def _add(self, plan: QueryPlan) -> None:
        if not self.lives[plan.query.name].stopped:
            home = self.home_of(plan)
            if home not in self.households:
                self.households[home] = self._household(plan)
            self.households[home].add(plan)

    def _household(self, plan: QueryPlan) -> Household:
        landmarks = isinstance(plan.query.window, LandmarkWindow)
        consistent = plan.query.sliding if plan.query.late.lateness is Lateness.CONSISTENT else None
        return Household(plan.family, self.plan.slicing, self.lives, self.arena, landmarks, consistent, plan.query.late.horizon)

    def home_of(self, plan: QueryPlan) -> Home:
        """Landmark windows are apart from sliding ones, since their closed slices are merged; endless ones also from those that joined
        at another time, since every row that is there counts in them. Windows that late rows do not count in at all have their own slices,
        and windows that are corrected are with those whose slices are kept as long.
        """
        window = plan.query.sliding
        since = self.lives[plan.query.name].since if is_endless(window) else BEGINNING
        apart = {Sharing.UNSHARED: plan.query.name, Sharing.FRAGMENTS: window}
        consistent = window if plan.query.late.lateness is Lateness.CONSISTENT else None
        apart_by = apart.get(self.plan.sharing), isinstance(window, LandmarkWindow), since, consistent, plan.query.late.horizon
        return plan.family, apart_by

    def _evict(self, plans: Iterable[QueryPlan]) -> None:
        """Let go of all that is held for some queries, at once: what is held is then made narrower once."""
        leaving: dict[Home, list[str]] = {}
        for plan in plans:
            if self._holds(plan):
                leaving.setdefault(self.home_of(plan), []).append(plan.query.name)
        for home, names in leaving.items():
            self.households[home].remove(names)
            if not self.households[home].stores:
                del self.households[home]

    def _all_folds(self) -> list[dict[Home, Fold]]:
        """For each grouping, how its partials come to every household it serves."""
        served: list[dict[Home, list[QueryPlan]]] = [{} for _ in self.plan.groupings]
        for plan in self.plan.queries:
            if not self.lives[plan.query.name].stopped:
                served[plan.grouping].setdefault(self.home_of(plan), []).append(plan)
        return [
            {home: Fold(grouping, plans, self.households[home].groups, self.households[home].predicates) for home, plans in homes.items()}
            for grouping, homes in zip(self.plan.groupings, served, strict=True)
        ]

    # -- rows come in, windows close --------------------------------------------------------------------------------------------

    def step(
        self,
        partials: Sequence[Partials],
        punctuation: int,
        latest: int,
        substreams: Substreams = NO_SUBSTREAMS,
        stops: Mapping[str, Stop] | None = None,
        early: Collection[int] = (),
    ) -> Iterator[ResultChunk]:
        """Absorb the partials of one batch, correct what late rows change, close what the punctuation closes, and give the early results
        of the queries whose EMIT EVERY is in `early`; in this order. Exhaust it before the next step.

        `latest` is the time of the batch's latest row; `substreams` says which groups are further than all; `stops` are queries that
        went wrong elsewhere. Those of this step are in `self.stops`.
        """
        punctuation = max(punctuation, self.punctuation)
        self.stops = dict(stops or {})
        self.latest = max(self.latest, latest)
        feeds: dict[Home, Feeds] = {home: [] for home in self.households}
        for folds, arrived in zip(self._folds, partials, strict=True):
            for home, fold in folds.items():
                feeds[home].append((fold, fold.shards(arrived)))
        for home, household in list(self.households.items()):
            if household.corrected_for:
                yield from self._correct(household, feeds[home])
            yield from self._step_household(household, feeds[home], punctuation, substreams)
            if early:
                reach = household.reach(punctuation, substreams)
                yield from self._recorded(household.early(early, reach, latest=self.latest, stops=self.stops))
        self.punctuation, self.substreams = punctuation, substreams
        for name, stop in self.stops.items():
            self.lives[name].stopped = str(stop.error)
        self._evict_stopped()

    def _correct(self, home: Household, feeds: Feeds) -> Iterator[ResultChunk]:
        """All that came below the punctuation at once: a window has one revision in a step."""
        reach, late = home.reach(self.punctuation, self.substreams), []
        for fold, shards in feeds:
            for folded in fold.folded(shards.between(BEGINNING, reach.highest)):
                under = home.punctuation_of(folded, self.punctuation, self.substreams)
                late.append(folded.rows(np.nonzero(folded.start < under)[0]))
        yield from self._recorded(home.correct(late, reach, latest=self.latest, stops=self.stops))

    def _step_household(self, home: Household, feeds: Feeds, punctuation: int, substreams: Substreams) -> Iterator[ResultChunk]:
        """In order of time, a bounded number of cells at once: windows before the next piece are already complete."""
        closed = self.punctuation
        for low, high, until in self._pieces(home, feeds, punctuation):
            for fold, shards in feeds:
                before = fold.combined
                for folded in fold.folded(shards.between(low, high)):
                    came_under = home.punctuation_of(folded, self.punctuation, self.substreams)
                    home.count_late(folded, came_under)
                    home.absorb(home.in_time(folded, came_under), punctuation=closed)
                self.aggregations.final += fold.combined - before
            groups = home.closed(self.punctuation, self.substreams, until, substreams if high > END else self.substreams)
            if until > closed or (groups is not None and groups.moved):
                yield from self._recorded(home.close(after=closed, upto=until, latest=self.latest, stops=self.stops, groups=groups))
                closed = until

    def _pieces(self, home: Household, feeds: Feeds, punctuation: int) -> Iterator[tuple[int, int, int]]:
        """Stretches of slices, each with the punctuation it allows."""
        starts = distinct(np.concatenate([shards.start for _, shards in feeds])) if feeds else np.empty(0, dtype=np.int64)
        step = max(1, CELLS_AT_ONCE // max(1, home.width()))
        low = BEGINNING
        for at in range(step, len(starts), step):
            edge = int(starts[at])
            yield low, edge, min(punctuation, edge)
            low = edge
        yield low, 2**63 - 1, punctuation

    def _recorded(self, chunks: Iterator[ResultChunk]) -> Iterator[ResultChunk]:
        for chunk in chunks:
            chunk.count(self.lives[chunk.query])
            self.aggregations.final += chunk.slices
            if chunk.table.num_rows or chunk.error:
                yield chunk

    def _evict_stopped(self) -> None:
        """A query that stopped on its data holds nothing any more."""
        stopped = [plan for plan in self.plan.queries if self.lives[plan.query.name].stopped and self._holds(plan)]
        if stopped:
            self._evict(stopped)
            self._folds = self._all_folds()

    def _holds(self, plan: QueryPlan) -> bool:
        household = self.households.get(self.home_of(plan))
        return household is not None and plan.query.name in household

    # -- what there is ----------------------------------------------------------------------------------------------------------

    @property
    def slices_seen(self) -> int:
        """Slices that ever held a row, of the queries there are."""
        return sum(store.slices_seen for home in self.households.values() for store in home.stores)

    @property
    def slices(self) -> int:
        """Slices in hand."""
        return sum(len(store.starts) for home in self.households.values() for store in home.stores)

    @property
    def groups(self) -> int:
        return sum(len(home.groups) for home in self.households.values())

    def groups_of(self) -> dict[str, int]:
        """For each query, how many groups its family has in hand."""
        return {plan.query.name: len(home.groups) for home in self.households.values() for plan in home.plans}

    @property
    def cells(self) -> int:
        """Slices × strands in hand."""
        return sum(len(store.starts) * len(store.strands) for home in self.households.values() for store in home.stores)
