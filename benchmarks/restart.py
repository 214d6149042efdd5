"""Restarting after many micro-batches: what a checkpoint keeps, and what is read of it, as the history grows.

In: a session, the number of batches, groups and minutes of RANGE. Out: `RestartCurve`: sizes after every batch, and what each
of a few restarts read, measured, beside what the windows needed and all that was ever logged; and when its first new result came.
Convention: a batch is one Parquet file of one minute. The stream is stopped and started again at even distances, with one new file; bytes
read are those that Python processes asked the system for until that file's results were there, not a sum of file sizes.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from pyspark.sql import SparkSession
from rich.console import Console

from benchmarks.answers import differing
from benchmarks.measuring import Tick, progress
from benchmarks.minutes import one_query, values_of, write_minute
from benchmarks.processes import bytes_read
from muntin import Engine, MemorySink, Pace, RunningJob, Trigger
from muntin.spark.assembling import Assembling
from muntin.spark.encoding import encode_partials
from muntin.spark.progress import Progress
from muntin.windows.snapshots import holding_layout


@dataclass(frozen=True)
class Setup:
    batches: int = 500
    groups: int = 200
    minutes: int = 60
    restarts: int = 6
    assembly: str = "driver"


def page_of(setup: Setup) -> str:
    return "restart" if setup.assembly == "driver" else f"restart-{setup.assembly}"


@dataclass(frozen=True)
class Kept:
    """The files of a checkpoint after a batch, those of instances among them; `logged` is the size of all log entries ever written."""

    batch: int
    entries: int
    log: int
    snapshot: int
    rest: int
    logged: int


@dataclass(frozen=True)
class Restart:
    """One start on a checkpoint: bytes read, bytes the state in hand takes when written down, seconds until it runs and until the first
    new result.
    """

    batch: int
    read: int
    needed: int
    seconds: float
    first: float


@dataclass
class RestartCurve:
    setup: Setup
    kept: list[Kept] = field(default_factory=list)
    restarts: list[Restart] = field(default_factory=list)
    checked: int = 0


def run(spark: SparkSession, setup: Setup, console: Console) -> RestartCurve:
    curve = RestartCurve(setup)
    with tempfile.TemporaryDirectory(prefix="muntin-restart-") as scratch, progress(console, "restart", setup.batches) as tick:
        source, checkpoint = Path(scratch) / "minutes", Path(scratch) / "checkpoint"
        source.mkdir()
        sink = MemorySink()
        for stop in stops(setup):
            for minute in range(len(list(source.iterdir())), stop):
                write_minute(source, minute, setup.groups)
            look = looking(checkpoint / "s", curve, tick)
            started(engine_over(spark, source, setup), sink, checkpoint, look).wait()
            write_minute(source, stop, setup.groups)
            curve.restarts.append(restarted(engine_over(spark, source, setup), sink, checkpoint, look, stop))
        curve.checked = check(sink, setup)
    return curve


def stops(setup: Setup) -> Sequence[int]:
    """After how many batches the stream is stopped, the last time before the last of them."""
    return [(setup.batches - 1) * (number + 1) // setup.restarts for number in range(setup.restarts)]


def engine_over(spark: SparkSession, source: Path, setup: Setup) -> Engine:
    engine = Engine(spark, assembly=setup.assembly)
    engine.execute(one_query(source, setup.minutes))
    return engine


def looking(folder: Path, curve: RestartCurve, tick: Tick) -> Callable[[Progress], None]:
    """Look at the checkpoint after every batch."""

    def look(_: Progress) -> None:
        batch = len(curve.kept) + 1
        tick(f"batch {batch}")
        curve.kept.append(kept(folder, batch, curve.kept[-1].logged if curve.kept else 0))

    return look


def started(engine: Engine, sink: MemorySink, checkpoint: Path, look: Callable[[Progress], None]) -> RunningJob:
    """A job that takes every file there is, one a batch."""
    return engine.start(sink, checkpoint=checkpoint, trigger=Trigger(Pace.AVAILABLE_NOW), on_progress=look)


def kept(folder: Path, batch: int, logged: int) -> Kept:
    """What is there now. A batch that ended with a snapshot has no entry of its own left: its size is that of the one before."""
    sizes = {name: sizes_in(folder / name) for name in ("log", "parts", "snapshots", "snapshot-parts", "pins", "done")}
    entries = [size + sizes["parts"].get(name, 0) for name, size in sizes["log"].items()]
    newest = entries[-1] if entries else logged // max(1, batch - 1)
    log, snapshot, rest = (
        sum(sum(sizes[name].values()) for name in names) for names in (("log", "parts"), ("snapshots", "snapshot-parts"), ("pins", "done"))
    )
    return Kept(batch=batch, entries=len(entries), log=log, snapshot=snapshot, rest=rest, logged=logged + newest)


def sizes_in(folder: Path) -> dict[str, int]:
    """What each file takes, and what all files of each folder take together."""
    found = {}
    for path in sorted(folder.glob("*")):
        files = path.rglob("*") if path.is_dir() else [path]
        found[path.name] = sum(file.stat().st_size for file in files if file.is_file())
    return found


def restarted(engine: Engine, sink: MemorySink, checkpoint: Path, look: Callable[[Progress], None], batch: int) -> Restart:
    """Start the job again with one new file, and look at what it took to come to its results."""
    results: list[float] = []

    def first(found: Progress) -> None:
        results.append(time.perf_counter())
        look(found)

    before, began = bytes_read(), time.perf_counter()
    running = started(engine, sink, checkpoint, first)
    seconds = time.perf_counter() - began
    running.wait()
    return Restart(batch, bytes_read() - before, state_bytes(running.jobs["s"].assembly), seconds, results[0] - began)


def state_bytes(assembly: Assembling) -> int:
    """What the windows in hand need, written down; instances say it of their latest snapshot."""
    plans = {plan.query.name: plan for plan in assembly.plan.queries}
    held = [(one.partials, holding_layout(plans, one.predicates, one.columns)) for one in assembly.holdings()]
    spread = assembly.crew.basis.parts.size if assembly.crew and assembly.crew.basis else 0
    return spread + sum(len(encode_partials(partials, layout)) for partials, layout in held)


def check(sink: MemorySink, setup: Setup) -> int:
    """Compare every window that closed with its minutes; the rows compared. All but the last minute's window have closed."""
    table = sink.table("q").sort_by([("window_end", "ascending"), ("g", "ascending")])
    values = np.array([values_of(minute, setup.groups) for minute in range(setup.batches)])
    ends = range(1, setup.batches)
    windows = [values[max(0, end - setup.minutes) : end] for end in ends]
    truth = {
        "n": np.concatenate([np.full(setup.groups, len(window)) for window in windows]),
        "s": np.concatenate([window.sum(axis=0) for window in windows]),
        "m": np.concatenate([window.max(axis=0) for window in windows]),
    }
    for column, expected in truth.items():
        found = table[column].to_numpy()
        if len(found) != len(expected) or not np.allclose(found, expected, rtol=1e-12, atol=0):
            raise differing(f"{setup.batches} batches, {setup.restarts} restarts", f"column {column}")
    return int(table.num_rows)
