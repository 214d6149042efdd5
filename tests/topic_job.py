"""A job to be killed that publishes to topics: takes all the files of the sample, a batch each, closes all windows, and ends.

`python topic_job.py BROKER/TOPIC DIRECTORY ASSEMBLY INSTANCES MOMENT`: the input is in DIRECTORY/clicks, the checkpoint in
DIRECTORY/checkpoint. A moment is `WHO:WHEN:NUMBER`: `driver:before:2` sends SIGKILL to driver and executors before
the driver commits its second transaction, `task:after:2` after a task of the second publication has committed its own. `tasks:always:0`
lets two tasks of each publication die, one before its commit and one after it, and Spark tries again. `never:never:0` runs to the end.
More settings of Spark come as JSON in SETTINGS.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pyarrow as pa

from muntin import Engine, Pace, TopicSink, Trigger, session
from muntin.errors import CheckpointError
from muntin.spark import slicelog, timers
from muntin.spark.sinks.kafka import publishing
from muntin.spark.sinks.kafka.transactions import Publisher
from spreading import PIPELINE

#: What a killed task leaves open is aborted by the broker after this time.
SETTINGS = {"transaction.timeout.ms": "10000"}

Tasks = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]


@contextmanager
def around_commit(before: Callable[[], None], after: Callable[[], None]) -> Iterator[None]:
    """Something happens around commits; before each, all records have come to the broker."""
    commit = Publisher._commit

    def committed(self: Publisher) -> None:
        self._producer.flush(30)
        before()
        commit(self)
        after()

    Publisher._commit = committed  # type: ignore[method-assign]
    try:
        yield
    finally:
        Publisher._commit = commit  # type: ignore[method-assign]


def killed_at(number: int) -> Callable[[], None]:
    count = 0

    def kill() -> None:
        nonlocal count
        count += 1
        if count == number:
            os.killpg(os.getpgid(0), signal.SIGKILL)

    return kill


def once(mark: Path, act: Callable[[], None]) -> Callable[[], None]:
    def at_first() -> None:
        try:
            mark.touch(exist_ok=False)
        except FileExistsError:
            return
        act()

    return at_first


def deadly(directory: Path, when: str, number: int, group: int) -> None:
    """Tasks that publish do it with their lives at stake. What is defined here is sent to them as it is."""
    published, count = publishing.publishing, 0

    def staked(publication: publishing.Publication) -> Tasks:
        nonlocal count
        count += 1
        chosen, inner, entry = count == number, published(publication), str(publication.entry)

        def publish_all(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            happens: dict[str, Callable[[], None]] = {}
            if when == "always":
                happens = {moment: once(directory / f"{entry}-{moment}", lambda: os._exit(1)) for moment in ("before", "after")}
            elif chosen:
                happens = {when: lambda: os.killpg(group, signal.SIGKILL)}
            with around_commit(happens.get("before", nothing), happens.get("after", nothing)):
                yield from inner(batches)

        return publish_all

    publishing.publishing = staked  # type: ignore[assignment]


def nothing() -> None:
    """All is well."""


def beset(directory: Path, moment: str, life: ExitStack) -> None:
    who, when, number = moment.split(":")
    if who == "driver":
        kill = killed_at(int(number))
        life.enter_context(around_commit(kill, nothing) if when == "before" else around_commit(nothing, kill))
    elif who.startswith("task"):
        deaths = directory / "deaths"
        deaths.mkdir(exist_ok=True)
        deadly(deaths, when, int(number), os.getpgid(0))


def main(address: str, directory: Path, assembly: str, instances: int, moment: str) -> None:
    slicelog.MOST_ENTRIES = 3
    timers.TIMER_SECONDS = 3600  # no entries but those of batches, however slow the machine is
    settings = {"spark.master": "local[2,4]"}  # a task is tried four times
    engine = Engine(session(**settings | json.loads(os.environ.get("SETTINGS", "{}"))), assembly=assembly, instances=instances)
    engine.execute(PIPELINE.format(path=directory / "clicks"))
    sink = TopicSink(*address.split("/"), settings=SETTINGS)
    try:
        with ExitStack() as life:
            beset(directory, moment, life)
            engine.start(sink, checkpoint=directory / "checkpoint", trigger=Trigger(Pace.AVAILABLE_NOW)).wait(final=True)
    except CheckpointError as error:  # killed while closing: the resumed run has finished that, and there is nothing to go on with
        if "closed with --final" not in str(error):
            raise
    engine.spark.stop()


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), sys.argv[3], int(sys.argv[4]), sys.argv[5])
