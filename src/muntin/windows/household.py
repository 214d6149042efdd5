"""What is held for one family: its groups, its predicates, and the stores that its queries are spread over.

In: query plans that come and go; folded states of a batch. Out: results of closed windows. Convention: a predicate is held in one store.
Without groups all predicates are together, as long as they stand on much the same columns: a slice is then one row of a small matrix.
With groups each predicate has the edges of its own windows only, since slices × groups is what fills the memory.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from muntin.aggregates.base import Array
from muntin.expression.tree import Expression
from muntin.plan.family import Family
from muntin.plan.shared import ROWS, News, QueryPlan
from muntin.plan.slices import Slicing
from muntin.semantics import SlicedWindow
from muntin.windows.arena import MEMORY, Arena
from muntin.windows.closing import StoreWindows
from muntin.windows.corrections import Gains, Revisions
from muntin.windows.groups import GroupIndex
from muntin.windows.landmarks import is_late, missed
from muntin.windows.life import QueryLife, Stop
from muntin.windows.lowering import ResultChunk
from muntin.windows.shards import key_types
from muntin.windows.store import Folded, SliceStore
from muntin.windows.substreams import Closed, Reach, Substreams

#: Cells for each one used that are put up with to have predicates side by side.
MOST_WASTE = 3.0
#: Groups that are not worth forgetting.
FEW_GROUPS = 64


@dataclass
class Household:
    family: Family
    slicing: Slicing
    lives: Mapping[str, QueryLife]
    arena: Arena = MEMORY
    landmarks: bool = False  #: its windows are landmark windows, whose closed slices are merged
    consistent: SlicedWindow | None = None  #: its one window, if rows that are late for their first window count in none
    corrected_for: int = 0  #: how long its windows are corrected after they closed, in ticks
    stores: list[SliceStore] = field(default_factory=list)
    predicates: dict[Expression | None, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.groups = GroupIndex(key_types(self.family))
        self._at: dict[str, SliceStore] = {}
        self._windows: dict[int, StoreWindows] = {}
        self.revisions: dict[str, Revisions] = {}
        self._numbered = 0

    def __getstate__(self) -> dict[str, Any]:
        """Without what is made again from the rest."""
        return self.__dict__ | {"_windows": {}}

    def __contains__(self, name: str) -> bool:
        return name in self._at

    # -- queries come and go ----------------------------------------------------------------------------------------------------

    def add(self, plan: QueryPlan) -> None:
        where = plan.query.where
        if where not in self.predicates:
            self.predicates[where] = self._numbered
            self._numbered += 1
        store = self._store_for(plan)
        store.add(plan, self.predicates[where])
        self._at[plan.query.name] = store
        self.revisions[plan.query.name] = Revisions()
        self._windows.clear()

    def _store_for(self, plan: QueryPlan) -> SliceStore:
        known = next((store for store in self.stores if plan.query.where in store.predicates), None)
        found = known or next((store for store in self.stores if self._fits(store, plan)), None)
        if found is None:
            found = SliceStore(self.family, self.groups, self.slicing, self.arena)
            self.stores.append(found)
        return found

    def _fits(self, store: SliceStore, plan: QueryPlan) -> bool:
        """Whether a predicate that no store has yet may come into this one."""
        return store.windows == {plan.query.sliding} if self.family.keys else store.waste(plan.columns) <= MOST_WASTE

    def remove(self, names: Iterable[str]) -> None:
        """Forget queries, and the predicates that nobody else has."""
        leaving: dict[SliceStore, list[str]] = {}
        for name in names:
            del self.revisions[name]
            leaving.setdefault(self._at.pop(name), []).append(name)
        wheres = {store.plans[name].query.where for store, some in leaving.items() for name in some}
        for store, some in leaving.items():
            store.remove(some)
            if not store.plans:
                self.stores.remove(store)
        for where in wheres:
            if not any(where in store.predicates for store in self.stores):
                del self.predicates[where]
        self._windows.clear()

    @property
    def plans(self) -> Iterator[QueryPlan]:
        return (plan for store in self.stores for plan in store.plans.values())

    # -- rows come in, windows close --------------------------------------------------------------------------------------------

    def windows_of(self, at: int) -> StoreWindows:
        if at not in self._windows:
            self._windows[at] = StoreWindows(self.stores[at], self.lives, self.corrected_for)
        return self._windows[at]

    def punctuation_of(self, folded: Folded, punctuation: int, substreams: Substreams) -> Array | int:
        """What rows came under: that of all, or of their own group."""
        if not substreams.divide(self.family.keys):
            return punctuation
        by_group: Array = substreams.by_group(self.family.keys, self.groups, punctuation)[folded.group]
        return by_group

    def in_time(self, folded: Folded, punctuation: Array | int) -> Folded:
        """What counts of a batch that came under a punctuation, as the policy for late rows has it. What `correct` took is left out."""
        if not (self.consistent or self.corrected_for) or not len(folded) or (folded.start >= punctuation).all():
            return folded
        if self.consistent is None:
            return folded.rows(np.nonzero(folded.start >= punctuation)[0])
        return folded.rows(np.nonzero(~is_late(folded.start, punctuation=punctuation, window=self.consistent))[0])

    def absorb(self, folded: Folded, *, punctuation: int) -> None:
        """Spread states over the stores, without those no open window needs."""
        for at, store in enumerate(self.stores):
            if store.plans:
                horizon = self.windows_of(at).horizon(punctuation)
                store.absorb(self._part(folded, store, horizon))

    def _part(self, folded: Folded, store: SliceStore, horizon: int) -> Folded:
        """What belongs to a store. A slice of the family lies in one of the store's, and the horizon is an edge of both."""
        wanted = folded.start >= horizon
        if len(self.stores) > 1:
            wanted &= np.isin(folded.predicate, list(store.predicates.values()))
        return folded if wanted.all() else folded.rows(np.nonzero(wanted)[0])

    def reach(self, punctuation: int, substreams: Substreams) -> Reach:
        """How far each group is."""
        divided = substreams.divide(self.family.keys)
        return Reach(punctuation, substreams.by_group(self.family.keys, self.groups, punctuation) if divided else None)

    def correct(self, late: Sequence[Folded], reach: Reach, *, latest: int, stops: dict[str, Stop]) -> Iterator[ResultChunk]:
        """Take in what came below the punctuation, and give the results that it changes."""
        for at, store in enumerate(self.stores):
            windows = self.windows_of(at)
            parts = [self._part(one, store, windows.horizon(reach.lowest)) for one in late]
            for one in parts:
                store.absorb(one)
            if any(map(len, parts)):
                gains = Gains(store, parts)
                yield from windows.correct(gains, reach, latest=latest, stops=stops, revisions=self.revisions)

    def early(self, every: Collection[int], reach: Reach, *, latest: int, stops: dict[str, Stop]) -> Iterator[ResultChunk]:
        """Running values, for the queries whose time for that has come."""
        for at, store in enumerate(self.stores):
            for news in store.news:
                if isinstance(news.partial, News) and news.partial.every in every:
                    yield from self.windows_of(at).early(news, reach, latest=latest, stops=stops)

    def closed(self, punctuation: int, before: Substreams, upto: int, now: Substreams) -> Closed | None:
        """How far each group is and was, where groups have punctuations of their own."""
        if not now.divide(self.family.keys):
            return None
        was, keys = before if before.columns else Substreams(now.columns), self.family.keys
        return Closed(was.by_group(keys, self.groups, punctuation), now.by_group(keys, self.groups, upto))

    def close(self, *, after: int, upto: int, latest: int, stops: dict[str, Stop], groups: Closed | None = None) -> Iterator[ResultChunk]:
        """Results of the windows that close. `stops` says which queries end with which window, and is told of more."""
        for at, store in enumerate(self.stores):
            windows = self.windows_of(at)
            yield from windows.close(after=after, upto=upto, latest=latest, stops=stops, groups=groups)
            store.drop_before(windows.horizon(upto), upto)
            if self.landmarks:
                store.merge_before(upto - self.corrected_for)
        for revisions in self.revisions.values():
            revisions.forget(upto - self.corrected_for)
        self._forget_groups()

    def _forget_groups(self) -> None:
        """Once half the groups have no strand left, number them anew."""
        if len(self.groups) < FEW_GROUPS or not self.family.keys:
            return
        used = np.zeros(len(self.groups), dtype=bool)
        for store in self.stores:
            used[store.strands.group] = True
        alive = np.nonzero(used)[0]
        if 2 * len(alive) < len(self.groups):
            numbers = np.zeros(len(self.groups), dtype=np.int64)
            numbers[alive] = np.arange(len(alive))
            self.groups.keep(alive)
            for store in self.stores:
                store.strands.renumber_groups(numbers)
            for revisions in self.revisions.values():
                revisions.renumber(numbers)

    def count_late(self, folded: Folded, punctuation: Array | int) -> None:
        """Rows that came below the punctuation they came under, per query that would have counted them."""
        if not isinstance(punctuation, int):
            self._count_late_by_group(folded, punctuation)
        elif len(folded.starts) and folded.starts[0] < punctuation:
            self._count_late(folded, punctuation)

    def _count_late(self, folded: Folded, punctuation: int) -> None:
        below = folded.rows(np.nonzero(folded.start < punctuation)[0])
        starts = folded.starts[: np.searchsorted(folded.starts, punctuation)]
        for at in range(len(self.stores)):
            self.windows_of(at).count_late(starts, below, punctuation, consistent=self.consistent is not None)

    def _count_late_by_group(self, folded: Folded, punctuation: Array) -> None:
        """The same where groups have punctuations of their own."""
        late = np.nonzero(folded.start < punctuation)[0]
        below = folded.rows(late)
        for plan in self.plans if len(late) else ():
            life, mine = self.lives[plan.query.name], below.predicate == self.predicates[plan.query.where]
            under, window = punctuation[late], plan.query.sliding
            some, every = missed(below.start, punctuation=under, window=window, since=life.since, corrected_for=self.corrected_for)
            rows = np.where(mine, below.states[ROWS][0], 0)
            life.late += int(rows[some].sum())
            life.dropped += int(rows[every if self.consistent is None else some].sum())

    def width(self) -> int:
        """Strands that there are, or could be once every group has met every predicate."""
        return max(sum(len(store.strands) for store in self.stores), len(self.groups) * len(self.predicates))
