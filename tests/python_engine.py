"""The engine without Spark: batches of Python rows through the assemblies, obeying the stream's own punctuators, next to the reference.

`Engine.take` does what `StreamJob` does with a batch; `truth` tells the reference the same rows and the punctuations that were made.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace
from typing import Any

from cases import python_partials, tick_of
from muntin.aggregates import AGGREGATES
from muntin.disorder import Attributes, Key, Punctuations, Seen
from muntin.plan.divide import Sharing
from muntin.plan.shared import SharedPlan, shared_plan
from muntin.query.model import Query, StreamDefinition
from muntin.reference import Promise, Step, emitted
from muntin.semantics import Attribute, TupleSlide
from muntin.timeline import END
from muntin.windows.assemblies import Assemblies
from muntin.windows.shards import grouping_layout
from muntin.windows.substreams import Substreams

Row = dict[str, Any]


@dataclass(frozen=True)
class Batch:
    rows: Sequence[Row]
    clock: int = 0


def arrived(batch: Batch, attributes: Attributes) -> list[Row]:
    """The rows of a batch with their numbers and their time of arrival."""
    arrival = attributes.arrival(batch.clock)
    return [{"row_num": attributes.rows + at, "arrival_ts": arrival} | row for at, row in enumerate(batch.rows)]


def seen_in(rows: Sequence[Row], one: Attribute, stream: StreamDefinition) -> dict[Key, Seen]:
    ticks: dict[Key, list[int]] = {}
    columns = stream.disorder.substreams if one.name == stream.time else ()
    for row in rows:
        ticks.setdefault(tuple(row[name] for name in columns), []).append(tick_of(row, one))
    return {key: Seen(len(some), min(some), max(some)) for key, some in ticks.items()}


@dataclass
class PythonEngine:
    stream: StreamDefinition
    queries: Sequence[Query]
    sharing: Sharing = Sharing.AUTOMATIC
    steps: list[Step] = field(default_factory=list)
    results: dict[str, list[Row]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.attributes = Attributes.begun(self.stream).following({query.window.attribute for query in self.queries})
        self.plan: SharedPlan = shared_plan(self.queries, AGGREGATES, sharing=self.sharing)
        self.assemblies = Assemblies(self.plan)
        self.results = {query.name: [] for query in self.queries}
        self.promised: list[dict[Attribute, Punctuations]] = []

    def early(self, clock: int) -> set[int]:
        every = {query.emit_every.micros for query in self.queries if query.emit_every}
        return {one for one in every if self.before.begins_period(one, clock)}

    def run(self, batches: Sequence[Batch], *, restart_after: int | None = None) -> PythonEngine:
        for at, batch in enumerate(batches):
            self.take(batch)
            if at == restart_after:
                self.restart()
        self.before, self.attributes = self.attributes, self.attributes.closed()
        self._step([grouping_layout(one).empty() for one in self.plan.groupings], Step((), (), batches[-1].clock if batches else 0))
        return self

    def take(self, batch: Batch) -> None:
        known = arrived(batch, self.attributes)
        partials = [python_partials(known, one) for one in self.plan.groupings]
        seen = {str(one): seen_in(known, one, self.stream) for one in self.attributes.punctuators if self.stream.schema.field(one.name)}
        self.before, self.attributes = self.attributes, self.attributes.observe(batch.clock, seen, len(known), {})
        self._step(partials, Step(batch.rows, (), batch.clock))

    def _step(self, partials: Any, step: Step) -> None:
        for chunk in self.assemblies.step(partials, self.reach, self.substreams(), self.early(step.clock)):
            assert chunk.error is None, chunk.error
            self.results[chunk.query] += chunk.table.to_pylist()
        self.steps.append(step)
        self.promised.append({one: held.punctuations for one, held in self.attributes.punctuators.items()})

    def reach(self, one: Attribute) -> tuple[int, int]:
        reached = self.attributes.reached(one)
        return reached.punctuation, reached.latest

    def substreams(self) -> dict[Attribute, Substreams]:
        time = Attribute(self.stream.time)
        return {time: Substreams(self.stream.disorder.substreams, self.attributes.punctuators[time].punctuations.of)}

    def change(self, queries: Sequence[Query]) -> None:
        """Other queries from the next batch on."""
        self.queries, self.plan = queries, shared_plan(queries, AGGREGATES, sharing=self.sharing)
        self.attributes = self.attributes.following({query.window.attribute for query in queries})
        self.assemblies.use(self.plan, self.reach)
        self.results = {query.name: [] for query in queries} | self.results

    def restart(self) -> None:
        """As a resumed job: from a snapshot and what was recorded."""
        holdings, recorded = self.assemblies.snapshot(), self.attributes.record()
        self.assemblies = Assemblies(self.plan, deepcopy(self.assemblies.lives))
        self.attributes = Attributes.begun(self.stream).restored(recorded, self.plan.attributes)
        self.assemblies.restore(holdings, self.reach, self.substreams())

    def promises(self, query: Query, made: Punctuations) -> list[Promise]:
        """About all, and about sub-streams; those of slide-by-tuple windows close together."""
        columns = () if isinstance(query.window, TupleSlide) else self.stream.disorder.substreams
        parts = [Promise(below, tuple(zip(columns, key, strict=True))) for key, below in made.of.items() if columns]
        return [Promise(made.overall), *parts]

    def told(self, query: Query) -> list[Row]:
        """What the reference has emitted so far, told the same promises."""
        return emitted(query, self._promised(query), AGGREGATES)

    def truth(self, query: Query) -> list[Row]:
        """What the reference emits in all, once the input has ended."""
        steps = self._promised(query)
        return emitted(query, [*steps[:-1], replace(steps[-1], promises=(Promise(END),))], AGGREGATES)

    def _promised(self, query: Query) -> list[Step]:
        over = query.window.attribute
        return [
            replace(step, promises=self.promises(query, promised[over])) for step, promised in zip(self.steps, self.promised, strict=True)
        ]
