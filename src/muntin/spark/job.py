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
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame

from muntin.disorder import Slack
from muntin.plan.load import FIRST_LOAD, Load
from muntin.plan.planner import Planner, division_names
from muntin.plan.shared import SharedPlan
from muntin.query.model import StreamDefinition
from muntin.spark.checkpoint import Checkpoint
from muntin.spark.collecting import Collecting, Joining
from muntin.spark.entries import Entry, EntryKind, Pin, Snapshot
from muntin.spark.joining import Joiner
from muntin.spark.partials import BatchFacts
from muntin.spark.place import Place
from muntin.spark.progress import Progress
from muntin.spark.recovery import check_next, check_not_behind, check_nothing_begun, check_open, check_same_spark_checkpoint
from muntin.spark.rows import Rows
from muntin.spark.sinks.base import EntryId, Sink
from muntin.spark.slicelog import SliceLog
from muntin.timeline import BEGINNING, END, Interval
from muntin.windows.assembly import Aggregations, Assembly
from muntin.windows.closing import ResultChunk
from muntin.windows.life import QueryLife
from muntin.windows.observing import observed
from muntin.windows.shards import grouping_layout
from muntin.windows.snapshots import restore, snapshot

#: What a closing entry says about its rows: there are none.
NO_ROWS = BatchFacts(rows=0, last=BEGINNING, dead=0)


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
    clock: Callable[[], int] = wall_clock
    on_progress: Callable[[Progress], None] = lambda _: None
    totals: Totals = field(default_factory=Totals)
    load: Load = FIRST_LOAD

    def __post_init__(self) -> None:
        self.used = self.oldest = self.version
        self.assembly = Assembly(self.planner.choose(self.version, self.load))
        self.collecting = Collecting(self.stream, self.assembly.plan)
        self.disorder = Slack(self.stream.slack.micros)
        self.log = SliceLog(self.checkpoint.directory, self.planner, self.checkpoint.check_owned) if self.checkpoint else None
        self.last = EntryId(-1)
        self.temporary: Path | None = None  #: Spark's checkpoint, where the job has none
        self.gate = threading.Lock()
        self.stopping = False
        self.failure: BaseException | None = None
        self._span: Interval | None = None
        self._seen: tuple[object, float] = None, 0.0
        self._began = time.monotonic()
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
        unfinished = log.unfinished_timer(self.last)
        if unfinished:
            self._finish(unfinished)
        check_open(self.checkpoint, closed=counters.get("final") or (unfinished and unfinished.kind is EntryKind.CLOSING))

    def _restore(self, found: Snapshot) -> None:
        counters = found.counters
        lives = {name: QueryLife(**life) for name, life in counters["queries"].items()}
        self.assembly = Assembly(found.plan, latest=int(counters["latest"]), lives=lives)
        self.assembly.aggregations = Aggregations(**counters["aggregations"])
        restore(self.assembly, found.holdings, int(counters["punctuation"]))
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
        rows = Rows(frame, self.stream, pin.limit)
        partials, facts = self.collecting(rows, self.collecting.span_of(rows), self._joining(pin))
        self._write_dead_letters(entry, rows, facts)
        self._finish(Entry(entry, pin, partials, facts, EntryKind.CLOSING))

    def close(self) -> None:
        """The closing entry: the input has ended, every open window closes."""
        pin = self._new_pin()
        nothing = [grouping_layout(grouping).empty() for grouping in self.planner.named(pin.registry, pin.division).groupings]
        closing = Entry(self.last.next_timer(), pin, nothing, NO_ROWS, EntryKind.CLOSING)
        if self.log:
            check_nothing_begun(self.log.newest_pinned(), self.last)
            self.log.append(closing)
        self._finish(closing)

    def _logged(self, entry: EntryId, frame: DataFrame) -> Entry:
        pin = self._pinned(entry)
        logged = self.log.read(entry) if self.log else None
        if logged is None:
            plan = self.planner.named(pin.registry, pin.division)
            if plan is not self.collecting.plan:
                self.collecting = Collecting(self.stream, plan)
            rows = Rows(frame, self.stream, pin.limit)
            partials, facts = self.collecting(rows, self._span, self._joining(pin))
            self._write_dead_letters(entry, rows, facts)
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
        return Pin(self.version, self.assembly.punctuation, self._limit(), query, division_names(plan), tables)

    def _joining(self, pin: Pin) -> Joining:
        return lambda rows, joins: self.joiner.rows(rows, joins, pin.tables)

    def _limit(self) -> int:
        """The latest instant that is not too far ahead: `max_ahead` beyond both the highest punctuation and the clock."""
        return max(self.assembly.punctuation, self.clock()) + self.stream.max_ahead.micros

    def _step(self, entry: Entry) -> Iterator[ResultChunk]:
        plan = self.planner.named(entry.pin.registry, entry.pin.division)
        if plan is not self.plan:
            self.assembly.use(plan)
        self.used = entry.pin.registry
        self.totals.rows += entry.facts.rows
        self.totals.dead += entry.facts.dead
        self.totals.entries += 1
        self.assembly.aggregations.partial += (entry.facts.rows - entry.facts.dead) * len(plan.groupings)
        punctuation = END if entry.kind is EntryKind.CLOSING else self.disorder.punctuation(entry.facts.last)
        yield from self.assembly.step(entry.partials, punctuation, entry.facts.last)

    def _finish(self, entry: Entry) -> None:
        results = self._step(entry)
        self._deliver(entry.id, results)
        for _ in results:  # a sink that already holds the entry did not pull them
            pass
        self.last = entry.id
        self._span = expected_span(entry.facts, self.assembly.punctuation)
        self._observe(entry)
        if self.log:
            counters = self.counters() | {"final": entry.kind is EntryKind.CLOSING}
            self.log.done(entry.id, counters)
            if self.log.wants_snapshot():
                self.log.snapshot(Snapshot(entry.id, self.plan, snapshot(self.assembly), counters))
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
        if facts.dead and self.dead_letters:
            rows.dead_letters().write.mode("overwrite").json((self.dead_letters / str(entry)).spark_uri)

    # -- counters ---------------------------------------------------------------------------------------------------------------

    def counters(self) -> dict[str, Any]:
        return {
            "registry": self.used,
            "punctuation": self.assembly.punctuation,
            "latest": self.assembly.latest,
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
            punctuation=self.assembly.punctuation,
            windows_closed=sum(one.windows for one in lives),
            results=sum(one.results for one in lives),
            late=sum(one.late for one in lives),
            dead_lettered=self.totals.dead,
            seconds=seconds,
            slices=self.assembly.slices,
            groups=self.assembly.groups,
        )


def expected_span(facts: BatchFacts, punctuation: int) -> Interval | None:
    """Where the next batch's rows are likely: from the punctuation to as far past the last row as the last row is past that."""
    if facts.last < punctuation or punctuation >= END:
        return None
    return Interval(punctuation, facts.last + max(facts.last - punctuation, 60_000_000))
