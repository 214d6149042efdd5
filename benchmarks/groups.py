"""Driver against executors as groups grow: seconds a batch, memory of all processes, and how soon a restart gives a result.

In: a session, numbers of groups, minutes of RANGE. Out: a `Grown` for each number of groups and place of assembly.
Convention: a batch is one Parquet file of one minute with a row of every group, so every batch closes one window with every group. Results
go to Parquet files, which are checked. Memory is what this process and all that it started had at the most.
"""

from __future__ import annotations

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
from benchmarks.measuring import Tick, progress
from benchmarks.minutes import one_query, values_of, write_minute
from benchmarks.processes import highest_memory
from muntin import Engine, FileSink, Layout, Pace, Trigger


@dataclass(frozen=True)
class Setup:
    groups: tuple[int, ...] = (1_000, 10_000, 100_000, 1_000_000)
    places: tuple[str, ...] = ("driver", "executors")
    minutes: int = 5
    batches: int = 10
    warmups: int = 3


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
    def median(self) -> float:
        return statistics.median(self.seconds)


@dataclass
class Curve:
    setup: Setup
    found: list[Grown] = field(default_factory=list)


def run(spark: SparkSession, setup: Setup, console: Console) -> Curve:
    curve = Curve(setup)
    with progress(console, "groups", len(setup.groups) * len(setup.places)) as tick:
        for groups in setup.groups:
            for place in setup.places:
                curve.found.append(grown(spark, setup, groups, place, tick))
    return curve


def grown(spark: SparkSession, setup: Setup, groups: int, place: str, tick: Tick) -> Grown:
    tick(f"{groups:,} groups, {place}")
    with tempfile.TemporaryDirectory(prefix="muntin-groups-") as scratch:
        directory = Path(scratch)
        (directory / "minutes").mkdir()
        for minute in range(setup.batches):
            write_minute(directory / "minutes", minute, groups)
        with highest_memory() as memory:
            seconds = run_to_end(spark, setup, directory, place)[setup.warmups :]
            write_minute(directory / "minutes", setup.batches, groups)
            began = time.perf_counter()
            run_to_end(spark, setup, directory, place)
            restart = time.perf_counter() - began
        checked = check(directory / "out", setup, groups)
    return Grown(groups, place, tuple(seconds), memory[0], checked, restart)


def run_to_end(spark: SparkSession, setup: Setup, directory: Path, place: str) -> list[float]:
    """Take every file there is, one a batch; the seconds from the end of one batch to the end of the next."""
    engine = Engine(spark, assembly=place)
    engine.execute(one_query(directory / "minutes", setup.minutes))
    ends = [time.perf_counter()]
    sink = FileSink(directory / "out", "parquet", Layout.PARTS)
    trigger = Trigger(Pace.AVAILABLE_NOW)
    job = engine.start(sink, checkpoint=directory / "state", trigger=trigger, on_progress=lambda _: ends.append(time.perf_counter()))
    job.wait()
    return np.diff(ends).tolist()


def check(out: Path, setup: Setup, groups: int) -> int:
    """Compare every window that closed with its minutes: all but the last minute's."""
    found = pa.concat_tables([pq.read_table(part) for part in sorted((out / "q").glob("*.parquet"))])
    found = found.sort_by([("window_end", "ascending"), ("g", "ascending")])
    values = np.array([values_of(minute, groups) for minute in range(setup.batches + 1)])
    windows = [values[max(0, end - setup.minutes) : end] for end in range(1, setup.batches + 1)]
    truth = {
        "n": np.concatenate([np.full(groups, len(window)) for window in windows]),
        "s": np.concatenate([window.sum(axis=0) for window in windows]),
        "m": np.concatenate([window.max(axis=0) for window in windows]),
    }
    for column, expected in truth.items():
        ours = found[column].to_numpy()
        if len(ours) != len(expected) or not np.allclose(ours, expected, rtol=1e-12, atol=0):
            raise differing(f"{groups} groups", f"column {column}")
    return int(found.num_rows)
