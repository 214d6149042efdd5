"""What an engine knows about planning each stream from run to run: its planner, where windows are assembled, the load that was observed.

In: the queries of any version of the registry, what the user chose. Out: `Planner`s, plans. Convention: streams go by their names in lower
case. A planner keeps the plans it made; it is made anew where windows would be assembled elsewhere.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from muntin.aggregates.base import Aggregate
from muntin.plan.divide import Sharing
from muntin.plan.load import Load
from muntin.plan.placing import Placement, Placing
from muntin.plan.planner import Planner
from muntin.plan.shared import SharedPlan
from muntin.plan.slices import Slicing
from muntin.query.model import Query, StreamDefinition
from muntin.spark.crew import Crew
from muntin.spark.crews import NO_PLACE
from muntin.spark.loads import LoadWatch


@dataclass
class Planning:
    """`queries_of` gives the queries over a stream in a version of the registry."""

    queries_of: Callable[[str, int], Sequence[Query]]
    aggregates: Mapping[str, Aggregate]
    sharing: Sharing
    slicing: Slicing
    placement: Placement
    instances: int
    loads: defaultdict[str, LoadWatch] = field(default_factory=lambda: defaultdict(LoadWatch))
    placings: dict[str, Placing] = field(default_factory=dict)
    _planners: dict[str, Planner] = field(default_factory=dict)

    def planner(self, stream: StreamDefinition) -> Planner:
        name = stream.name.lower()
        if name not in self._planners:
            spread = self.placings.setdefault(name, Placing(stream.time, self.placement, self.instances))
            queries = lambda version: self.queries_of(name, version)  # noqa: E731
            self._planners[name] = Planner(queries, self.aggregates, self.sharing, self.slicing, spread)
        return self._planners[name]

    def for_job(self, stream: StreamDefinition, crew: Crew | None) -> tuple[Planner, Placing]:
        """The planner of a job, with the decisions on where its windows are assembled."""
        name = stream.name.lower()
        hindrance = "" if crew or self.placement is Placement.DRIVER else NO_PLACE
        placing = Placing(stream.time, self.placement, self.instances, hindrance)
        placing.learn(self.load(name).groups)
        if name not in self._planners or not self.placings[name].agrees(placing):
            self._planners.pop(name, None)
            self.placings[name] = placing
        return self.planner(stream), self.placings[name]

    def plan(self, stream: StreamDefinition, version: int) -> SharedPlan:
        """The plan for a version, from what was observed in the latest run."""
        return self.planner(stream).choose(version, self.load(stream.name.lower()))

    def load(self, name: str) -> Load:
        return self.loads[name].load

    def forget(self) -> None:
        """Versions of the registry are to be those of a checkpoint: plans by their numbers mean nothing any more."""
        self._planners.clear()
