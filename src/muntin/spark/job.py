"""One stream's job: micro-batches in, results out, exactly once.

In: the rows of each batch from `foreachBatch`, and versions of the registry. Out: results at the sinks, and an entry in the slice log.
Convention, for entry N: pin what the result depends on; compute the partials, or read them if N is already in the log; step the
assembly; write the results under N; mark N done. Whatever of this a crash cut short is done again with the same outcome.
A version of the registry that was asked for takes effect with the next entry, and is pinned to it.
Paper: the pane-level query runs in Spark, the window-level query here (panes-2005, section 3.1).
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame

from muntin.disorder import Slack
from muntin.plan.load import FIRST_LOAD, Load
from muntin.plan.placing import Placing
from muntin.plan.planner import Planner, division_names
from muntin.plan.shared import SharedPlan
from muntin.query.model import StreamDefinition
from muntin.spark.assembling import Assembling, Step
from muntin.spark.checkpoint import Checkpoint
from muntin.spark.collecting import Collected, Collecting, Joining, expected_span
from muntin.spark.crew import Crew
from muntin.spark.decoding import NO_FACTS, BatchFacts
from muntin.spark.delivery import deliver
from muntin.spark.entries import Entry, EntryKind, Pin, Snapshot
from muntin.spark.joining import Joiner
from muntin.spark.parts import NO_PARTS
from muntin.spark.place import Place
from muntin.spark.progress import Progress
from muntin.spark.recovery import check_next, check_not_behind, check_nothing_begun, check_open, check_same_spark_checkpoint
from muntin.spark.rows import Rows
from muntin.spark.sinks.base import EntryId, Sink
from muntin.spark.slicelog import SliceLog
from muntin.spark.totals import Stopwatch, Totals
from muntin.timeline import END, Interval
from muntin.windows.observing import observed
from muntin.windows.shards import grouping_layout


class Stopping(Exception):
    """The job is being stopped: a batch that begins now is not taken, and Spark brings it again after a resume."""


def wall_clock() -> int:
    return time.time_ns() // 1000


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
    clock: Callable[[], int] = wall_clock
    on_progress: Callable[[Progress], None] = lambda _: None
    totals: Totals = field(default_factory=Totals)
    load: Load = FIRST_LOAD
    crew: Crew | None = None
    placing: Placing = field(default_factory=Placing)

    def __post_init__(self) -> None:
        self.used = self.oldest = self.version
        self.assembly = Assembling(self.planner.nothing(), self.crew)
        self.disorder = Slack(self.stream.slack.micros)
        self.log = SliceLog(self.checkpoint.directory, self.planner, self.checkpoint.check_owned) if self.checkpoint else None
        self.last = EntryId(-1)
        self.temporary: Path | None = None  #: Spark's checkpoint, where the job has none
        self.gate = threading.Lock()
        self.stopping = False
        self.failure: BaseException | None = None
        self._span: Interval | None = None
        self._seen: tuple[object, float] = None, 0.0
        self._watch = Stopwatch(self.totals)
        if self.log:
            self._recover(self.log)
        if self.last == EntryId(-1):
            self.assembly.use(self.planner.choose(self.version, self.load))
        self.collecting = Collecting(self.stream, self.plan)
        self._watch = Stopwatch(self.totals)

    @property
    def plan(self) -> SharedPlan:
        return self.assembly.plan

    # -- recovery ---------------------------------------------------------------------------------------------------------------

    def _recover(self, log: SliceLog) -> None:
        """Load the newest snapshot and go over the entries after it, without writing their results again."""
        found, entries, counters = log.recover()
        self.placing.learn_of(self.planner.queries_of(self.version), counters.get("groups", {}))
        check_same_spark_checkpoint(log.newest_pin(), self.checkpoint)
        if found:
            self._restore(found)
        for entry in entries:
            self.oldest = min(self.oldest, entry.pin.registry)
            self.assembly.replay(self._step(entry), counters)
            self.last = entry.id
        check_not_behind(self.checkpoint, self.last)
        unfinished = log.unfinished_timer(self.last)
        if unfinished:
            self._finish(unfinished)
        check_open(self.checkpoint, closed=counters.get("final") or (unfinished and unfinished.kind is EntryKind.CLOSING))

    def _restore(self, found: Snapshot) -> None:
        self.assembly = Assembling.restored(found, self.crew)
        self.totals = Totals(**found.counters["totals"])
        self.used = self.oldest = int(found.counters["registry"])
        self.last = found.id

    # -- one entry --------------------------------------------------------------------------------------------------------------

    def process(self, frame: DataFrame, batch: int) -> None:
        """Take one micro-batch. Spark may bring the last one again, which is then skipped; any other that is not the next is refused."""
        entry = EntryId(batch)
        with self.gate:
            if self.stopping:
                raise Stopping
            try:
                if batch != self.last.batch:
                    check_next(entry, self.last)
                    self._finish(*self._logged(entry, frame))
            except BaseException as failure:
                self.failure = failure
                raise

    def process_all(self, frame: DataFrame) -> None:
        """Bounded input in one go: nothing is late and every window closes."""
        entry, pin = EntryId(0), self._new_pin()
        rows = Rows(frame, self.stream, pin.limit)
        found = self._collected(entry, rows, self.collecting.span_of(rows), pin)
        self._finish(Entry(entry, pin, found.partials, found.facts, EntryKind.CLOSING, found.parts), found)

    def close(self) -> None:
        """The closing entry: the input has ended, every open window closes."""
        pin = self._new_pin()
        nothing = [grouping_layout(grouping).empty() for grouping in self.planner.named(pin.registry, pin.division).groupings]
        closing = Entry(self.last.next_timer(), pin, nothing, NO_FACTS, EntryKind.CLOSING)
        if self.log:
            check_nothing_begun(self.log.newest_pinned(), self.last)
            self.log.append(closing)
        self._finish(closing)

    def _logged(self, entry: EntryId, frame: DataFrame) -> tuple[Entry, Collected | None]:
        """The entry of a batch; and what was collected for it, unless the log had it."""
        pin = self._pinned(entry)
        logged = self.log.read(entry) if self.log else None
        if logged is not None:
            return logged, None
        plan = self.planner.named(pin.registry, pin.division)
        if plan is not self.collecting.plan:
            self.collecting = Collecting(self.stream, plan)
        found = self._collected(entry, Rows(frame, self.stream, pin.limit), self._span, pin)
        logged = Entry(entry, pin, found.partials, found.facts, parts=found.parts)
        if self.log:
            self.log.append(logged)
        return logged, found

    def _collected(self, entry: EntryId, rows: Rows, span: Interval | None, pin: Pin) -> Collected:
        found = self.collecting(rows, span, self._joining(pin), self.crew.parting(entry) if self.crew else None)
        self._write_dead_letters(entry, rows, found.facts)
        return found

    def _pinned(self, entry: EntryId) -> Pin:
        pinned = self.log.pinned(entry) if self.log else None
        if pinned:
            return pinned
        pin = self._new_pin()
        if self.log:
            self.log.pin(entry, pin)
        return pin

    def _new_pin(self) -> Pin:
        query = (self.checkpoint.spark_query() if self.checkpoint else None) or ""
        plan = self.planner.choose(self.version, self.load, self.plan if self.version == self.used else None)
        tables = self.joiner.tables.versions(sorted({join.table for part in plan.division for join in part.family.joins}))
        return Pin(self.version, self.assembly.punctuation, self._limit(), query, division_names(plan), tables)

    def _joining(self, pin: Pin) -> Joining:
        return lambda rows, joins: self.joiner.rows(rows, joins, pin.tables)

    def _limit(self) -> int:
        """The latest instant that is not too far ahead: `max_ahead` beyond both the highest punctuation and the clock."""
        return max(self.assembly.punctuation, self.clock()) + self.stream.max_ahead.micros

    def _step(self, entry: Entry) -> Step:
        plan = self.planner.named(entry.pin.registry, entry.pin.division)
        self.used = entry.pin.registry
        self.totals.add(entry.facts)
        self.assembly.aggregations.partial += (entry.facts.rows - entry.facts.dead) * len(plan.groupings)
        return Step(entry, plan, END if entry.kind is EntryKind.CLOSING else self.disorder.punctuation(entry.facts.last))

    def _finish(self, entry: Entry, collected: Collected | None = None) -> None:
        wanted = self.log.wants_snapshot() if self.log else self.assembly.wants_snapshot()
        taken = deliver(self.assembly, self._step(entry), self.sinks, self.stream.name, snapshot=wanted)
        self.last = entry.id
        self._span = expected_span(entry.facts, self.assembly.punctuation)
        if collected:
            self._observe(collected)
        parts = taken.snapshot if taken else NO_PARTS
        if self.log:
            stops = {name: asdict(stop) for name, stop in taken.report.stops.items()} if taken else {}
            counters = self.counters() | {"final": entry.kind is EntryKind.CLOSING, "stops": stops}
            self.log.done(entry.id, counters)
            if wanted:
                self.log.snapshot(Snapshot(entry.id, self.plan, self.assembly.holdings(), counters, parts))
                self.joiner.tables.forget(pin.tables for pin in self.log.pins())
                self.oldest = self.used
        if wanted:
            self.assembly.rest(parts)
        self.on_progress(self.progress())

    def _observe(self, found: Collected) -> None:
        """Look at the load again where the groupings are new or batches have come to be of another kind."""
        shards = (sum(map(len, found.partials)) + sum(one.shards for one in found.tallies.values())) / max(1, found.facts.rows)
        shape = self.plan.shape
        if shape != self._seen[0] or not 0.5 <= shards / max(self._seen[1], 1e-9) <= 2:
            counts = {position: (tally.shards, tally.groups) for position, tally in found.tallies.items()}
            load = observed(self.plan, found.partials, found.facts.rows, counts)
            if load:
                self.load, self._seen = load, (shape, shards)

    def _write_dead_letters(self, entry: EntryId, rows: Rows, facts: BatchFacts) -> None:
        """A second pass over the batch, only where it has bad rows. Overwriting under the entry's name makes it repeatable."""
        if facts.dead and self.dead_letters:
            rows.dead_letters().write.mode("overwrite").json((self.dead_letters / str(entry)).spark_uri)

    def release(self) -> None:
        """Executors keep nothing for a job that has ended."""
        if self.crew:
            self.crew.release()

    def counters(self) -> dict[str, Any]:
        return {"registry": self.used, "totals": asdict(self.totals)} | self.assembly.counters()

    def progress(self) -> Progress:
        return self._watch.progress(self.stream.name, self.totals, self.assembly)
