"""Instances: assembly on executors, each with some of the groups.

In: an `Order`, which says what every instance is told of the next entry and of those since the last snapshot. Out: results, written where
they belong by the executor itself, and a report. Convention: an instance goes on in a folder of the machine it is on (`folders`). Where
there is none, or it was left open, or it is of another entry, its state is made again from the snapshot and the parts in the log: so it
does not matter which executor takes an order, nor how often.
"""

from __future__ import annotations

import fcntl
import os
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

import pyarrow as pa
from pyspark.cloudpickle import dumps, loads

from muntin.plan.shared import SharedPlan
from muntin.spark import durable
from muntin.spark.entries import holding_blobs, holdings_from
from muntin.spark.folders import PRIVATE, Folder
from muntin.spark.parting import Parts, instance_of, own_rows, read_parts, stream_of
from muntin.spark.place import Place
from muntin.spark.sinks.base import EntryId
from muntin.windows.assembly import Assembly
from muntin.windows.life import QueryLife
from muntin.windows.snapshots import Holding, restore, snapshot
from muntin.windows.turns import Report, Taking, Turn

SCHEMA = "outcome binary"


class SpreadWriter(Protocol):
    """A sink's hand on an executor."""

    def write(self, entry: EntryId, instance: int, results: Iterator[tuple[str, pa.Table]], scratch: Path) -> None:
        """Put an instance's results of an entry where they belong; again, if they were there."""


@dataclass(frozen=True)
class Told:
    """An entry as instances are told of it. `passes` are the groupings of each pass, as positions in the plan."""

    entry: EntryId
    turn: Turn
    parts: Parts
    passes: tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class Basis:
    """What instances begin with: nothing, or the parts of a snapshot; and what each query has been through."""

    entry: EntryId
    plan: SharedPlan
    latest: int
    punctuation: int
    lives: Mapping[str, QueryLife] = field(default_factory=dict)
    parts: Parts = Parts(1)


@dataclass(frozen=True)
class Order:
    """One entry, for all instances. `writers` are the sinks that take results from executors; others get them from the driver."""

    run: str
    stream: str
    log: Place
    snapshots: Place
    instances: int
    basis: Basis
    before: tuple[Told, ...]
    now: Told
    writers: tuple[SpreadWriter, ...] = ()
    returned: bool = False
    snapshot: bool = False

    def state_after(self, entry: EntryId) -> str:
        return f"{self.run} {self.instances} {entry}"


@dataclass(frozen=True)
class Outcome:
    """What an instance has done: its report, the part of a snapshot it wrote, results that go to the driver, and whether it began anew."""

    instance: int
    report: Report
    snapshot: str = ""
    size: int = 0
    results: Sequence[tuple[str, bytes]] = ()
    anew: bool = False


def taking(order: Order) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """What an executor does: a row for each instance it is given, in a column of outcomes."""

    def take_all(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for instance in batch.column(0).to_pylist():
                yield pa.record_batch([pa.array([dumps(taken(order, instance))], type=pa.binary())], names=["outcome"])

    return take_all


def outcome_from(blob: bytes) -> Outcome:
    found = loads(blob)
    assert isinstance(found, Outcome)
    return found


def taken(order: Order, instance: int) -> Outcome:
    scratch = scratch_of(order, instance)
    with alone(scratch):
        folder = Folder(scratch / "state")
        last = order.before[-1].entry if order.before else order.basis.entry
        assembly = folder.load(order.state_after(last))
        anew = assembly is None
        if assembly is None:
            folder.clear()
            assembly = rebuilt(order, instance, folder)
        step = Taking(assembly, order.now.turn, partials_of(order, order.now, instance))
        results = ((chunk.query, chunk.table) for chunk in step.results() if chunk.table.num_rows)
        returned = delivered(order, instance, results, scratch / "results")
        for _ in results:  # a sink that has them already did not pull them
            pass
        name, size = written_snapshot(order, instance, assembly) if order.snapshot else ("", 0)
        folder.save(order.state_after(order.now.entry), assembly)
        return Outcome(instance, step.report(), name, size, returned, anew)


def delivered(order: Order, instance: int, results: Iterator[tuple[str, pa.Table]], scratch: Path) -> list[tuple[str, bytes]]:
    if len(order.writers) + order.returned > 1:
        kept = list(results)
        for writer in order.writers:
            writer.write(order.now.entry, instance, iter(kept), scratch)
        return [(query, stream_of(table)) for query, table in kept] if order.returned else []
    for writer in order.writers:
        writer.write(order.now.entry, instance, results, scratch)
    return [(query, stream_of(table)) for query, table in results] if order.returned else []


def partials_of(order: Order, told: Told, instance: int) -> list:
    return read_parts(order.log / str(told.entry), told.parts, told.turn.plan, told.passes, instance, order.instances)


def rebuilt(order: Order, instance: int, folder: Folder) -> Assembly:
    """The state before the entry, from the snapshot and the log."""
    basis = order.basis
    lives = {name: QueryLife(life.since, begun=life.begun, stopped=life.stopped) for name, life in basis.lives.items()}
    assembly = Assembly(basis.plan, latest=basis.latest, lives=lives, arena=folder)
    restore(assembly, holdings_of(order, instance), basis.punctuation)
    for told in order.before:
        step = Taking(assembly, told.turn, partials_of(order, told, instance))
        for _ in step.results():
            pass
    return assembly


def holdings_of(order: Order, instance: int) -> list[Holding]:
    basis, found = order.basis, []
    same = basis.parts.instances == order.instances
    for name in basis.parts.of(instance) if same else basis.parts.names:
        header, blobs = durable.read(order.snapshots / name)
        for held in holdings_from(header, blobs, basis.plan):
            found.append(held if same else Holding(held.predicates, held.columns, own_rows(held.partials, instance, order.instances)))
    return found


def written_snapshot(order: Order, instance: int, assembly: Assembly) -> tuple[str, int]:
    from muntin.spark.parting import part_name

    name = part_name(instance, 0)
    header, blobs = holding_blobs(snapshot(assembly), assembly.plan)
    return name, durable.write(order.snapshots / name, header, blobs)


def scratch_of(order: Order, instance: int) -> Path:
    """A private directory of this machine, for one instance of one run."""
    base = Path(os.environ.get("MUNTIN_SCRATCH") or tempfile.gettempdir()) / f"muntin-{os.getuid()}"
    path = base / order.run / order.stream / f"{instance}-of-{order.instances}"
    path.mkdir(parents=True, exist_ok=True)
    for one in (base, base / order.run, base / order.run / order.stream, path):
        one.chmod(PRIVATE)
    return path


@contextmanager
def alone(directory: Path) -> Iterator[None]:
    """One task at a time in a directory: another copy of it may still run."""
    with (directory / "lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
