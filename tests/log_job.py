"""A job without Spark's engine, to be killed: the commit protocol of `StreamJob` over a slice log, a sink and a registry.

`python log_job.py CHECKPOINT OUT REPORT FIRST STEP` kills a run with SIGKILL at a moment, lets another one go on to the end, and does so
for the moments FIRST, FIRST + STEP, … until a run is not killed any more. A moment is just before, in the midst of, or just after a write
or a deletion on the store. The results of every pair of runs go to REPORT, the undisturbed run's first. Each run is a fork of this
process, which itself touches no store.
"""

from __future__ import annotations

import itertools
import json
import os
import random
import signal
import sys
import traceback
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from cases import python_partials
from muntin.aggregates import AGGREGATES
from muntin.disorder import Seen
from muntin.errors import CheckpointError
from muntin.plan.planner import Planner
from muntin.query.check import check_pipeline
from muntin.spark import claims, slicelog
from muntin.spark.checkpoint import Checkpoint
from muntin.spark.entries import Entry
from muntin.spark.facts import BatchFacts
from muntin.spark.job import StreamJob
from muntin.spark.joining import Joiner
from muntin.spark.place import Place
from muntin.spark.sharedstore import SharedStore
from muntin.spark.sinks.base import EntryId
from muntin.spark.sinks.files import FileSink, Layout
from muntin.spark.stores import LocalStore
from muntin.spark.tables import Tables
from muntin.timeline import instant_of
from storage import place_at

PIPELINE = """
CREATE STREAM clicks (ts TIMESTAMP, user STRING, n BIGINT)
  WITH (source = 'files', format = 'json', path = 'x', time = 'ts', slack = '5 seconds');
CREATE QUERY by_user AS SELECT user, count(*) AS c, sum(n) AS n FROM clicks [RANGE 60 seconds SLIDE 20 seconds] GROUP BY user;
CREATE QUERY total AS SELECT sum(n) AS n, max(n) AS top FROM clicks [RANGE 25 seconds SLIDE 10 seconds];
"""
BATCHES = 5
START = datetime(2024, 1, 1, tzinfo=UTC)
FLAWLESS = 10**6


def batch(number: int) -> list[dict[str, Any]]:
    chance = random.Random(number)
    seconds = [number * 25 + chance.randint(0, 28) for _ in range(8)]
    return [{"ts": START + timedelta(seconds=second), "user": chance.choice("ab"), "n": chance.randint(1, 9)} for second in seconds]


def job_on(checkpoint: Checkpoint, sink: FileSink) -> StreamJob:
    pipeline = check_pipeline(PIPELINE, AGGREGATES)
    queries = sorted(pipeline.queries, key=lambda query: query.name)
    sink.open(checkpoint.run, queries)
    tables = Tables(None, {}, None)  # type: ignore[arg-type] # no query joins one
    return StreamJob(pipeline.streams[0], Planner(lambda _: queries, AGGREGATES), Joiner(tables), 1, [sink], checkpoint)


def run(checkpoint: Place, out: Place) -> None:
    """What `foreachBatch` would bring, batch after batch, then the closing entry."""
    with closing(Checkpoint(checkpoint, "a pipeline")) as held, FileSink(out, "jsonl", Layout.PARTS) as sink:
        if not (held.spark_directory / "metadata").exists():
            (held.spark_directory / "metadata").write(b'{"id": "spark"}')
        job = job_on(held, sink)
        for number in range(job.last.batch + 1, BATCHES):
            take(job, number)
        job.close()


def take(job: StreamJob, number: int) -> None:
    assert job.log is not None
    pin, rows = job._pinned(EntryId(number)), batch(number)
    entry = job.log.read(EntryId(number))
    if entry is None:
        plan = job.planner.named(pin.registry, pin.division)
        ticks = [instant_of(row["ts"]) for row in rows]
        facts = BatchFacts(rows=len(rows), seen={"ts": {(): Seen(len(rows), min(ticks), max(ticks))}})
        entry = Entry(EntryId(number), pin, [python_partials(rows, grouping) for grouping in plan.groupings], facts)
        job.log.append(entry)
    job._finish(entry)


def results(out: Place) -> dict[str, list[str]]:
    parts = {name: [(out / name / part).read() for part in (out / name).files()] for name in ("by_user", "total")}
    return {name: b"".join(texts).decode().splitlines() for name, texts in parts.items()}


class Killer:
    """Counts moments, and ends the process at one of them."""

    def __init__(self, moment: int) -> None:
        self.moment, self.passed = moment, 0

    def __call__(self) -> None:
        if self.passed == self.moment:
            os.kill(os.getpid(), signal.SIGKILL)
        self.passed += 1

    def around(self, act: Callable[..., Any]) -> Callable[..., Any]:
        def dying(*arguments: Any, **options: Any) -> Any:
            self()
            outcome = act(*arguments, **options)
            self()
            return outcome

        return dying

    def send(self, store: SharedStore, content: Any, target: str) -> None:
        """An upload that may be cut off when all its bytes are under way but it is not complete."""
        self()
        stream = store.filesystem.open_output_stream(target, compression=None)
        stream.write(content)
        self()
        stream.close()
        self()


def dying_at(moment: int) -> None:
    killer = Killer(moment)
    os.replace = killer.around(os.replace)
    LocalStore.remove = killer.around(LocalStore.remove)  # type: ignore[method-assign]
    SharedStore.remove = killer.around(SharedStore.remove)  # type: ignore[method-assign]
    SharedStore._send = lambda store, content, target: killer.send(store, content, target)  # type: ignore[method-assign]


def forked(act: Callable[[], None]) -> int:
    """Run in a process of its own; its wait status."""
    child = os.fork()
    if child:
        return os.waitpid(child, 0)[1]
    try:
        act()
    except BaseException:  # noqa: BLE001 - a fork must not go on as its parent
        traceback.print_exc()
        os._exit(1)
    os._exit(0)


def main(checkpoint: str, out: str, report: Path, first: int, step: int) -> None:
    slicelog.MOST_ENTRIES = 2  # so that snapshots are among the moments
    claims.SETTLE_SECONDS = 0.0

    def killed(moment: int) -> None:
        dying_at(moment)
        run(place_at(checkpoint.replace("NAME", f"checkpoint{moment}")), place_at(out.replace("NAME", f"out{moment}")))

    def resumed(moment: int) -> None:
        place = place_at(out.replace("NAME", f"out{moment}"))
        try:
            run(place_at(checkpoint.replace("NAME", f"checkpoint{moment}")), place)
        except CheckpointError as error:  # killed after the closing entry was logged: there is nothing to go on with
            if "closed with --final" not in str(error):
                raise
        with report.open("a") as file:
            file.write(json.dumps(results(place)) + "\n")

    for moment in itertools.chain([FLAWLESS], itertools.count(first, step)):
        status = forked(lambda: killed(moment))  # noqa: B023 - it has run before the next moment
        assert status in (0, signal.SIGKILL), status
        assert forked(lambda: resumed(moment)) == 0  # noqa: B023
        if status == 0 and moment != FLAWLESS:
            break


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], Path(sys.argv[3]), int(sys.argv[4]), int(sys.argv[5]))
