"""One stream's job: micro-batches in, results out, exactly once.

In: the rows of each batch from `foreachBatch`. Out: results at the sinks, and an entry in the slice log.
Convention, for entry N: pin what the result depends on; compute the partials, or read them if N is already in the log; step the
assembly; write the results under N; mark N done. Whatever of this a crash cut short is done again with the same outcome.
Paper: the pane-level query runs in Spark, the window-level query here (panes-2005, section 3.1).
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame

from muntin.disorder import Slack
from muntin.errors import CheckpointError
from muntin.plan.shared import SharedPlan
from muntin.query.model import StreamDefinition
from muntin.spark.checkpoint import Checkpoint
from muntin.spark.partials import BatchFacts, PartialAggregation, collect, span_of
from muntin.spark.progress import Progress
from muntin.spark.rows import Rows
from muntin.spark.sinks.base import EntryId, Sink
from muntin.spark.slicelog import Entry, EntryKind, Pin, SliceLog, Snapshot
from muntin.timeline import BEGINNING, END, Interval
from muntin.windows.assembly import Aggregations, Assembly, QueryCounts
from muntin.windows.closing import ResultChunk

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
    """The state of a running stream. `process` is what `foreachBatch` calls."""

    stream: StreamDefinition
    plan: SharedPlan
    sinks: Sequence[Sink]
    checkpoint: Checkpoint | None = None
    dead_letters: Path | None = None
    clock: Callable[[], int] = wall_clock
    on_progress: Callable[[Progress], None] = lambda _: None
    totals: Totals = field(default_factory=Totals)

    def __post_init__(self) -> None:
        self.assembly = Assembly(self.plan)
        self.aggregations = [PartialAggregation(self.stream, grouping) for grouping in self.plan.groupings]
        self.disorder = Slack(self.stream.slack.micros)
        self.log = SliceLog(self.checkpoint.directory, self.plan) if self.checkpoint else None
        self.last = EntryId(-1)
        self.gate = threading.Lock()
        self.stopping = False
        self.failure: BaseException | None = None
        self._span: Interval | None = None
        self._began = time.monotonic()
        if self.log:
            self._recover(self.log)

    # -- recovery ---------------------------------------------------------------------------------------------------------------

    def _recover(self, log: SliceLog) -> None:
        """Load the newest snapshot and go over the entries after it, without writing their results again."""
        snapshot, entries, counters = log.recover()
        self._check_spark_checkpoint(log)
        if snapshot:
            self._restore_counters(snapshot.counters)
            self.assembly.restore(snapshot.partials, int(snapshot.counters["punctuation"]))
            self.last = snapshot.id
        for entry in entries:
            for _ in self._step(entry):
                pass
            self.last = entry.id
        self._check_not_behind()
        unfinished = log.unfinished_timer(self.last)
        if unfinished:
            self._finish(unfinished)
        if counters.get("final") or (unfinished and unfinished.kind is EntryKind.CLOSING):
            raise CheckpointError(
                "a run that was closed with --final has no windows left to go on with",
                values=f"{self.checkpoint.directory if self.checkpoint else ''}",
                way_out="start with a new checkpoint and a new output directory",
            )

    def _check_not_behind(self) -> None:
        committed = self.checkpoint.spark_committed() if self.checkpoint else -1
        if committed > self.last.batch:
            raise CheckpointError(
                "every batch that Spark has committed is in the slice log",
                values=f"Spark has committed batch {committed}, the slice log ends with {self.last}",
                way_out="restore the checkpoint directory from a copy, or start with a new checkpoint and a new output directory",
            )

    def _check_spark_checkpoint(self, log: SliceLog) -> None:
        pin, query = log.newest_pin(), self.checkpoint.spark_query() if self.checkpoint else None
        if pin and query != pin.spark_query:
            raise CheckpointError(
                "a slice log goes on with the Spark checkpoint it was written beside",
                values=f"the log has entries of Spark query {pin.spark_query}, the Spark checkpoint is {query or 'missing'}",
                way_out="restore the directory `spark` of the checkpoint, or start with a new checkpoint and a new output directory",
            )

    # -- one entry --------------------------------------------------------------------------------------------------------------

    def process(self, frame: DataFrame, batch: int) -> None:
        """Take one micro-batch. Spark may bring the last one again, which is then skipped; any other that is not the next is refused."""
        entry = EntryId(batch)
        with self.gate:
            if self.stopping:
                raise Stopping
            try:
                if batch != self.last.batch:
                    self._check_next(entry)
                    self._finish(self._logged(entry, frame))
            except BaseException as failure:
                self.failure = failure
                raise

    def _check_next(self, entry: EntryId) -> None:
        if entry != self.last.next_batch():
            raise CheckpointError(
                "entries of the slice log follow each other",
                values=f"Spark goes on with batch {entry.batch}, the slice log ends with {self.last}",
                way_out="restore the checkpoint directory from a copy, or start with a new checkpoint and a new output directory",
            )

    def process_all(self, frame: DataFrame) -> None:
        """Bounded input in one go: nothing is late and every window closes."""
        rows = Rows(frame, self.stream, self._limit())
        partials, facts = collect(self.aggregations, rows, span_of(rows, self.aggregations))
        self._write_dead_letters(EntryId(0), rows, facts)
        self._finish(Entry(EntryId(0), partials, facts, EntryKind.CLOSING))

    def close(self) -> None:
        """The closing entry: the input has ended, every open window closes."""
        nothing = [store.nothing() for store in self.assembly.stores]
        closing = Entry(self.last.next_timer(), nothing, NO_ROWS, EntryKind.CLOSING)
        if self.log:
            self._check_nothing_begun(self.log)
            self.log.append(closing)
        self._finish(closing)

    def _check_nothing_begun(self, log: SliceLog) -> None:
        begun = log.newest_pinned()
        if begun is not None and begun > self.last:
            raise CheckpointError(
                "windows are closed for good when every batch that was begun is finished",
                values=f"batch {begun} was begun, the slice log ends with {self.last}",
                way_out="run once more with --once, and --final if all windows are to close",
            )

    def _logged(self, entry: EntryId, frame: DataFrame) -> Entry:
        pin = self._pinned(entry)
        logged = self.log.read(entry) if self.log else None
        if logged is None:
            rows = Rows(frame, self.stream, pin.limit)
            partials, facts = collect(self.aggregations, rows, self._span)
            self._write_dead_letters(entry, rows, facts)
            logged = Entry(entry, partials, facts)
            if self.log:
                self.log.append(logged)
        return logged

    def _pinned(self, entry: EntryId) -> Pin:
        pinned = self.log.pinned(entry) if self.log else None
        if pinned:
            return pinned
        query = (self.checkpoint.spark_query() if self.checkpoint else None) or ""
        strategy = f"{self.plan.sharing.value} {self.plan.slicing.value}"
        pin = Pin(registry=1, punctuation=self.assembly.punctuation, limit=self._limit(), spark_query=query, strategy=strategy)
        if self.log:
            self.log.pin(entry, pin)
        return pin

    def _limit(self) -> int:
        """The latest instant that is not too far ahead: `max_ahead` beyond both the highest punctuation and the clock."""
        return max(self.assembly.punctuation, self.clock()) + self.stream.max_ahead.micros

    def _step(self, entry: Entry) -> Iterator[ResultChunk]:
        self.totals.rows += entry.facts.rows
        self.totals.dead += entry.facts.dead
        self.totals.entries += 1
        self.assembly.aggregations.partial += (entry.facts.rows - entry.facts.dead) * len(self.plan.groupings)
        punctuation = END if entry.kind is EntryKind.CLOSING else self.disorder.punctuation(entry.facts.last)
        yield from self.assembly.step(entry.partials, punctuation)

    def _finish(self, entry: Entry) -> None:
        results = self._step(entry)
        self._deliver(entry.id, results)
        for _ in results:  # a sink that already holds the entry did not pull them
            pass
        self.last = entry.id
        self._span = expected_span(entry.facts, self.assembly.punctuation)
        if self.log:
            counters = self.counters() | {"final": entry.kind is EntryKind.CLOSING}
            self.log.done(entry.id, counters)
            if self.log.wants_snapshot():
                self.log.snapshot(Snapshot(entry.id, self.assembly.snapshot(), counters))
        self.on_progress(self.progress())

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
            rows.dead_letters().write.mode("overwrite").json(str(self.dead_letters / str(entry)))

    # -- counters ---------------------------------------------------------------------------------------------------------------

    def counters(self) -> dict[str, Any]:
        return {
            "punctuation": self.assembly.punctuation,
            "latest": self.assembly.latest,
            "totals": asdict(self.totals),
            "queries": {name: asdict(counts) for name, counts in self.assembly.counts.items()},
            "aggregations": asdict(self.assembly.aggregations),
            "begun": sorted(name for closer in self.assembly.closers for name in closer.begun),
        }

    def _restore_counters(self, counters: Mapping[str, Any]) -> None:
        self.totals = Totals(**counters["totals"])
        self.assembly.latest = int(counters["latest"])
        self.assembly.counts.update({name: QueryCounts(**counts) for name, counts in counters["queries"].items()})
        self.assembly.aggregations = Aggregations(**counters["aggregations"])
        for closer in self.assembly.closers:
            closer.begun |= set(counters["begun"]) & {plan.query.name for plan in closer.plans}

    def progress(self) -> Progress:
        counts = self.assembly.counts.values()
        seconds = time.monotonic() - self._began
        return Progress(
            entries=self.totals.entries,
            rows=self.totals.rows,
            rows_per_second=self.totals.rows / max(seconds, 1e-9),
            punctuation=self.assembly.punctuation,
            windows_closed=sum(one.windows for one in counts),
            results=sum(one.results for one in counts),
            late=sum(one.late for one in counts),
            dead_lettered=self.totals.dead,
            seconds=seconds,
            slices=sum(len(store.starts) for store in self.assembly.stores),
            groups=sum(len(store.fragments.groups) for store in self.assembly.stores),
        )


def expected_span(facts: BatchFacts, punctuation: int) -> Interval | None:
    """Where the next batch's rows are likely: from the punctuation to as far past the last row as the last row is past that."""
    if facts.last < punctuation or punctuation >= END:
        return None
    return Interval(punctuation, facts.last + max(facts.last - punctuation, 60_000_000))
