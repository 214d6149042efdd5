"""A crew of instances gives what one assembly gives, whatever becomes of folders, tasks, their number, and where queries are assembled."""

from __future__ import annotations

import json
import shutil
import tempfile
import uuid
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cases import COLUMNS, SCHEMA, bucket_of, cut, moment, python_partials, queries, rows
from muntin.aggregates import AGGREGATES
from muntin.disorder import Attributes
from muntin.errors import CheckpointError, OwnershipError
from muntin.expression.tree import AggregateCall
from muntin.plan.divide import Sharing
from muntin.plan.family import family_of
from muntin.plan.placing import Placement, Placing
from muntin.plan.planner import Planner, division_names
from muntin.plan.shared import SharedPlan
from muntin.query.model import GroupColumn, Output, Query, StreamDefinition
from muntin.schema import BIGINT
from muntin.semantics import TimeWindow
from muntin.spark.advance import advanced, followed
from muntin.spark.assembling import Assembling, Step
from muntin.spark.crew import Asked, Crew
from muntin.spark.entries import Entry, EntryKind, Pin, Snapshot, lives_from, snapshot_form, snapshot_from, stops_from
from muntin.spark.facts import BatchFacts
from muntin.spark.instances import Order, Outcome, outcome_from, taken, taking
from muntin.spark.parts import NO_PARTS, Parts, own_rows, part_name, write_partials
from muntin.spark.place import Place
from muntin.spark.sinks.base import EntryId
from muntin.timeline import BEGINNING, END, SECOND, Duration, instant_of
from muntin.windows.assembly import Assembly
from muntin.windows.life import QueryLife
from muntin.windows.shards import grouping_layout
from python_engine import Batch, PythonEngine, arrived, seen_in
from test_emission import EMITTING
from test_laws import same
from test_window_types import DECLARED, QUERIES, named, readings, stream
from traffic import query, reading

BATCHES = 6
#: What may happen before an entry.
EVENTS = ("restart with 1", "restart with 3", "folders lost", "tasks twice", "tasks late", "to the driver", "to the executors", "nothing")

#: Of every type of window, with and without early and corrected results.
OF_EVERY_TYPE = [*QUERIES, *EMITTING]
pytestmark = pytest.mark.usefixtures("small_pieces")
STREAM = StreamDefinition("s", SCHEMA, "ts", slack=Duration(5))
COUNT = AggregateCall("count", (), BIGINT)
SEGMENT = GroupColumn("seg", COLUMNS["seg"])
BY_SEGMENT = Query("q", "s", TimeWindow(20, 10), (Output("c", COUNT),), group_by=(SEGMENT,))
ROW = dict.fromkeys(COLUMNS) | {"ts": moment(5), "seg": "a"}


class InProcess(Crew):
    """The crew without Spark: its tasks are run one after another, from what Spark would have sent to them."""

    twice = late = False

    def __init__(self, directory: Path, instances: int) -> None:
        super().__init__(None, directory.name, "s", Place.of(directory), instances)  # type: ignore[arg-type]
        self.previous: Order | None = None

    def muster(self) -> None:
        """Nobody else is needed."""

    def carried_out(self, order: Order) -> list[Outcome]:
        sent = [pa.record_batch([pa.array(range(order.instances), type=pa.int64())], names=["id"])]
        if self.twice:
            for instance in range(order.instances):
                taken(order, instance)
        outcomes = [outcome_from(one.column(0)[0].as_py()) for one in taking(order)(iter(sent))]
        if self.late and self.previous:
            for instance in range(self.previous.instances):
                with suppress(CheckpointError):  # what it would read may be gone
                    taken(self.previous, instance)
        self.previous = order
        return outcomes

    def buckets(self, groups: Sequence[pa.Array]) -> pa.Array:
        return pa.array([bucket_of(key) for key in zip(*(column.to_pylist() for column in groups), strict=True)], type=pa.int32())


class Run:
    """A job on a directory: entries in, results out, with a restart or a move in between."""

    def __init__(self, directory: Path, some: Sequence[Query], sharing: Sharing, instances: int, stream: StreamDefinition = STREAM) -> None:
        self.directory, self.spread = directory, True
        self.placing = Placing(stream.time, Placement.EXECUTORS, instances)
        self.attributes = Attributes.begun(stream)
        self.planner = Planner(lambda _: some, AGGREGATES, sharing)
        self.crew = InProcess(directory, instances)
        self.assembling = Assembling(self.planner.nothing(), self.crew)
        self.found: list[tuple[str, pa.Table]] = []
        self.kept: tuple[Snapshot, dict[str, Any]] | None = None
        self.since: list[tuple[Entry, SharedPlan]] = []  #: done after the snapshot

    @property
    def plan(self) -> SharedPlan:
        return self.planner.placed(1, [one.name for one in self.planner.queries_of(1) if self.spread and self.placing(family_of(one))])

    def happens(self, event: str) -> None:
        self.crew.twice, self.crew.late = event == "tasks twice", event == "tasks late"
        if event == "folders lost":
            shutil.rmtree(Path(tempfile.gettempdir()) / "muntin-scratch-tests", ignore_errors=True)
        elif event.startswith("restart"):
            self.restart(int(event[-1]))
        elif event.startswith("to the"):
            self.spread = event == "to the executors"

    def restart(self, instances: int) -> None:
        """With the newest snapshot, if there is one, and the entries since."""
        self.crew = InProcess(self.directory, instances)
        self.attributes, self.assembling = Attributes.begun(self.attributes.stream), Assembling(self.planner.nothing(), self.crew)
        if self.kept:
            snapshot, record = self.kept
            read = snapshot_from(snapshot.id, *snapshot_form(snapshot), self.planner)
            self.attributes = self.attributes.restored(record, read.plan.followed)
            self.assembling = Assembling.restored(read, self.crew, self.attributes)
        for entry, plan in self.since:
            self.assembling.replay(self.step(entry, plan))

    def step(self, entry: Entry, plan: SharedPlan) -> Step:
        before = followed(self.attributes, plan, entry.facts)
        self.attributes = advanced(before, entry)
        return Step(entry, plan, before, self.attributes)

    def take(self, number: int, batch: list[dict[str, Any]] | None, clock: int = 0) -> None:
        """Every other entry is followed by a snapshot."""
        plan, wanted = self.plan, number % 2 == 1
        entry = self.entry(EntryId(number), plan, None if batch is None else Batch(batch, clock), clock)
        step = self.step(entry, plan)
        came = self.assembling.take(step, Asked(returned=True, snapshot=wanted))
        self.found += self.assembling.results(step)
        if came:
            self.found += came.returned
        counters = json.loads(json.dumps({"registry": 1} | self.assembling.counters()))
        self.since.append((replace(entry, stops=stops_from(counters), lives=lives_from(counters)), plan))
        if wanted:
            parts = came.snapshot if came else NO_PARTS
            snapshot = Snapshot(entry.id, self.assembling.plan, self.assembling.holdings(), counters, parts)
            self.kept, self.since = (snapshot, self.attributes.record()), []
            self.assembling.rest(parts, self.attributes)

    def entry(self, id: EntryId, plan: SharedPlan, batch: Batch | None, clock: int) -> Entry:
        following = self.attributes.following(plan.followed)
        known = arrived(batch, following) if batch else []
        partials = [python_partials(known, one) for one in plan.groupings]
        stream = self.attributes.stream
        columns = [one for one in following.punctuators if known and (stream.schema.field(one.name) or one.pattr)]
        facts = BatchFacts(len(known), seen={str(one): seen_in(known, one, stream) for one in columns})
        spread = [at for at, one in enumerate(plan.groupings) if one.family.spread]
        parts = Parts(self.crew.instances)
        for instance in range(self.crew.instances if spread else 0):
            name = part_name(instance)
            own = {at: (plan.groupings[at], own_rows(partials[at], instance, self.crew.instances)) for at in spread}
            parts += Parts(self.crew.instances, (name,), write_partials(self.crew.parting(id).place / name, own))
        once = [grouping_layout(plan.groupings[at]).empty() if at in spread else one for at, one in enumerate(partials)]
        pin = Pin(1, {}, END, clock, "", division_names(plan))
        return Entry(id, pin, once, facts, EntryKind.BATCH if batch is not None else EntryKind.CLOSING, parts)


def rows_of(results: Sequence[tuple[str, pa.Table]]) -> list[tuple[str, str]]:
    return sorted((query, repr(row)) for query, table in results for row in table.to_pylist())


@pytest.fixture(autouse=True)
def scratch(monkeypatch: pytest.MonkeyPatch) -> None:
    """Folders in a directory of their own; and nothing waits for the disk, which is not what is tested here."""
    monkeypatch.setattr("muntin.spark.stores._flush_one", lambda _: None)
    monkeypatch.setenv("MUNTIN_SCRATCH", str(Path(tempfile.gettempdir()) / "muntin-scratch-tests"))


@settings(max_examples=100)
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
    for count in ("results", "late", "dropped"):
        assert counted(run.assembling.lives, count) == counted(alone.lives, count)
    assert len(left) <= BATCHES + 1


@settings(max_examples=60)
@given(
    some=st.lists(st.sampled_from(OF_EVERY_TYPE), min_size=1, max_size=4).map(named),
    some_rows=st.lists(readings, max_size=25),
    places=st.lists(st.integers(0, 100), min_size=BATCHES - 1, max_size=BATCHES - 1),
    pauses=st.lists(st.integers(0, 4), min_size=BATCHES, max_size=BATCHES),
    declared=st.sampled_from(DECLARED),
    sharing=st.sampled_from(Sharing),
    events=st.lists(st.sampled_from(EVENTS), min_size=BATCHES + 1, max_size=BATCHES + 1),
)
def test_every_window_type_goes_on_beside_a_crew_and_with_it(
    some: list[Query],
    some_rows: list[dict[str, Any]],
    places: list[int],
    pauses: list[int],
    declared: dict[str, str],
    sharing: Sharing,
    events: list[str],
) -> None:
    """Sub-streams that are further than the stream included: groups of theirs close on executors as they do in the driver."""
    clocks = [sum(pauses[: at + 1]) * SECOND for at in range(BATCHES)]
    batches = [Batch(part, clock) for part, clock in zip(cut(some_rows, places), clocks, strict=True)]
    expected = PythonEngine(stream(**declared), some, sharing).run(batches).results
    with tempfile.TemporaryDirectory() as scratch:
        run = Run(Path(scratch) / uuid.uuid4().hex, some, sharing, 2, stream(**declared))
        for number, (event, batch) in enumerate(zip(events, batches, strict=False)):
            run.happens(event)
            run.take(number, list(batch.rows), batch.clock)
        run.happens(events[-1])
        run.take(BATCHES, None, clocks[-1])
    for one in some:
        ours = [row for name, table in run.found if name == one.name for row in table.to_pylist()]
        assert same(in_order(ours), in_order(expected[one.name])), f"{one}\nours  {ours}\nalone {expected[one.name]}"


def counted(lives: Mapping[str, QueryLife], count: str) -> dict[str, int]:
    return {name: getattr(life, count) for name, life in lives.items()}


def in_order(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Instances have no order among them."""
    names = ("window_end", "window_start", "seg_id", "final", "revision", "n")
    return sorted(found, key=lambda row: [str(row.get(name)) for name in names])


def test_a_late_task_that_knew_of_no_stop_leaves_nothing_that_others_go_on_with() -> None:
    some = query("SELECT seg_id, 10 / sum(vehicles) AS q FROM traffic [RANGE 5 us SLIDE 5 us] GROUP BY seg_id")
    segments = ("a", "b", "c", "d", "e")
    with tempfile.TemporaryDirectory() as directory:
        run = Run(Path(directory) / uuid.uuid4().hex, (some,), Sharing.AUTOMATIC, 3, stream(slack="0 us"))
        run.take(0, [reading(1, segment, vehicles=segment != "b") for segment in segments])
        run.happens("tasks late")
        run.take(1, [reading(7, segment, vehicles=1) for segment in segments])
        run.take(2, None)
    assert run.found == []
    assert list(run.assembling.stopped) == ["q"]


def test_a_query_that_moved_and_then_stopped_on_its_data_stays_stopped_after_a_restart() -> None:
    some = query("SELECT seg_id, 10 / min(vehicles) AS q FROM traffic [RANGE 20 us SLIDE 10 us] GROUP BY seg_id")
    with tempfile.TemporaryDirectory() as directory:
        run = Run(Path(directory) / uuid.uuid4().hex, (some,), Sharing.AUTOMATIC, 2, stream(slack="0 us"))
        run.take(1, [reading(1, "a", vehicles=1)])
        run.take(2, [reading(2, "b", vehicles=1)])
        run.happens("to the driver")
        run.take(4, [reading(14, "a", vehicles=0), reading(55, "b", vehicles=1)])
        assert list(run.assembling.stopped) == ["q"]
        run.happens("restart with 2")
        assert list(run.assembling.stopped) == ["q"]
        emitted = len(run.found)
        run.take(6, [reading(90, "a", vehicles=1)])
    assert len(run.found) == emitted


def test_what_instances_left_is_swept_away_though_nothing_is_spread_any_more() -> None:
    with tempfile.TemporaryDirectory() as directory:
        run = Run(Path(directory) / uuid.uuid4().hex, (BY_SEGMENT,), Sharing.AUTOMATIC, 2)
        run.take(1, [ROW])
        run.happens("to the driver")
        with suppress(KeyError), pytest.MonkeyPatch.context() as patch:
            patch.setattr(Assembling, "rest", lambda *_: {}["killed"])
            run.take(3, [ROW])
        assert list(run.crew.snapshots.files())
        run.happens("restart with 2")
        assert not list(run.crew.snapshots.files())


def test_a_job_that_was_taken_over_deletes_nothing_of_the_new_one() -> None:
    with tempfile.TemporaryDirectory() as directory:
        run = Run(Path(directory) / uuid.uuid4().hex, (BY_SEGMENT,), Sharing.AUTOMATIC, 2)
        run.take(1, [ROW])
        kept = list(run.crew.snapshots.files())

        def taken_over() -> None:
            raise OwnershipError("another job owns the checkpoint")

        overtaken = Crew(None, "run", "s", Place.of(run.directory), 2, taken_over)  # type: ignore[arg-type]
        with pytest.raises(OwnershipError):
            overtaken.forget(EntryId(10))
        assert list(run.crew.snapshots.files()) == kept


def test_a_part_that_is_missing_is_refused_by_its_name() -> None:
    with tempfile.TemporaryDirectory() as directory:
        some = (BY_SEGMENT,)
        run = Run(Path(directory) / uuid.uuid4().hex, some, Sharing.AUTOMATIC, 2)
        run.take(1, [ROW])
        for name in run.crew.snapshots.files():
            (run.crew.snapshots / name).remove()
        run.happens("folders lost")
        with pytest.raises(CheckpointError, match=r"(?s)every file of a checkpoint.*snapshot-parts/.*the file is missing"):
            run.take(2, [ROW])
