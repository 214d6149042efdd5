"""Restarting after many micro-batches: what a checkpoint keeps, and what is read of it, as the history grows.

In: a session, the number of batches, groups and minutes of RANGE. Out: `RestartCurve`: sizes after every batch, and what each
of a few restarts read, measured, beside what the windows needed and all that was ever logged.
Convention: a batch is one Parquet file of one minute. The stream is stopped and started again at even distances; bytes read are
those that this process asked the system for while the job started (`/proc/self/io`), not a sum of file sizes.
"""

from __future__ import annotations

import re
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyspark.sql import SparkSession
from rich.console import Console

from benchmarks.answers import differing
from benchmarks.batches import ONE_A_BATCH, write_batch
from benchmarks.measuring import Tick, progress
from muntin import Engine, MemorySink, Pace, Trigger
from muntin.spark.encoding import encode_partials
from muntin.spark.progress import Progress
from muntin.timeline import MINUTE
from muntin.windows.assemblies import Assemblies
from muntin.windows.snapshots import holding_layout

PIPELINE = f"""
CREATE STREAM s (ts TIMESTAMP, g BIGINT, x DOUBLE) WITH ({ONE_A_BATCH});
CREATE QUERY q AS SELECT g, count(*) AS n, sum(x) AS s, max(x) AS m FROM s [RANGE {{minutes}} minutes SLIDE 1 minute] GROUP BY g;
"""


@dataclass(frozen=True)
class Setup:
    batches: int = 500
    groups: int = 200
    minutes: int = 60
    restarts: int = 6
    assembly: str = "driver"


@dataclass(frozen=True)
class Kept:
    """The files of a checkpoint after a batch; `logged` is the size of all log entries ever written."""

    batch: int
    entries: int
    log: int
    snapshot: int
    rest: int
    logged: int


@dataclass(frozen=True)
class Restart:
    """One start on a checkpoint: bytes read, bytes the state in hand takes when written down, seconds until it runs."""

    batch: int
    read: int
    needed: int
    seconds: float


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
            run_to_end(engine_over(spark, source, setup), sink, checkpoint, curve, tick)
            curve.restarts.append(restarted(engine_over(spark, source, setup), checkpoint, stop))
        curve.checked = check(sink, setup)
    return curve


def stops(setup: Setup) -> Sequence[int]:
    """After how many batches the stream is stopped, the last time at the end."""
    return [setup.batches * (number + 1) // setup.restarts for number in range(setup.restarts)]


def values_of(minute: int, groups: int) -> np.ndarray:
    return np.random.default_rng(minute).random(groups) + 1e-3


def write_minute(directory: Path, minute: int, groups: int) -> None:
    """One row per group."""
    times = pa.array(np.full(groups, minute * MINUTE), type=pa.timestamp("us", tz="UTC"))
    table = pa.table({"ts": times, "g": pa.array(np.arange(groups)), "x": values_of(minute, groups)})
    write_batch(directory, minute, table)


def engine_over(spark: SparkSession, source: Path, setup: Setup) -> Engine:
    engine = Engine(spark, assembly=setup.assembly)
    engine.execute(PIPELINE.format(path=source, minutes=setup.minutes))
    return engine


def run_to_end(engine: Engine, sink: MemorySink, checkpoint: Path, curve: RestartCurve, tick: Tick) -> None:
    """Take every file there is, one a batch, and look at the checkpoint after each."""
    logged = curve.kept[-1].logged if curve.kept else 0

    def look(_: Progress) -> None:
        nonlocal logged
        batch = len(curve.kept) + 1
        tick(f"batch {batch}")
        found = kept(checkpoint / "s", batch, logged)
        logged = found.logged
        curve.kept.append(found)

    engine.start(sink, checkpoint=checkpoint, trigger=Trigger(Pace.AVAILABLE_NOW), on_progress=look).wait()


def kept(folder: Path, batch: int, logged: int) -> Kept:
    """What is there now. A batch that ended with a snapshot has no entry of its own left: its size is that of the one before."""
    sizes = {name: [path.stat().st_size for path in sorted((folder / name).glob("*"))] for name in ("log", "snapshots", "pins", "done")}
    newest = sizes["log"][-1] if sizes["log"] else logged // max(1, batch - 1)
    return Kept(
        batch=batch,
        entries=len(sizes["log"]),
        log=sum(sizes["log"]),
        snapshot=sum(sizes["snapshots"]),
        rest=sum(sizes["pins"]) + sum(sizes["done"]),
        logged=logged + newest,
    )


def restarted(engine: Engine, checkpoint: Path, batch: int) -> Restart:
    """Start the job again with nothing new to read, and look at what it took up."""
    before, began = bytes_read(), time.perf_counter()
    running = engine.start(MemorySink(), checkpoint=checkpoint, trigger=Trigger(Pace.AVAILABLE_NOW))
    seconds, read = time.perf_counter() - began, bytes_read() - before
    running.wait()
    return Restart(batch, read, state_bytes(running.jobs["s"].assembly.once), seconds)


def state_bytes(assembly: Assemblies) -> int:
    """What the windows in hand need, written down."""
    plans = {plan.query.name: plan for plan in assembly.plan.queries}
    held = [(one.partials, holding_layout(plans, one.predicates, one.columns)) for one in assembly.snapshot()]
    return sum(len(encode_partials(partials, layout)) for partials, layout in held)


def bytes_read() -> int:
    """All bytes this process has read from files so far."""
    counters = Path("/proc/self/io")
    found = re.search(r"rchar: (\d+)", counters.read_text()) if counters.exists() else None
    return int(found[1]) if found else 0


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
