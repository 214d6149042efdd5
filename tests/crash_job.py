"""A job to be killed: reads the clicks there are, one file a batch, closes all windows, and ends.

`python crash_job.py DATA OUT CHECKPOINT before:7` sends itself SIGKILL before the seventh file it publishes (`after:7`: after it);
`never:0` runs to the end. Every step of the commit protocol, sinks included, publishes by `os.replace`, so these are all the moments
between two of its writes.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from muntin import Engine, FileSink, Layout, Pace, Trigger, session
from muntin.errors import CheckpointError
from muntin.spark import slicelog
from muntin.timeline import SECOND

NEW_YEAR = 1_704_067_200 * SECOND  #: 2024

PIPELINE = """
CREATE STREAM clicks (ts TIMESTAMP, user STRING, n BIGINT, x DOUBLE)
  WITH (source = 'files', format = 'json', path = '{path}', time = 'ts', slack = '5 seconds', max_files_per_trigger = '1');
CREATE QUERY by_user AS
  SELECT user, count(*) AS clicks, sum(n) AS n, max(n) AS top FROM clicks [RANGE 60 seconds SLIDE 20 seconds] GROUP BY user;
CREATE QUERY total AS SELECT sum(n) AS n, sum(x) AS x, stddev(x) AS spread FROM clicks [RANGE 25 seconds SLIDE 10 seconds];
CREATE QUERY corrected AS
  SELECT user, count(*) AS clicks, max(x) AS top FROM clicks [RANGE 30 seconds SLIDE 10 seconds] GROUP BY user
  EMIT EVERY '2 seconds' LATE REEMIT FOR '30 seconds';
CREATE QUERY silence AS SELECT count(*) AS c FROM clicks [RANGE 7 seconds SLIDE 7 seconds] EMIT EMPTY;
"""


def killing(replace: Callable[..., None], when: str, number: int) -> Callable[..., None]:
    published = 0

    def replace_or_die(source: Any, target: Any, **options: Any) -> None:
        nonlocal published
        published += 1
        if (when, number) == ("before", published):
            os.kill(os.getpid(), signal.SIGKILL)
        replace(source, target, **options)
        if (when, number) == ("after", published):
            os.kill(os.getpid(), signal.SIGKILL)

    return replace_or_die


def main(data: Path, out: Path, checkpoint: Path, kill: str) -> None:
    when, _, number = kill.partition(":")
    slicelog.MOST_ENTRIES = 3  # so that snapshots are among the moments
    engine = Engine(session(**{"spark.master": "local[2]"}))
    engine.execute(PIPELINE.format(path=data))
    with_clock(engine)
    os.replace = killing(os.replace, when, int(number))
    letters = out.with_name(f"{out.name}_letters")
    try:
        run(engine, out, checkpoint, letters)
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


def run(engine: Engine, out: Path, checkpoint: Path, letters: Path) -> None:
    job = engine.start(
        FileSink(out, "jsonl", Layout.PARTS), checkpoint=checkpoint, trigger=Trigger(Pace.AVAILABLE_NOW), dead_letters=letters
    )
    job.wait(final=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), Path(sys.argv[3]), sys.argv[4])
