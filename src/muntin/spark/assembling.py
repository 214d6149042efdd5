"""Assembling: the windows of one stream, wherever they are assembled.

In: entries of the slice log, each with its plan and its punctuation. Out: results, and what a snapshot or a mark in the log needs.
Convention: queries that are not spread are in the driver's `Assemblies`, the others are with the crew; whoever uses this does not know
which. Queries move when a plan has them elsewhere: what is held for them goes along, between two entries. How far attributes have come
is not kept here: it comes with every step.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from types import MappingProxyType
from typing import Any

import pyarrow as pa

from muntin.disorder import Attributes
from muntin.plan.shared import SharedPlan
from muntin.spark.advance import divided, early, reaches, substreams_of
from muntin.spark.crew import Asked, Crew, Taken
from muntin.spark.entries import Entry, Snapshot, lives_from, stops_from
from muntin.spark.instances import Basis, Told
from muntin.spark.moving import brought_in, moved, taken_out
from muntin.spark.parts import NO_PARTS, Parts
from muntin.spark.sinks.base import EntryId
from muntin.timeline import BEGINNING
from muntin.windows.assemblies import Assemblies
from muntin.windows.assembly import Aggregations
from muntin.windows.life import QueryLife, Stop, stopped
from muntin.windows.snapshots import Holding
from muntin.windows.turns import Report, Turn

NO_REPORT = Report({}, {}, 0, 0, 0, {})


@dataclass(frozen=True)
class Step:
    """An entry about to be taken, under its plan; how far attributes were `before` it, and are `after` it."""

    entry: Entry
    plan: SharedPlan
    before: Attributes
    after: Attributes

    @property
    def early(self) -> frozenset[int]:
        return early(self.before, self.after, self.plan)

    def told(self, stops: Mapping[str, Stop]) -> Told:
        time = self.after.time
        turn = Turn(self.plan.part(spread=True), time.punctuation, time.latest, substreams_of(self.after), stops, self.early)
        return Told(self.entry.id, turn, self.entry.parts)


class Assembling:
    """`once` are the driver's assemblies; `lives` are those of all queries."""

    def __init__(self, nothing: SharedPlan, crew: Crew | None = None) -> None:
        """Begin with a plan that has no queries."""
        self.plan, self.crew = nothing, crew
        self.once = Assemblies(nothing)
        self._spread: dict[str, QueryLife] = {}
        self._report = NO_REPORT
        self._last = EntryId(-1)

    @classmethod
    def restored(cls, found: Snapshot, crew: Crew | None, attributes: Attributes) -> Assembling:
        """The state of a snapshot, when attributes were so far."""
        made, counters = cls(replace(found.plan, groupings=(), queries=()), crew), found.counters
        lives = lives_from(counters)
        made.plan, made._last = found.plan, found.id
        made._spread = {name: lives.pop(name) for name in _spread_in(found.plan)}
        made.once = Assemblies(found.plan.part(spread=False), lives, Aggregations(**counters["aggregations"]), divided(attributes))
        made.once.restore(found.holdings, reaches(attributes), divided(attributes))
        if made._spread:
            made._begin(found.plan, attributes, found.parts, stops_from(counters))
            made._crew.lineage = counters["lineage"]
        if crew:  # also where nothing is spread any more: a crash may have come before that was swept away
            crew.forget(found.id)
        return made

    @property
    def _crew(self) -> Crew:
        assert self.crew is not None, "spread queries have a crew"
        return self.crew

    def _begin(
        self, plan: SharedPlan, attributes: Attributes, parts: Parts = NO_PARTS, stops: Mapping[str, Stop] = MappingProxyType({})
    ) -> None:
        """The crew goes on from here, with what is in the parts; `stops` came with the last entry."""
        lives, time = {name: replace(life) for name, life in self._spread.items()}, attributes.time
        held = Basis(self._last, plan.part(spread=True), time.latest, time.punctuation, lives, parts, substreams_of(attributes), stops)
        self._crew.rest_on(held)

    # -- queries come, go and move ----------------------------------------------------------------------------------------------

    def use(self, plan: SharedPlan, attributes: Attributes) -> None:
        """Go on with another plan; attributes are so far."""
        if plan is self.plan:
            return
        self._move(moved(self.plan, plan), attributes)
        if _spread_in(plan) and not self._spread:
            self._begin(self.plan, attributes)
            self._crew.lineage = str(self._last.next_batch())
        self.once.use(plan.part(spread=False), reaches(attributes), divided(attributes))
        wanted, latest = {one.query for one in plan.queries}, attributes.time.latest
        same = {one.query.name for one in self.plan.queries if one.query in wanted}
        since = BEGINNING if latest == BEGINNING else latest + 1
        self._spread = {
            name: self._spread[name] if name in same and name in self._spread else QueryLife(since) for name in _spread_in(plan)
        }
        if not self._spread:
            self._report = NO_REPORT
        self.plan = plan

    def _move(self, plan: SharedPlan, attributes: Attributes) -> None:
        """Let some of the queries go on elsewhere. The crew begins anew with what it holds and what it is given."""
        before, after = _spread_in(self.plan), _spread_in(plan)
        if before == after:
            return
        crew = self._crew
        parts = crew.held() if before else Parts(crew.instances)
        coming = taken_out(crew.snapshots, parts, self.plan, before - after)
        going = [one for one in self.once.snapshot() if one.predicates[0] in after]
        lives = self.lives
        parts += brought_in(crew, going, self.once.plan, plan)
        self.once.lives.update((name, lives[name]) for name in before - after)
        self.once.use(plan.part(spread=False), reaches(attributes), divided(attributes))
        self.once.take_in(coming, reaches(attributes), divided(attributes))
        self._spread = {name: lives[name] for name in after}
        self.plan = plan
        self._begin(plan, attributes, parts)
        crew.lineage = str(self._last.next_batch())

    # -- entries ----------------------------------------------------------------------------------------------------------------

    def take(self, step: Step, asked: Asked) -> Taken | None:
        """What the crew does with an entry, if queries are spread. `results` is the other part of it."""
        self.use(step.plan, step.before)
        self._last = step.entry.id
        if not self._spread:
            return None
        taken = self._crew.take(step.told({}), asked)
        self._record(taken.report)
        return taken

    def replay(self, step: Step) -> None:
        """Go over an entry that is done: the crew is told of it. What spread queries had gone through then stands in the entry: a query
        that moves with the next one takes it along.
        """
        self.use(step.plan, step.before)
        self._last = step.entry.id
        for _ in self.results(step):
            pass
        if self._spread:
            self._crew.tell(step.told(step.entry.stops))
            self._spread = {name: step.entry.lives.get(name, life) for name, life in self._spread.items()}

    def results(self, step: Step) -> Iterator[tuple[str, pa.Table]]:
        """What the driver assembles of an entry; exhaust it."""
        chunks = self.once.step(step.entry.partials, reaches(step.after), divided(step.after), step.early)
        return ((chunk.query, chunk.table) for chunk in chunks if chunk.table.num_rows)

    def _record(self, report: Report) -> None:
        self._report = report
        self.once.aggregations.final += report.final
        for name, count in report.counts.items():
            count.count(self._spread[name])
        for name, stop in report.stops.items():
            self._spread[name].stopped = str(stop.error)

    # -- what there is ----------------------------------------------------------------------------------------------------------

    def asks_the_crew(self, plan: SharedPlan) -> bool:
        """Whether an entry with this plan takes jobs in Spark."""
        return self.crew is not None and (self.crew.basis is not None or bool(_spread_in(plan)))

    def rest(self, parts: Parts, attributes: Attributes) -> None:
        """A snapshot was written: the crew begins with it from now on, or has nothing to do any more."""
        if self._spread:
            self._begin(self.plan, attributes, parts, self._report.stops)
            self._crew.forget(self._last)
        elif self.crew and self.crew.basis is not None:
            self.crew.retire()
            self.crew.forget(self._last)

    def wants_snapshot(self) -> bool:
        """Where there is no slice log."""
        return bool(self._spread) and self._crew.wants_snapshot()

    def holdings(self) -> list[Holding]:
        return self.once.snapshot()

    def counters(self) -> dict[str, Any]:
        return {
            "queries": {name: dict(vars(life)) for name, life in self.lives.items()},
            "aggregations": asdict(self.aggregations),
            "groups": self.once.groups_of() | dict(self._report.groups_of),
            "stops": {name: asdict(stop) for name, stop in self._report.stops.items()},
            "lineage": self.crew.lineage if self.crew else "",
        }

    @property
    def lives(self) -> dict[str, QueryLife]:
        return self.once.lives | self._spread

    @property
    def stopped(self) -> dict[str, str]:
        """Queries that stopped on their data, with the error of each."""
        return stopped(self.lives)

    @property
    def holds(self) -> bool:
        """Whether there may be a window to close. What instances hold is not known before the first entry of a process."""
        return self.slices > 0 or (bool(self._spread) and self._report is NO_REPORT)

    @property
    def aggregations(self) -> Aggregations:
        return self.once.aggregations

    @property
    def slices(self) -> int:
        return self.once.slices + self._report.slices

    @property
    def groups(self) -> int:
        return self.once.groups + self._report.groups


def _spread_in(plan: SharedPlan) -> set[str]:
    return {one.query.name for one in plan.queries if one.spread}
