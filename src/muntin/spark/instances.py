"""Instances: assembly on executors, each with some of the groups.

In: an `Order`, which says what every instance is told of the next entry and of those since the last snapshot. Out: results, written where
they belong by the executor itself, and a report. Convention: an instance goes on in a folder of the machine it is on (`folders`). Where
there is none, or it was left open, or it is of another entry, its state is made again from the snapshot and the parts in the log: so it
does not matter which executor takes an order, nor how often.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeVar

import pyarrow as pa
from pyspark.cloudpickle import dumps, loads

from muntin.errors import CheckpointError, Refusal, SinkError
from muntin.plan.shared import SharedPlan
from muntin.spark.folders import Folder
from muntin.spark.parting import stream_of
from muntin.spark.parts import NO_PARTS, Parts, part_name, read_holdings, read_partials, write_holdings
from muntin.spark.place import Place
from muntin.spark.scratch import alone, clear_scratch, scratch_of
from muntin.spark.sinks.base import EntryId
from muntin.spark.sinks.spread import SpreadWriter, Written
from muntin.windows.assembly import Assembly
from muntin.windows.life import QueryLife, Stop
from muntin.windows.shards import Partials
from muntin.windows.snapshots import Holding, restore, snapshot
from muntin.windows.store import MOST_CELLS
from muntin.windows.substreams import NO_SUBSTREAMS, Substreams
from muntin.windows.turns import Report, Taking, Turn

SCHEMA = "outcome binary"
_T = TypeVar("_T")


def state_after(entry: EntryId, stops: Mapping[str, Stop]) -> str:
    """The name of a state. A late copy of a task that did not know of the stops leaves another one."""
    return " ".join([str(entry), *(f"{name}@{stop.end}" for name, stop in sorted(stops.items()))])


@dataclass(frozen=True)
class Told:
    """An entry as instances are told of it."""

    entry: EntryId
    turn: Turn
    parts: Parts

    @property
    def state(self) -> str:
        return state_after(self.entry, self.turn.stops)


@dataclass(frozen=True)
class Basis:
    """The state after an entry, as instances begin with it: what each query has been through, and parts with what was held.

    `stops` are the queries that went wrong with that entry.
    """

    entry: EntryId
    plan: SharedPlan
    latest: int
    punctuation: int
    lives: Mapping[str, QueryLife] = field(default_factory=dict)
    parts: Parts = NO_PARTS
    substreams: Substreams = NO_SUBSTREAMS
    stops: Mapping[str, Stop] = field(default_factory=dict)

    @property
    def state(self) -> str:
        return state_after(self.entry, self.stops)

    def assembly(self, folder: Folder) -> Assembly:
        """With nothing held yet. Of what queries went through it has what decides on windows; the rest is counted by the driver."""
        lives = {name: QueryLife(life.since, first=life.first, stopped=life.stopped) for name, life in self.lives.items()}
        return Assembly(self.plan, latest=self.latest, lives=lives, arena=folder, substreams=self.substreams)


@dataclass(frozen=True)
class Order:
    """For all instances: how to come to the state before an entry, and the entry. Without one they only write their parts of a snapshot.

    `writers` are the sinks that take results from executors; those that only the driver reaches are given what is `returned`. `lineage`
    changes when queries move between the driver and the instances: a folder of before is of no use then.
    """

    run: str
    stream: str
    lineage: str
    log: Place
    snapshots: Place
    instances: int
    basis: Basis
    before: tuple[Told, ...]
    now: Told | None
    writers: tuple[SpreadWriter, ...] = ()
    returned: bool = False
    snapshot: bool = False

    @property
    def state_before(self) -> str:
        return self._named(self.before[-1].state if self.before else self.basis.state)

    @property
    def state_after(self) -> str:
        return self._named(self.now.state) if self.now else self.state_before

    def _named(self, state: str) -> str:
        return f"{self.run} {self.lineage} {self.instances} {state}"


@dataclass(frozen=True)
class Outcome:
    """What an instance has done: its report, what each writer wrote, results that go to the driver, the part of a snapshot it wrote;
    whether it began anew; or why it could not.
    """

    instance: int
    report: Report | None = None
    written: Sequence[Sequence[Written]] = ()
    returned: Sequence[tuple[str, bytes]] = ()
    snapshot: Parts = NO_PARTS
    anew: bool = False
    refused: Refusal | None = None


def taking(order: Order) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """What an executor does: a row for each instance it is given, in a column of outcomes."""

    def take_all(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for instance in batch.column(0).to_pylist():
                try:
                    outcome = taken(order, instance)
                except (CheckpointError, SinkError) as error:  # Spark would try again, in vain
                    outcome = Outcome(instance, refused=error)
                blob: bytes = dumps(outcome)  # type: ignore[no-untyped-call]  # cloudpickle has no types
                yield pa.record_batch([pa.array([blob], type=pa.binary())], names=["outcome"])

    return take_all


def clearing(run: str, stream: str) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """What an executor does when the job has ended."""

    def clear(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for _ in batches:
            clear_scratch(run, stream)
        yield from ()

    return clear


def outcome_from(blob: bytes) -> Outcome:
    found = loads(blob)
    assert isinstance(found, Outcome)
    return found


def taken(order: Order, instance: int) -> Outcome:
    scratch = scratch_of(order.run, order.stream) / f"{instance}-of-{order.instances}"
    with alone(scratch):
        folder = Folder(scratch / "state")
        assembly = folder.load(order.state_before)
        anew = assembly is None
        if assembly is None:
            folder.clear()
            assembly = rebuilt(order, instance, folder)
        outcome = Outcome(instance, anew=anew)
        if order.now is not None:
            step = Taking(assembly, order.now.turn, partials_of(order, order.now, instance))
            written, returned = deliver(order, order.now.entry, instance, step, scratch / "results")
            outcome = replace(outcome, report=step.report(), written=written, returned=returned)
        parts = written_snapshot(order, instance, assembly, folder) if order.snapshot else NO_PARTS
        folder.save(order.state_after, assembly)
        return replace(outcome, snapshot=parts)


def deliver(
    order: Order, entry: EntryId, instance: int, step: Taking, scratch: Path
) -> tuple[list[Sequence[Written]], list[tuple[str, bytes]]]:
    """Results to the writers, and to the driver where it asks for them; streamed, if only one wants them."""
    chunks = ((chunk.query, chunk.table) for chunk in step.results() if chunk.table.num_rows)
    results = list(chunks) if len(order.writers) + order.returned > 1 else chunks
    written = [writer.write(entry, instance, iter(results), scratch) for writer in order.writers]
    returned = [(query, stream_of(table)) for query, table in results] if order.returned else []
    for _ in chunks:  # nobody wanted them
        pass
    return written, returned


def partials_of(order: Order, told: Told, instance: int) -> list[Partials]:
    return read_partials(order.log / str(told.entry), told.parts, told.turn.plan, instance=instance, instances=order.instances)


def rebuilt(order: Order, instance: int, folder: Folder) -> Assembly:
    """The state before the entry, from the snapshot and the log."""
    basis = order.basis
    assembly = basis.assembly(folder)
    held = read_holdings(order.snapshots, basis.parts, basis.plan, instance=instance, instances=order.instances)
    restore(assembly, rested(held, folder), basis.punctuation)
    for told in rested(order.before, folder):
        for _ in Taking(assembly, told.turn, partials_of(order, told, instance)).results():
            pass
    return assembly


def written_snapshot(order: Order, instance: int, assembly: Assembly, folder: Folder) -> Parts:
    """Some parts, so that not all of it has to be in memory twice."""
    found = Parts(order.instances)
    for number, some in enumerate(rested(in_parts(snapshot(assembly)), folder)):
        name = part_name(instance, number)
        found += Parts(order.instances, (name,), write_holdings(order.snapshots / name, some, assembly.plan))
    return found


def in_parts(holdings: Iterable[Holding]) -> Iterator[list[Holding]]:
    """As many together as make a part worth its file."""
    some: list[Holding] = []
    for one in holdings:
        some.append(one)
        if sum(len(each.partials) for each in some) >= MOST_CELLS // 2:
            yield some
            some = []
    if some:
        yield some


def rested(items: Iterable[_T], folder: Folder) -> Iterator[_T]:
    """One after another; what is in the folder need not be in memory in between."""
    for one in items:
        yield one
        folder.rest()
