"""A job to be killed: reads the clicks there are, one file a batch, closes all windows, and ends.

`python crash_job.py DATA OUT CHECKPOINT before:7` sends SIGKILL to itself and its JVM before the seventh file it publishes (`after:7`:
after it; `late:7`: before it, but not before Spark has committed the batch in hand, if it does so without it); `never:0` runs to the end.
Every step of the commit protocol, sinks included, publishes by `os.replace` or by a commit to a table, so these are all the moments between
two of its writes. A fifth argument names the pipeline, a sixth what results become: `files` or `tables`.
"""

from __future__ import annotations

import itertools
import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pyspark import SparkContext

from muntin import Engine, FileSink, Layout, Pace, TableSink, Trigger, session
from muntin.errors import CheckpointError
from muntin.spark import slicelog, timers
from muntin.spark.sinks.base import Sink
from muntin.spark.sinks.deltatable import ResultTable
from muntin.timeline import SECOND

NEW_YEAR = 1_704_067_200 * SECOND  #: 2024

STREAM = """CREATE STREAM clicks (ts TIMESTAMP, user STRING, n BIGINT, x DOUBLE)
  WITH (source = 'files', format = 'json', path = '{path}', time = 'ts', slack = '5 seconds', max_files_per_trigger = '1'{more});
"""
SLIDING = """
CREATE QUERY by_user AS
  SELECT user, count(*) AS clicks, sum(n) AS n, max(n) AS top FROM clicks [RANGE 60 seconds SLIDE 20 seconds] GROUP BY user;
CREATE QUERY total AS SELECT sum(n) AS n, sum(x) AS x, stddev(x) AS spread FROM clicks [RANGE 25 seconds SLIDE 10 seconds];
CREATE QUERY corrected AS
  SELECT user, count(*) AS clicks, max(x) AS top FROM clicks [RANGE 30 seconds SLIDE 10 seconds] GROUP BY user
  EMIT EVERY '2 seconds' LATE REEMIT FOR '30 seconds';
CREATE QUERY silence AS SELECT count(*) AS c FROM clicks [RANGE 7 seconds SLIDE 7 seconds] EMIT EMPTY;
"""
#: Windows over rows of the stream and of each user; each user is a sub-stream, whose windows close by themselves.
ROWS = """
CREATE QUERY by_itself AS SELECT user, count(*) AS c, sum(n) AS n FROM clicks [RANGE 20 seconds SLIDE 10 seconds] GROUP BY user;
CREATE QUERY rows AS SELECT count(*) AS c, sum(n) AS n FROM clicks [RANGE 20 rows SLIDE 7 rows WATTR row_num] WHERE n > 2;
CREATE QUERY rows_of_user AS SELECT user, sum(n) AS n, max(n) AS top FROM clicks [RANGE 10 rows SLIDE 4 rows WATTR row_num PATTR user];
"""
#: Landmark windows, and windows that end at tuples.
TUPLES = """
CREATE QUERY landmark AS
  SELECT user, count(*) AS c, max(n) AS top FROM clicks [RANGE UNBOUNDED SLIDE 15 seconds LANDMARK 60 seconds WATTR ts] GROUP BY user;
CREATE QUERY endless AS SELECT count(*) AS c, sum(n) AS n FROM clicks [RANGE UNBOUNDED SLIDE 20 seconds WATTR ts];
CREATE QUERY tuples AS SELECT count(*) AS c, max(n) AS top FROM clicks [RANGE 20 seconds RATTR ts SLIDE 1 row SATTR row_num];
CREATE QUERY tuples_of_user AS SELECT user, sum(n) AS n FROM clicks [RANGE 30 seconds RATTR ts SLIDE 3 rows SATTR row_num PATTR user];
CREATE QUERY ranks AS SELECT count(*) AS c FROM clicks [RANGE 15 seconds RATTR ts SLIDE 4 rows SATTR rank(ts)];
"""
PIPELINES = {"sliding": (SLIDING, ""), "rows": (ROWS, ", substreams = 'user'"), "tuples": (TUPLES, ", substreams = 'user'")}


def killing(when: str, number: int, checkpoint: Path) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Ways to publish, counted together, that die at a moment."""
    published = itertools.count(1)

    def counted(publish: Callable[..., None]) -> Callable[..., None]:
        def publish_or_die(*arguments: Any, **options: Any) -> None:
            this = next(published)
            if (when, number) == ("late", this):
                wait_for_spark(checkpoint / "clicks")
            if number == this and when in ("before", "late"):
                die(checkpoint)
            publish(*arguments, **options)
            if (when, number) == ("after", this):
                die(checkpoint)

        return publish_or_die

    return counted


def die(checkpoint: Path) -> None:
    assert SparkContext._gateway is not None
    jvm = SparkContext._gateway.proc.pid
    stop_between_batches(checkpoint, lambda what: os.kill(jvm, what))
    os.killpg(0, signal.SIGKILL)


def stop_between_batches(checkpoint: Path, send: Callable[[int], None]) -> None:
    """Stop Spark, but not while its source has noted files and Spark not yet the batch they are for: the next run would take these files
    and the next ones as one batch, and rows that were late would not be.
    """
    send(signal.SIGSTOP)
    time.sleep(0.02)
    while newest(checkpoint / "clicks/spark/sources/0") > newest(checkpoint / "clicks/spark/offsets"):
        send(signal.SIGCONT)
        time.sleep(0.005)
        send(signal.SIGSTOP)
        time.sleep(0.02)


def newest(directory: Path) -> int:
    names = [path.name for path in directory.iterdir()] if directory.exists() else []
    return max((int(name) for name in names if name.isdecimal()), default=-1)


def wait_for_spark(checkpoint: Path) -> None:
    """Until Spark has committed the batch that was begun last; three seconds, if it waits for us."""
    batch, deadline = max(int(pin.name.partition(".")[0]) for pin in (checkpoint / "pins").glob("[0-9]*")), time.monotonic() + 3
    while not (checkpoint / "spark/commits" / str(batch)).exists() and time.monotonic() < deadline:
        time.sleep(0.01)


def pipeline(name: str, data: Path) -> str:
    queries, more = PIPELINES[name]
    return STREAM.format(path=data, more=more) + queries


def main(data: Path, out: Path, checkpoint: Path, kill: str, name: str = "sliding", sink: str = "files") -> None:
    when, _, number = kill.partition(":")
    slicelog.MOST_ENTRIES = 3  # so that snapshots are among the moments
    timers.TIMER_SECONDS = 3600  # no entries but those of batches, however slow the machine is
    engine = Engine(session(**{"spark.master": "local[2]"}))
    engine.execute(pipeline(name, data))
    with_clock(engine)
    counted = killing(when, int(number), checkpoint)
    os.replace = counted(os.replace)
    ResultTable.append = counted(ResultTable.append)  # type: ignore[method-assign]
    letters = out.with_name(f"{out.name}_letters")
    try:
        run(engine, TableSink(out) if sink == "tables" else FileSink(out, "jsonl", Layout.PARTS), checkpoint, letters)
    except CheckpointError as error:  # killed while closing: the resumed run has finished that, and there is nothing to go on with
        if "closed with --final" not in str(error):
            raise
    engine.spark.stop()


def with_clock(engine: Engine) -> None:
    """A clock that goes on with the batches, so that early results come with the same ones in every run."""
    started = engine._job

    def job_with_clock(*arguments: Any) -> Any:
        job = started(*arguments)
        job.clock = lambda: NEW_YEAR + (job.last.batch + 1) * SECOND
        return job

    engine._job = job_with_clock  # type: ignore[method-assign]


def run(engine: Engine, sink: Sink, checkpoint: Path, letters: Path) -> None:
    job = engine.start(sink, checkpoint=checkpoint, trigger=Trigger(Pace.AVAILABLE_NOW), dead_letters=letters)
    job.wait(final=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), Path(sys.argv[3]), *sys.argv[4:])
