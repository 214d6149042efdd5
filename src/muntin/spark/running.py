"""A running job: Spark's streaming queries, watched and stopped cleanly.

In: a streaming DataFrame and the job that takes its batches. Out: a `RunningJob` to wait for, look at and stop.
Convention: stopping waits for the batch in hand, so that nothing is computed twice; an error inside a batch is raised as itself, not
as Spark's wrapping of it.
"""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery

from muntin.errors import Refusal, StoreError
from muntin.query.model import Query
from muntin.query.registry import Registry
from muntin.spark.job import StreamJob
from muntin.spark.place import Place
from muntin.spark.progress import Progress
from muntin.spark.recovery import check_counted
from muntin.spark.sinks.base import Sink
from muntin.timeline import Duration

#: How often the state of a running query is looked at.
GLANCE_SECONDS = 0.1


class Pace(Enum):
    CONTINUOUS = "continuous"  # the next batch as soon as there is something new
    AVAILABLE_NOW = "available now"  # what is there, then end


@dataclass(frozen=True)
class Trigger:
    """When batches start; `every` is a duration such as `10 seconds`, or empty for as soon as possible."""

    pace: Pace = Pace.CONTINUOUS
    every: str = ""


AS_SOON_AS_POSSIBLE = Trigger()


def start_query(frame: DataFrame, job: StreamJob, trigger: Trigger) -> StreamingQuery:
    if job.checkpoint:
        where = job.checkpoint.spark_directory
    else:
        job.temporary = Path(tempfile.mkdtemp(prefix="muntin-"))
        where = Place.of(job.temporary)
    stream = frame.writeStream.foreachBatch(job.process).queryName(f"muntin {job.stream.name}")
    writer = stream.option("checkpointLocation", where.spark_uri)
    if trigger.pace is Pace.AVAILABLE_NOW:
        writer = writer.trigger(availableNow=True)
    elif trigger.every:
        writer = writer.trigger(processingTime=f"{Duration.parse(trigger.every).micros // 1000} milliseconds")
    try:
        return writer.start()
    except Exception as error:
        if where.local is None and "CHECKPOINT_FILE_MANAGER" in str(error):
            raise _unreachable(where, error) from error
        raise


def _unreachable(where: Place, error: Exception) -> StoreError:
    causes = [line.strip() for line in str(error).splitlines() if line.startswith("Caused by:")]
    return StoreError(
        "Spark reaches the checkpoint too, through Hadoop's file systems",
        values=f"{where.spark_uri}: {causes[-1].removeprefix('Caused by: ') if causes else error}",
        way_out="give Spark the connector and its settings (--conf spark.jars.packages=…, --conf spark.hadoop.fs.…)",
    )


class RunningJob:
    """The streaming queries of one `Engine.start`, one per stream."""

    def __init__(
        self,
        jobs: Mapping[str, StreamJob],
        queries: Mapping[str, StreamingQuery],
        sinks: Sequence[Sink],
        *,
        on_glance: Callable[[], None] = lambda: None,
        on_end: Callable[[], None] = lambda: None,
    ) -> None:
        self.jobs = jobs
        self.queries = queries
        self.sinks = sinks
        self.effect = ""  #: from when on the latest change is in effect
        self._on_glance, self._on_end = on_glance, on_end
        self._closed = False

    def change(self, registry: Registry, new: Query | None, put: Callable[[], None]) -> None:
        """Go on with another version of the registry, from the next batch that begins on; `put` makes it durable. One change at a time.

        Batches in hand are not waited for, but where a query counts rows: it has to be known whether any came uncounted.
        """
        with ExitStack() as held:
            if new is not None:
                job = self._reading(new)
                if new.counts_rows:
                    held.enter_context(job.gate)
                    check_counted(job.attributes, [new])
                with job.turn:
                    job.joiner.tables.check(join.table for join in new.joins)
                for sink in self.sinks:
                    sink.admit(new)
            put()
            for job in self.jobs.values():
                held.enter_context(job.turn)
            for job in self.jobs.values():
                job.version = registry.version
            batches = ", ".join(f"batch {job.next_to_pin} of {name}" for name, job in self.jobs.items())
            self.effect = f"in effect from {batches} on (version {registry.version})"

    def _reading(self, new: Query) -> StreamJob:
        """The job that reads the stream of a query that joins."""
        job = self.jobs.get(new.stream.lower())
        if job is None:
            raise Refusal(
                "a query joins a stream that the running job reads",
                values=f"{new.name} reads {new.stream}, the job reads {', '.join(self.jobs)}",
                way_out="stop the job, add the query to the pipeline and start again",
            )
        if new.counts_rows and not job.numbered:
            raise Refusal(
                "rows are numbered from the start of a run on",
                values=f"{new.name} counts rows, and no query did when the job began",
                way_out="stop the job, add the query to the pipeline and start again",
            )
        return job

    @property
    def active(self) -> bool:
        """Whether batches may come, or something is left of the last one."""
        return any(query.isActive for query in self.queries.values()) or any(job.gate.locked() for job in self.jobs.values())

    def wait(self, seconds: float | None = None, *, final: bool = False) -> bool:
        """Until every query ended, or the time is up; says whether they ended. Raises what a batch raised.

        Once they ended, `final` closes every open window; then sinks and checkpoints are released.
        """
        deadline = None if seconds is None else time.monotonic() + seconds
        while self.active and (deadline is None or time.monotonic() < deadline):
            self._raise_failure()
            self._on_glance()
            for job in self.jobs.values():
                job.tick()
            time.sleep(GLANCE_SECONDS)
        ended = not self.active
        if ended:
            self._settle()
        self._raise_failure()
        if ended:
            self._end(final=final)
        return ended

    def stop(self, *, final: bool = False) -> None:
        """Finish the batch in hand and stop; `final` closes every open window."""
        for name, query in self.queries.items():
            self.jobs[name].stop()
            query.stop()
        self._settle()
        self._raise_failure()
        self._end(final=final)

    def _end(self, *, final: bool) -> None:
        if self._closed:
            if final:
                raise Refusal(
                    "open windows are closed while the job is still held", way_out="call wait(final=True) or stop(final=True) first"
                )
            return
        try:
            for job in self.jobs.values() if final else ():
                job.close()
        except BaseException:
            self._release(failed=True)
            raise
        self._release(failed=False)

    def progress(self) -> Mapping[str, Progress]:
        return {name: job.progress() for name, job in self.jobs.items()}

    @property
    def stopped(self) -> dict[str, str]:
        """Queries that stopped on their data, with the error of each."""
        return {name: reason for job in self.jobs.values() for name, reason in job.assembly.stopped.items()}

    def _settle(self) -> None:
        """Wait for the last batch of each stream: Spark is done with it before its results are written."""
        for job in self.jobs.values():
            job.settle()

    def _raise_failure(self) -> None:
        for name, query in self.queries.items():
            problem = self.jobs[name].failure or (None if self.jobs[name].stopping else query.exception())
            if problem is not None:
                self._release(failed=True)
                raise problem

    def _release(self, *, failed: bool) -> None:
        if self._closed:
            return
        self._closed = True
        for query in self.queries.values():
            query.stop()
        self._settle()
        late = None if failed else next((job.failure for job in self.jobs.values() if job.failure is not None), None)
        for sink in self.sinks:
            if failed or late is not None:
                sink.abandon()
            else:
                sink.close()
        for job in self.jobs.values():
            job.joiner.release()
            job.release()
            if job.checkpoint:
                job.checkpoint.close()
            elif job.temporary:
                shutil.rmtree(job.temporary, ignore_errors=True)
        self._on_end()
        if late is not None:
            raise late
