"""Driver against executors as groups grow: seconds a batch, memory of all processes, and how soon a restart gives a result.

In: a session, numbers of groups, windows in minutes. Out: a `Grown` for each number of groups and place of assembly.
Convention: a batch is one Parquet file of one minute with a row of every group, so every batch closes one window with every group. Results
go to Parquet files, which are checked. Memory is what this process and all that it started had at the most.
"""

from __future__ import annotations

import re
import statistics
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession
from rich.console import Console

from benchmarks.answers import differing
from benchmarks.apart import apart
from benchmarks.measuring import Tick, progress
from benchmarks.minutes import queries_over, query_over, values_of, write_minute
from benchmarks.processes import highest_memory
from muntin import Engine, FileSink, Layout, Pace, Trigger, session
from muntin.timeline import MINUTE


@dataclass(frozen=True)
class Setup:
    """Each case has a process of its own, with Muntin's default memory for the JVM; without `memory` it is in the session given."""

    groups: tuple[int, ...] = (1_000, 10_000, 100_000, 1_000_000)
    places: tuple[str, ...] = ("driver", "executors")
    windows: tuple[int, ...] = (2, 3, 4, 5)
    batches: int = 12
    warmups: int = 3
    memory: str = "2g"


@dataclass(frozen=True)
class Grown:
    """One number of groups in one place: seconds of every batch after the warm-ups, memory, rows checked, and the restart."""

    groups: int
    place: str
    seconds: tuple[float, ...]
    peak: int
    checked: int
    restart: float

    @property
    def mean(self) -> float:
        """Of all batches: those that also write a snapshot count."""
        return statistics.mean(self.seconds)

    @property
    def median(self) -> float:
        return statistics.median(self.seconds)


@dataclass
class Curve:
    setup: Setup
    found: list[Grown] = field(default_factory=list)


@dataclass(frozen=True)
class Case:
    groups: int
    place: str
    setup: Setup


def run(spark: SparkSession, setup: Setup, console: Console) -> Curve:
    curve = Curve(setup)
    with progress(console, "groups", len(setup.groups) * len(setup.places)) as tick:
        for groups in setup.groups:
            for place in setup.places:
                case = Case(groups, place, setup)
                tick(f"{groups:,} groups, {place}")
                curve.found.append(apart(alone, case, tick) if setup.memory else grown(spark, case))
    return curve


def alone(case: Case, _: Tick) -> Grown:
    spark = session("muntin benchmarks", **{"spark.driver.memory": case.setup.memory})
    try:
        return grown(spark, case)
    finally:
        spark.stop()


def grown(spark: SparkSession, case: Case) -> Grown:
    setup = case.setup
    with tempfile.TemporaryDirectory(prefix="muntin-groups-") as scratch:
        directory = Path(scratch)
        (directory / "minutes").mkdir()
        for minute in range(setup.batches):
            write_minute(directory / "minutes", minute, case.groups)
        with highest_memory() as memory:
            seconds = run_to_end(spark, setup, directory, case.place)[setup.warmups :]
            write_minute(directory / "minutes", setup.batches, case.groups)
            began = time.perf_counter()
            run_to_end(spark, setup, directory, case.place)
            restart = time.perf_counter() - began
        checked = check(directory / "out", setup, case.groups)
    return Grown(case.groups, case.place, tuple(seconds), memory[0], checked, restart)


def run_to_end(spark: SparkSession, setup: Setup, directory: Path, place: str) -> list[float]:
    """Take every file there is, one a batch; the seconds from the end of one batch to the end of the next."""
    engine = Engine(spark, assembly=place)
    engine.execute(queries_over(directory / "minutes", setup.windows))
    ends = [time.perf_counter()]
    sink = FileSink(directory / "out", "parquet", Layout.PARTS)
    trigger = Trigger(Pace.AVAILABLE_NOW)
    job = engine.start(sink, checkpoint=directory / "state", trigger=trigger, on_progress=lambda _: ends.append(time.perf_counter()))
    job.wait()
    return np.diff(ends).tolist()


def check(out: Path, setup: Setup, groups: int) -> int:
    """Compare every window that closed with its minutes: all but the last minute's. An entry closes one window of every query."""
    return sum(check_windows(out / query_over(minutes), setup.batches, minutes, groups) for minutes in setup.windows)


def check_windows(out: Path, batches: int, minutes: int, groups: int) -> int:
    parts: dict[str, list[Path]] = {}
    for part in sorted(out.glob("*.parquet")):
        parts.setdefault(re.split("[-.]", part.name)[0], []).append(part)
    for end, entry in enumerate(sorted(parts), start=1):
        found = pa.concat_tables([pq.read_table(part) for part in parts[entry]]).sort_by("g")
        window = np.array([values_of(minute, groups) for minute in range(max(0, end - minutes), end)])
        truth = {"g": np.arange(groups), "n": np.full(groups, len(window)), "s": window.sum(axis=0), "m": window.max(axis=0)}
        ends = found["window_end"].unique().cast("int64").to_pylist()
        right = found.num_rows == groups and ends == [end * MINUTE]
        if not right or not all(np.allclose(found[column].to_numpy(), truth[column], rtol=1e-12, atol=0) for column in truth):
            raise differing(f"{groups} groups", f"{minutes} minutes, window {end}")
    if len(parts) != batches:
        raise differing(f"{groups} groups", f"{len(parts)} windows of {batches}")
    return len(parts) * groups
