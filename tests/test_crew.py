"""A crew of instances gives what one assembly gives, whatever becomes of folders, tasks, their number, and where queries are assembled."""

from __future__ import annotations

import shutil
import tempfile
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cases import COLUMNS, bucket_of, cut, moment, python_partials, queries, rows
from muntin.aggregates import AGGREGATES
from muntin.errors import CheckpointError
from muntin.expression.tree import AggregateCall
from muntin.plan.divide import Sharing
from muntin.plan.planner import Planner, division_names
from muntin.plan.shared import SharedPlan
from muntin.query.model import GroupColumn, Output, Query
from muntin.schema import BIGINT
from muntin.semantics import TimeWindow
from muntin.spark.assembling import Assembling, Step
from muntin.spark.crew import Asked, Crew
from muntin.spark.decoding import NO_FACTS, BatchFacts
from muntin.spark.entries import Entry, EntryKind, Pin, Snapshot, snapshot_form, snapshot_from
from muntin.spark.instances import Order, Outcome, outcome_from, taken, taking
from muntin.spark.parts import NO_PARTS, Parts, own_rows, part_name, write_partials
from muntin.spark.place import Place
from muntin.spark.sinks.base import EntryId
from muntin.timeline import BEGINNING, END, instant_of
from muntin.windows.assembly import Assembly
from muntin.windows.shards import grouping_layout

BATCHES = 4
#: What may happen before an entry.
EVENTS = ("nothing", "folders lost", "tasks twice", "restart with 1", "restart with 3", "to the driver", "to the executors")

COUNT = AggregateCall("count", (), BIGINT)
SEGMENT = GroupColumn("seg", COLUMNS["seg"])
BY_SEGMENT = Query("q", "s", TimeWindow(20, 10), (Output("c", COUNT),), group_by=(SEGMENT,))
ROW = dict.fromkeys(COLUMNS) | {"ts": moment(5), "seg": "a"}


class InProcess(Crew):
    """The crew without Spark: its tasks are run one after another, from what Spark would have sent to them."""

    twice = False

    def __init__(self, directory: Path, instances: int) -> None:
        super().__init__(None, directory.name, "s", Place.of(directory), instances)  # type: ignore[arg-type]

    def carried_out(self, order: Order) -> list[Outcome]:
        sent = [pa.record_batch([pa.array(range(order.instances), type=pa.int64())], names=["id"])]
        if self.twice:
            for instance in range(order.instances):
                taken(order, instance)
        return [outcome_from(one.column(0)[0].as_py()) for one in taking(order)(iter(sent))]

    def buckets(self, groups: Sequence[pa.Array]) -> pa.Array:
        return pa.array([bucket_of(key) for key in zip(*(column.to_pylist() for column in groups), strict=True)], type=pa.int32())


class Run:
    """A job on a directory: entries in, results out, with a restart or a move in between."""

    def __init__(self, directory: Path, some: tuple[Any, ...], sharing: Sharing, instances: int) -> None:
        self.directory, self.spread = directory, True
        self.planner = Planner(lambda _: some, AGGREGATES, sharing, spread=lambda family: self.spread and bool(family.keys))
        self.crew = InProcess(directory, instances)
        self.assembling = Assembling(self.planner.nothing(), self.crew)
        self.found: list[tuple[str, pa.Table]] = []
        self.kept: Snapshot | None = None

    @property
    def plan(self) -> SharedPlan:
        return self.planner.placed(1, [one.name for one in self.planner.queries_of(1) if self.spread and one.group_by])

    def happens(self, event: str) -> None:
        self.crew.twice = event == "tasks twice"
        if event == "folders lost":
            shutil.rmtree(Path(tempfile.gettempdir()) / "muntin-scratch-tests", ignore_errors=True)
        elif event.startswith("restart") and self.kept:
            self.crew = InProcess(self.directory, int(event[-1]))
            read = snapshot_from(self.kept.id, *snapshot_form(self.kept), self.planner)
            self.assembling = Assembling.restored(read, self.crew)
        elif event.startswith("to the"):
            self.spread = event == "to the executors"

    def take(self, number: int, batch: list[dict[str, Any]] | None) -> None:
        plan = self.plan
        entry = self.entry(EntryId(number), plan, batch)
        step = Step(entry, plan, END if batch is None else entry.facts.last - 5)
        came = self.assembling.take(step, Asked(returned=True, snapshot=True))
        self.found += self.assembling.results(step)
        parts = NO_PARTS
        if came:
            self.found += came.returned
            parts = came.snapshot
        counters = {"registry": 1} | self.assembling.counters()
        self.kept = Snapshot(entry.id, self.assembling.plan, self.assembling.holdings(), counters, parts)
        self.assembling.rest(parts)

    def entry(self, id: EntryId, plan: SharedPlan, batch: list[dict[str, Any]] | None) -> Entry:
        partials = [python_partials(batch or [], one) for one in plan.groupings]
        facts = BatchFacts(len(batch), max((instant_of(row["ts"]) for row in batch), default=BEGINNING), 0) if batch else NO_FACTS
        spread = [at for at, one in enumerate(plan.groupings) if one.family.spread]
        parts = Parts(self.crew.instances)
        for instance in range(self.crew.instances if spread else 0):
            name = part_name(instance)
            own = {at: (plan.groupings[at], own_rows(partials[at], instance, self.crew.instances)) for at in spread}
            parts += Parts(self.crew.instances, (name,), write_partials(self.crew.parting(id).place / name, own))
        once = [grouping_layout(plan.groupings[at]).empty() if at in spread else one for at, one in enumerate(partials)]
        pin = Pin(1, BEGINNING, END, "", division_names(plan))
        return Entry(id, pin, once, facts, EntryKind.BATCH if batch is not None else EntryKind.CLOSING, parts)


def rows_of(results: Sequence[tuple[str, pa.Table]]) -> list[tuple[str, str]]:
    return sorted((query, repr(row)) for query, table in results for row in table.to_pylist())


@pytest.fixture(autouse=True)
def scratch(monkeypatch: pytest.MonkeyPatch) -> None:
    """Folders in a directory of their own; and nothing waits for the disk, which is not what is tested here."""
    monkeypatch.setattr("muntin.spark.stores._flush_one", lambda _: None)
    monkeypatch.setenv("MUNTIN_SCRATCH", str(Path(tempfile.gettempdir()) / "muntin-scratch-tests"))


@settings(max_examples=40)
@given(
    some=st.integers(1, 3).flatmap(lambda count: st.tuples(*(queries(name=f"q{number}") for number in range(count)))),
    some_rows=st.lists(rows, min_size=3, max_size=24),
    places=st.lists(st.integers(0, 100), min_size=BATCHES - 1, max_size=BATCHES - 1),
    sharing=st.sampled_from(Sharing),
    instances=st.sampled_from([1, 2, 5]),
    events=st.lists(st.sampled_from(EVENTS), min_size=BATCHES + 1, max_size=BATCHES + 1),
)
def test_whatever_happens_between_entries_results_are_those_of_one_assembly(
    some: tuple[Any, ...], some_rows: list[dict[str, Any]], places: list[int], sharing: Sharing, instances: int, events: list[str]
) -> None:
    batches: list[list[dict[str, Any]] | None] = [*cut(some_rows, places), None]
    plan = Planner(lambda _: some, AGGREGATES, sharing).choose(1)
    alone, expected = Assembly(plan), []
    for batch in batches:
        latest = max((instant_of(row["ts"]) for row in batch or []), default=BEGINNING)
        steps = alone.step([python_partials(batch or [], one) for one in plan.groupings], END if batch is None else latest - 5, latest)
        expected += [(chunk.query, chunk.table) for chunk in steps]
    with tempfile.TemporaryDirectory() as scratch:
        run = Run(Path(scratch) / uuid.uuid4().hex, some, sharing, instances)
        for number, (event, batch) in enumerate(zip(events, batches, strict=True)):
            run.happens(event)
            run.take(number, batch)
        left = [*run.crew.parts.folders()]
    assert rows_of(run.found) == rows_of(expected)
    assert {name: life.results for name, life in run.assembling.lives.items()} == {name: life.results for name, life in alone.lives.items()}
    assert {name: life.late for name, life in run.assembling.lives.items()} == {name: life.late for name, life in alone.lives.items()}
    assert len(left) <= BATCHES + 1


def test_a_part_that_is_missing_is_refused_by_its_name() -> None:
    with tempfile.TemporaryDirectory() as directory:
        some = (BY_SEGMENT,)
        run = Run(Path(directory) / uuid.uuid4().hex, some, Sharing.AUTOMATIC, 2)
        run.take(0, [ROW])
        for name in run.crew.snapshots.files():
            (run.crew.snapshots / name).remove()
        run.happens("folders lost")
        with pytest.raises(CheckpointError, match=r"(?s)every file of a checkpoint.*snapshot-parts/.*the file is missing"):
            run.take(1, [ROW])
