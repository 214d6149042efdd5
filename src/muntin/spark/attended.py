"""Runs that somebody attends at a terminal: progress while they go on, an end when they are asked for it.

In: an engine with its queries, a sink, a console for what is told on the way. Out: the queries that stopped on their data, with the error
of each. Convention: Ctrl-C and SIGTERM end a streaming run after the batch in hand, a second one ends the process as usual.
"""

from __future__ import annotations

import signal
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import FrameType

import pyarrow as pa
from pyspark.errors import PySparkException
from rich.console import Console

from muntin.query.model import Query
from muntin.spark.engine import Engine
from muntin.spark.place import Place
from muntin.spark.progress import ProgressDisplay
from muntin.spark.running import Trigger
from muntin.spark.sinks.base import EntryId, Results, Sink
from muntin.windows.results import result_schema

#: How often signals are looked for.
GLANCE_SECONDS = 0.5


def run_bounded(engine: Engine, sink: Sink, dead_letters: Place | None, console: Console) -> dict[str, str]:
    with ProgressDisplay(engine.spark, console) as display:
        return engine.run(sink, dead_letters=dead_letters, on_progress=display.update).stopped


def run_plain(engine: Engine, sink: Sink, console: Console) -> dict[str, str]:
    """Every query in plain Spark, one after the other: nothing is shared. A query that fails on its data has no results at all.

    Dead letters are left out and not written.
    """
    stopped: dict[str, str] = {}
    sink.equip(engine.spark, None)
    sink.open(uuid.uuid4().hex, engine.queries)
    with sink, console.status("plain Spark") as status:

        def results(queries: list[Query]) -> Results:
            for query in queries:
                status.update(f"plain Spark: {query.name}, one of {len(engine.queries)} jobs")
                try:
                    yield query.name, plain_table(engine, query)
                except PySparkException as error:
                    stopped[query.name] = f"its job in plain Spark failed: {str(error).splitlines()[0]}"

        for stream in engine.streams:
            sink.write(EntryId(0), results([query for query in engine.queries if query.stream.lower() == stream]), stream)
    return stopped


def plain_table(engine: Engine, query: Query) -> pa.Table:
    return engine.plain(query.name).toArrow().cast(result_schema(query))


def run_streaming(
    engine: Engine, sink: Sink, places: Mapping[str, Place | str | None], trigger: Trigger, console: Console, *, final: bool
) -> dict[str, str]:
    """`places` are the checkpoint and where rows that count nowhere go, by the names that `Engine.start` has for them."""
    with ProgressDisplay(engine.spark, console) as display:
        job = engine.start(sink, trigger=trigger, on_progress=display.update, **places)
        with stopping_on_signals(console) as asked:
            while not asked and not job.wait(GLANCE_SECONDS, final=final):
                pass
        if asked:
            job.stop(final=final)
    return job.stopped


@contextmanager
def stopping_on_signals(console: Console) -> Iterator[list[int]]:
    """Ctrl-C and SIGTERM ask the job to stop after the batch in hand; a second one ends the process as usual."""
    asked: list[int] = []

    def ask(number: int, _frame: FrameType | None) -> None:
        asked.append(number)
        console.print("stopping after this batch; once more to stop at once", style="yellow")
        for name, handler in before.items():
            signal.signal(name, handler)

    before = {name: signal.signal(name, ask) for name in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield asked
    finally:
        for name, handler in before.items():
            signal.signal(name, handler)
