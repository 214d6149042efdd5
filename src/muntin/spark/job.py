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
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame

from muntin.disorder import Attributes
from muntin.plan.load import FIRST_LOAD, Load
from muntin.plan.planner import Planner, division_names
from muntin.plan.shared import SharedPlan
from muntin.query.model import StreamDefinition
from muntin.semantics import Attribute
from muntin.spark.checkpoint import Checkpoint
from muntin.spark.collecting import Collecting, Joining
from muntin.spark.entries import Entry, EntryKind, Pin, Snapshot
from muntin.spark.facts import NO_ROWS, BatchFacts
from muntin.spark.joining import Joiner
from muntin.spark.place import Place
from muntin.spark.progress import Progress
from muntin.spark.recovery import check_next, check_not_behind, check_nothing_begun, check_open, check_same_spark_checkpoint
from muntin.spark.rows import Rows
from muntin.spark.sighting import late_counts
from muntin.spark.sinks.base import EntryId, Sink
from muntin.spark.slicelog import SliceLog
from muntin.timeline import BEGINNING, END, Interval
from muntin.windows.assemblies import Assemblies
from muntin.windows.assembly import Aggregations
from muntin.windows.closing import ResultChunk
from muntin.windows.life import QueryLife
from muntin.windows.observing import observed
from muntin.windows.shards import grouping_layout
from muntin.windows.substreams import Substreams

#: How long no entry was made before a timer makes one.
TIMER_SECONDS = 1.0


class Stopping(Exception):
    """The job is being stopped: a batch that begins now is not taken, and Spark brings it again after a resume."""


def wall_clock() -> int:
    return time.time_ns() // 1000


@dataclass
class Totals:
    """Counters of the whole run; they go into the log with every entry."""

    rows: int = 0
    dead: int = 0
    entries: int = 0


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
    load: Load = FIRST_LOAD

    def __post_init__(self) -> None:
        self.used = self.oldest = self.version
        self.assembly = Assemblies(self.planner.choose(self.version, self.load))
        self.collecting = Collecting(self.stream, self.assembly.plan)
        self.attributes = Attributes.begun(self.stream)
        self.log = SliceLog(self.checkpoint.directory, self.planner, self.checkpoint.check_owned) if self.checkpoint else None
        self.last = EntryId(-1)
        self.numbered = True  #: whether the rows of a batch say in which order they came
        self.temporary: Path | None = None  #: Spark's checkpoint, where the job has none
        self.gate = threading.Lock()
        self.stopping = False
        self.failure: BaseException | None = None
        self._spans: dict[Attribute, Interval] = {}
        self._seen: tuple[object, float] = None, 0.0
        self._began = self._finished = time.monotonic()
        self._begun = -1  #: the latest batch that an earlier run began
        self._restored_rows = 0
        if self.log:
            self._recover(self.log)
        self._restored_rows = self.totals.rows

    @property
    def plan(self) -> SharedPlan:
        return self.assembly.plan

    # -- recovery ---------------------------------------------------------------------------------------------------------------

    def _recover(self, log: SliceLog) -> None:
        """Load the newest snapshot and go over the entries after it, without writing their results again."""
        found, entries, counters = log.recover()
        check_same_spark_checkpoint(log.newest_pin(), self.checkpoint)
        if found:
            self._restore(found)
        for entry in entries:
            self.oldest = min(self.oldest, entry.pin.registry)
            for _ in self._step(entry):
                pass
            self.last = entry.id
        check_not_behind(self.checkpoint, self.last)
        begun = log.newest_pinned()
        self._begun = begun.batch if begun else -1
        unfinished = log.unfinished_timer(self.last)
        if unfinished:
            self._finish(unfinished)
        check_open(self.checkpoint, closed=counters.get("final") or (unfinished and unfinished.kind is EntryKind.CLOSING))

    def _restore(self, found: Snapshot) -> None:
        counters = found.counters
        lives = {name: QueryLife(**life) for name, life in counters["queries"].items()}
        self.assembly = Assemblies(found.plan, lives, Aggregations(**counters["aggregations"]))
        self.attributes = self.attributes.restored(counters["attributes"], self.assembly.attributes)
        self.assembly.restore(found.holdings, self._reach, self._substreams())
        self.totals = Totals(**counters["totals"])
        self.used = self.oldest = int(counters["registry"])
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
                    self._finish(self._logged(entry, frame))
            except BaseException as failure:
                self.failure = failure
                raise

    def process_all(self, frame: DataFrame) -> None:
        """Bounded input in one go: nothing is late and every window closes."""
        entry, pin = EntryId(0), self._new_pin()
        rows = Rows(frame, self.stream, pin.limit, self.attributes.arrival(pin.clock))
        partials, facts = self.collecting(rows, self.collecting.spans_of(rows), self._joining(pin), before=0)
        self._write_dead_letters(entry, rows, facts)
        self._finish(Entry(entry, pin, partials, facts, EntryKind.CLOSING))

    def close(self) -> None:
        """The closing entry: the input has ended, every open window closes."""
        if self.log:
            check_nothing_begun(self.log.newest_pinned(), self.last)
        self._finish_without_rows(EntryKind.CLOSING)

    def tick(self) -> None:
        """Time goes on while no rows come: a timer entry, if the clock can close anything and none was made for a while.

        Not before the first batch, nor while one that a crash cut short waits to be brought again. Errors are kept in `failure`.
        """
        if not self._wants_timer() or not self.gate.acquire(blocking=False):
            return
        try:
            if not self.stopping and self.failure is None and self.last.batch >= max(0, self._begun):
                self._finish_without_rows(EntryKind.TIMER)
        except BaseException as failure:  # noqa: BLE001 - raised by whoever waits for the job
            self.failure = failure
        finally:
            self.gate.release()

    def _wants_timer(self) -> bool:
        waited = time.monotonic() - self._finished >= TIMER_SECONDS
        return waited and self.attributes.moved_by_the_clock(self.assembly.attributes) and self.assembly.slices > 0

    def _finish_without_rows(self, kind: EntryKind) -> None:
        pin = self._new_pin()
        nothing = [grouping_layout(grouping).empty() for grouping in self.planner.named(pin.registry, pin.division).groupings]
        entry = Entry(self.last.next_timer(), pin, nothing, NO_ROWS, kind)
        if self.log:
            self.log.append(entry)
        self._finish(entry)

    def _logged(self, entry: EntryId, frame: DataFrame) -> Entry:
        pin = self._pinned(entry)
        logged = self.log.read(entry) if self.log else None
        if logged is None:
            plan = self.planner.named(pin.registry, pin.division)
            if plan is not self.collecting.plan:
                self.collecting = Collecting(self.stream, plan)
            rows = Rows(frame, self.stream, pin.limit, self.attributes.arrival(pin.clock))
            partials, facts = self.collecting(rows, self._spans, self._joining(pin), before=self.attributes.rows)
            facts = replace(facts, late=late_counts(rows, facts, pin.punctuations, self.collecting.attributes))
            self._write_dead_letters(entry, rows, facts)
            self._write_late_rows(entry, rows, facts, pin)
            logged = Entry(entry, pin, partials, facts)
            if self.log:
                self.log.append(logged)
        return logged

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
        clock = self.clock()
        reached = {str(one): punctuation for one in self.attributes.punctuators if (punctuation := self._reach(one)[0]) > BEGINNING}
        # The latest time that is not too far ahead: `max_ahead` beyond both the highest punctuation and the clock.
        limit = max(self.attributes.time.punctuation, clock) + self.stream.max_ahead.micros
        return Pin(self.version, reached, limit, clock, query, division_names(plan), tables)

    def _joining(self, pin: Pin) -> Joining:
        return lambda rows, joins: self.joiner.rows(rows, joins, pin.tables)

    def _reach(self, attribute: Attribute) -> tuple[int, int]:
        reached = self.attributes.reached(attribute)
        return reached.punctuation, reached.latest

    def _substreams(self) -> dict[Attribute, Substreams]:
        """Which parts of the stream are further than the whole."""
        time = Attribute(self.stream.time)
        return {time: Substreams(self.stream.disorder.substreams, self.attributes.punctuators[time].punctuations.of)}

    def _step(self, entry: Entry) -> Iterator[ResultChunk]:
        plan = self.planner.named(entry.pin.registry, entry.pin.division)
        self._follow(plan, entry.facts)
        if plan is not self.plan:
            self.assembly.use(plan, self._reach)
        self.used = entry.pin.registry
        self.totals.rows += entry.facts.rows
        self.totals.dead += entry.facts.dead
        self.totals.entries += 1
        self.assembly.aggregations.partial += (entry.facts.rows - entry.facts.dead) * len(plan.groupings)
        self.attributes = self.attributes.observe(entry.pin.clock, entry.facts.seen, entry.facts.rows, entry.facts.late)
        if entry.kind is EntryKind.CLOSING:
            self.attributes = self.attributes.closed()
        yield from self.assembly.step(entry.partials, self._reach, self._substreams())

    def _follow(self, plan: SharedPlan, facts: BatchFacts) -> None:
        """Attributes that queries are over for the first time. Of a column that nobody asked for before, this batch's rows are the first
        that are known: where there were rows before, windows over it begin after them.
        """
        wanted = {one.query.window.attribute for one in plan.queries}
        unknown = [one for one in wanted if one not in self.attributes.punctuators]
        self.attributes = self.attributes.following(wanted)
        if unknown and self.totals.rows:
            self.attributes = self.attributes.begun_at({one: facts.last(str(one)) for one in unknown})

    def _expected(self, attribute: Attribute, facts: BatchFacts) -> Interval | None:
        return expected_span(facts.last(str(attribute)), self.attributes.reached(attribute).punctuation)

    def _finish(self, entry: Entry) -> None:
        results = self._step(entry)
        self._deliver(entry.id, results)
        for _ in results:  # a sink that already holds the entry did not pull them
            pass
        self.last, self._finished = entry.id, time.monotonic()
        self._spans = {one: span for one in self.assembly.attributes if (span := self._expected(one, entry.facts)) is not None}
        self._observe(entry)
        if self.log:
            counters = self.counters() | {"final": entry.kind is EntryKind.CLOSING}
            self.log.done(entry.id, counters)
            if self.log.wants_snapshot():
                self.log.snapshot(Snapshot(entry.id, self.plan, self.assembly.snapshot(), counters))
                self.joiner.tables.forget(pin.tables for pin in self.log.pins())
                self.oldest = self.used
        self.on_progress(self.progress())

    def _observe(self, entry: Entry) -> None:
        """Look at the load again where the groupings are new or batches have come to be of another kind."""
        shards, shape = sum(map(len, entry.partials)) / max(1, entry.facts.rows), self.plan.shape
        if shape != self._seen[0] or not 0.5 <= shards / max(self._seen[1], 1e-9) <= 2:
            load = observed(self.plan, entry.partials, entry.facts.rows)
            if load:
                self.load, self._seen = load, (shape, shards)

    def _deliver(self, entry: EntryId, results: Iterator[ResultChunk]) -> None:
        waiting = [sink for sink in self.sinks if not sink.holds(entry, self.stream.name)]
        chunks: Iterable[tuple[str, pa.Table]] = ((chunk.query, chunk.table) for chunk in results if chunk.table.num_rows)
        if len(waiting) > 1:
            chunks = list(chunks)
        for sink in waiting:
            sink.write(entry, chunks, self.stream.name)

    def _write_dead_letters(self, entry: EntryId, rows: Rows, facts: BatchFacts) -> None:
        """A second pass over the batch, only where it has bad rows. Overwriting under the entry's name makes it repeatable."""
        if (facts.dead or facts.missing) and self.dead_letters:
            attributes = [one for one in self.collecting.attributes if one.name in facts.missing]
            rows.dead_letters(attributes).write.mode("overwrite").json((self.dead_letters / str(entry)).spark_uri)

    def _write_late_rows(self, entry: EntryId, rows: Rows, facts: BatchFacts, pin: Pin) -> None:
        """The same for rows below the punctuation of an attribute, whatever the late policies of the queries make of them."""
        for one in self.collecting.attributes if self.late_rows else ():
            if facts.late.get(str(one)) and self.late_rows:
                place = self.late_rows / f"{entry}-{one.name}"
                rows.late_rows(one, pin.punctuations[str(one)]).write.mode("overwrite").json(place.spark_uri)

    # -- counters ---------------------------------------------------------------------------------------------------------------

    def counters(self) -> dict[str, Any]:
        return {
            "registry": self.used,
            "attributes": self.attributes.record(),
            "totals": asdict(self.totals),
            "queries": {name: dict(vars(life)) for name, life in self.assembly.lives.items()},
            "aggregations": asdict(self.assembly.aggregations),
        }

    def progress(self) -> Progress:
        lives = self.assembly.lives.values()
        seconds = time.monotonic() - self._began
        return Progress(
            stream=self.stream.name,
            entries=self.totals.entries,
            rows=self.totals.rows,
            rows_per_second=(self.totals.rows - self._restored_rows) / max(seconds, 1e-9),
            punctuation=self.attributes.time.punctuation,
            windows_closed=sum(one.windows for one in lives),
            results=sum(one.results for one in lives),
            late=sum(one.late for one in lives),
            dead_lettered=self.totals.dead,
            disorder=self.attributes.counts,
            seconds=seconds,
            slices=self.assembly.slices,
            groups=self.assembly.groups,
        )


def expected_span(last: int, punctuation: int) -> Interval | None:
    """Where the next batch's rows are likely: from the punctuation to as far past the last row as the last row is past that."""
    if last < punctuation or punctuation >= END:
        return None
    return Interval(punctuation, last + max(last - punctuation, 60_000_000))
