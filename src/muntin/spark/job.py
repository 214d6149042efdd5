"""One stream's job: micro-batches in, results out, exactly once.

In: the rows of each batch from `foreachBatch`, and versions of the registry. Out: results at the sinks, and an entry in the slice log.
Convention, for entry N: pin what the result depends on; compute the partials, or read them if N is already in the log; step the
assembly; write the results under N; mark N done. Whatever of this a crash cut short is done again with the same outcome. Once the
partials are in the log, Spark need not wait for the rest: it commits the batch and looks for the next one meanwhile.
A version of the registry that was asked for takes effect with the next entry, and is pinned to it.
Paper: the pane-level query runs in Spark, the window-level query here (panes-2005, section 3.1).
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame

from muntin.disorder import Attributes
from muntin.plan.load import Load
from muntin.plan.placing import Placing
from muntin.plan.planner import Planner
from muntin.plan.shared import SharedPlan
from muntin.query.model import StreamDefinition
from muntin.spark.advance import advanced, expected, followed
from muntin.spark.assembling import Assembling, Step
from muntin.spark.behind import Behind
from muntin.spark.checkpoint import Checkpoint
from muntin.spark.collecting import Collected, Collecting, Spans
from muntin.spark.crew import Crew, Taken
from muntin.spark.delivery import deliver
from muntin.spark.entries import Entry, EntryKind, Pin, Snapshot
from muntin.spark.facts import NO_ROWS
from muntin.spark.joining import Joiner
from muntin.spark.letters import Letters
from muntin.spark.loads import LoadWatch
from muntin.spark.parts import NO_PARTS
from muntin.spark.pinning import Pinning, wall_clock
from muntin.spark.place import Place
from muntin.spark.progress import Progress
from muntin.spark.reading import Reading
from muntin.spark.recovery import check_counted, check_next, check_not_behind, check_nothing_begun, check_open, check_same_spark_checkpoint
from muntin.spark.sinks.base import EntryId, Sink
from muntin.spark.slicelog import SliceLog
from muntin.spark.timers import Timer
from muntin.spark.totals import Stopwatch, Totals
from muntin.windows.life import QueryLife
from muntin.windows.shards import grouping_layout


@dataclass
class StreamJob:
    """The state of a running stream. `process` is what `foreachBatch` calls; `version` is the registry's that the next entry
    uses, `oldest` the earliest that a restart would read.
    """

    stream: StreamDefinition
    planner: Planner
    joiner: Joiner
    version: int
    sinks: Sequence[Sink]
    checkpoint: Checkpoint | None = None
    dead_letters: Place | None = None
    late_rows: Place | None = None
    clock: Callable[[], int] = wall_clock
    on_progress: Callable[[Progress], None] = lambda _: None
    totals: Totals = field(default_factory=Totals)
    loads: LoadWatch = field(default_factory=LoadWatch)
    crew: Crew | None = None
    placing: Placing | None = None

    def __post_init__(self) -> None:
        self.used = self.oldest = self.version
        self.assembly = Assembling(self.planner.nothing(), self.crew)
        self.attributes = Attributes.begun(self.stream)
        self.log = SliceLog(self.checkpoint.directory, self.planner, self.checkpoint.check_owned) if self.checkpoint else None
        self.last = EntryId(-1)
        self.numbered = True  #: whether the rows of a batch say in which order they came
        self.temporary: Path | None = None  #: Spark's checkpoint, where the job has none
        self._behind = Behind()
        self.turn = threading.Lock()  #: held while an entry is pinned, and while what it will be pinned to is changed
        self._pinning = Pinning(self.planner, self.joiner, self.checkpoint)
        self._spans: Spans = {}
        self._timer, self._watch = Timer(), Stopwatch(self.totals)
        self._begun = -1  #: the latest batch that was begun, by an earlier run too
        if self.log:
            self._recover(self.log)
        check_counted(self.attributes, self.planner.queries_of(self.version))
        if self.last == EntryId(-1):
            self.assembly.use(self.planner.choose(self.version, self.load), self.attributes)
        self._reading = Reading(self.joiner, self.crew, Collecting(self.stream, self.planner.nothing()))
        self._watch = Stopwatch(self.totals)

    @property
    def plan(self) -> SharedPlan:
        return self.assembly.plan

    @property
    def load(self) -> Load:
        return self.loads.load

    @property
    def gate(self) -> threading.Lock:
        """Held while an entry is in hand, until it is done."""
        return self._behind.gate

    @property
    def failure(self) -> BaseException | None:
        """What an entry failed with."""
        return self._behind.failure

    @property
    def stopping(self) -> bool:
        return self._behind.stopping

    def stop(self) -> None:
        """Take no batch any more, once the one in hand is done."""
        with self.gate:
            self._behind.stopping = True

    def settle(self) -> None:
        """Wait until nothing is done behind Spark's back any more."""
        self._behind.settle()

    def lives_of(self, version: int) -> dict[str, QueryLife]:
        """What the queries of a version went through. One that has replaced another of its name took no part yet."""
        wanted, taking_part = self.planner.queries_of(version), {one.query for one in self.plan.queries}
        return {one.name: self.assembly.lives[one.name] for one in wanted if one in taking_part}

    @property
    def next_to_pin(self) -> int:
        """The first batch that a change of the queries is in effect for: one in hand, or cut short by a crash, is taken as it was begun."""
        return max(self.last.batch, self._begun) + 1

    # -- recovery ---------------------------------------------------------------------------------------------------------------

    def _recover(self, log: SliceLog) -> None:
        """Load the newest snapshot and go over the entries after it, without writing their results again."""
        found, entries, counters = log.recover()
        if self.placing:
            self.placing.learn_of(self.planner.queries_of(self.version), counters.get("groups", {}))
        newest = log.newest_pin()
        versions = {newest.registry} if newest else set()
        check_same_spark_checkpoint(newest, self.checkpoint)
        self.joiner.tables.know(newest.tables if newest else {})
        if found:
            self._restore(found)
        for entry in entries:
            self.oldest = min(self.oldest, entry.pin.registry)
            self.assembly.replay(self._step(entry))
            self.last = entry.id
        committed = self.checkpoint.spark_committed() if self.checkpoint else -1
        left = log.unfinished_batch(self.last, committed)
        if left:
            versions.add(left.pin.registry)
            self._finish(left)
        check_not_behind(self.checkpoint, self.last)
        begun = log.newest_pinned()
        self._begun = begun.batch if begun else -1
        unfinished = log.unfinished_timer(self.last)
        if unfinished:
            versions.add(unfinished.pin.registry)
            self._finish(unfinished)
        self.oldest = min({self.oldest, *versions})
        check_open(self.checkpoint, closed=counters.get("final") or (unfinished and unfinished.kind is EntryKind.CLOSING))

    def _restore(self, found: Snapshot) -> None:
        self.attributes = self.attributes.restored(found.counters["attributes"], found.plan.followed)
        self.assembly = Assembling.restored(found, self.crew, self.attributes)
        self.totals = Totals(**found.counters["totals"])
        self.used = self.oldest = int(found.counters["registry"])
        self.last = found.id

    # -- one entry --------------------------------------------------------------------------------------------------------------

    def process(self, frame: DataFrame, batch: int) -> None:
        """Take one micro-batch. Spark may bring the last one again, which is then skipped; any other that is not the next is refused."""
        with self._behind.entered():
            if batch != self.last.batch:
                check_next(EntryId(batch), self.last)
                logged, found = self._logged(EntryId(batch), frame)
                if self.assembly.asks_the_crew(self.planner.named(logged.pin.registry, logged.pin.division)):
                    self._finish(logged, found)  # before the batch ends, and jobs in Spark with it
                else:
                    self._behind.go_on(lambda: self._finish(logged, found))

    def process_all(self, frame: DataFrame) -> None:
        """Bounded input in one go: nothing is late and every window closes."""
        entry, pin = EntryId(0), self._pinned(EntryId(0))
        found = self._read(entry, frame, pin, None)
        self._finish(Entry(entry, pin, found.partials, found.facts, EntryKind.CLOSING, found.parts), found)

    def close(self) -> None:
        """The closing entry: the input has ended, every open window closes."""
        if self.log:
            check_nothing_begun(self.log.newest_pinned(), self.last)
        with self.gate:
            self._finish_without_rows(EntryKind.CLOSING)

    def tick(self) -> None:
        """Time goes on while no rows come: a timer entry, if the clock has anything to close or to tell and none was made for a while.

        Not before the first batch, nor while one that a crash cut short waits to be brought again. Errors are kept in `failure`.
        """
        if not self._timer.is_due(self.attributes, self.assembly, self.clock()) or not self.gate.acquire(blocking=False):
            return
        try:
            if not self._behind.stopping and self.failure is None and self.last.batch >= max(0, self._begun):
                self._finish_without_rows(EntryKind.TIMER)
        except BaseException as failure:  # noqa: BLE001 - raised by whoever waits for the job
            self._behind.failure = failure
        finally:
            self.gate.release()

    def _finish_without_rows(self, kind: EntryKind) -> None:
        with self.turn:
            pin = self._new_pin()
        nothing = [grouping_layout(grouping).empty() for grouping in self.planner.named(pin.registry, pin.division).groupings]
        entry = Entry(self.last.next_timer(), pin, nothing, NO_ROWS, kind)
        if self.log:
            self.log.append(entry)
        self._finish(entry)

    def _logged(self, entry: EntryId, frame: DataFrame) -> tuple[Entry, Collected | None]:
        """The entry of a batch; and what was collected for it, unless the log had it."""
        pin = self._pinned(entry)
        logged = self.log.read(entry) if self.log else None
        if logged is not None:
            return logged, None
        found = self._read(entry, frame, pin, self._spans)
        logged = Entry(entry, pin, found.partials, found.facts, parts=found.parts)
        if self.log:
            self.log.append(logged)
        return logged, found

    def _read(self, entry: EntryId, frame: DataFrame, pin: Pin, spans: Spans | None) -> Collected:
        plan = self.planner.named(pin.registry, pin.division)
        since = {name: life.since for name, life in self.assembly.lives.items()}
        letters = Letters(self.dead_letters, self.late_rows, since)
        return self._reading(entry, frame, pin, plan, self.attributes, spans=spans, load=self.load, letters=letters)

    def _pinned(self, entry: EntryId) -> Pin:
        """The pin of a batch. Whoever changes the queries meanwhile waits, and is told of the batch after it."""
        with self.turn:
            self._begun = max(self._begun, entry.batch)
            if self.log and (pinned := self.log.pinned(entry)):
                return pinned
            pin = self._new_pin()
            if self.log:
                self.log.pin(entry, pin)
            return pin

    def _new_pin(self) -> Pin:
        present = self.plan if self.version == self.used else None
        return self._pinning(self.version, self.attributes, self.load, present, clock=self.clock())

    def _step(self, entry: Entry) -> Step:
        plan = self.planner.named(entry.pin.registry, entry.pin.division)
        before = followed(self.attributes, plan, entry.facts)
        self.attributes = advanced(before, entry)
        self.used = entry.pin.registry
        self.totals.add(entry.facts)
        self.assembly.aggregations.partial += (entry.facts.rows - entry.facts.dead) * len(plan.groupings)
        return Step(entry, plan, before, self.attributes)

    def _finish(self, entry: Entry, collected: Collected | None = None) -> None:
        wanted = self.log.wants_snapshot() if self.log else self.assembly.wants_snapshot()
        step = self._step(entry)
        taken = deliver(self.assembly, step, self.sinks, self.stream.name, snapshot=wanted)
        self.last = entry.id
        self._timer.wind(step)
        self._spans = expected(self.attributes, self.plan, entry.facts)
        if collected:
            self.loads.see(self.plan, collected)
        if self.log:
            self._mark_done(self.log, entry, taken, snapshot=wanted)
        if wanted:
            self.assembly.rest(taken.snapshot if taken else NO_PARTS, self.attributes)
        self.on_progress(self.progress())

    def _mark_done(self, log: SliceLog, entry: Entry, taken: Taken | None, *, snapshot: bool) -> None:
        counters = self.counters() | {"final": entry.kind is EntryKind.CLOSING}
        log.done(entry.id, counters)
        if snapshot:
            log.snapshot(Snapshot(entry.id, self.plan, self.assembly.holdings(), counters, taken.snapshot if taken else NO_PARTS))
            with self.turn:  # a query that joins may be reading a table just now
                self.joiner.tables.forget(pin.tables for pin in log.pins())
            self.oldest = self.used

    def release(self) -> None:
        """Executors keep nothing for a job that has ended."""
        if self.crew:
            self.crew.release()

    def counters(self) -> dict[str, Any]:
        return {"registry": self.used, "attributes": self.attributes.record(), "totals": asdict(self.totals)} | self.assembly.counters()

    def progress(self) -> Progress:
        return self._watch.progress(self.totals, self.assembly, self.attributes, self.joiner.tables.troubles)
