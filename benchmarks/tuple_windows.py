"""Tuple-based windows through the engine: what do 256 of them, shared, cost more than one?

In: a session, sizes. Out: `Counted`: checked answers, and the times of runs. Convention: RANGE and SLIDE are different multiples of
100 rows; rows are read from Parquet files, results of all queries go to one sink in memory, as in `many_queries`; a time is `engine.run()`.
Some queries' windows are compared with the rows before any run is timed; runs are interleaved. Target: 256 windows at most 1.5 times the
time of one.
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyspark.sql import SparkSession
from rich.console import Console

from benchmarks.extents import check_extents
from benchmarks.measuring import Task, Tick, Times, interleaved, progress, runs, spread
from benchmarks.ticks import VALUES, Ticks, columns, engine_over, written
from muntin import Engine

#: How many times the time of the fewest windows the most may take.
ALLOWED = 1.5


@dataclass(frozen=True)
class Setup:
    counts: tuple[int, ...] = (1, 16, 256)
    rows: int = 2_000_000
    file: int = 250_000
    rounds: int = 3
    warmups: int = 1
    checked: int = 16


@dataclass(frozen=True)
class Window:
    """Of rows; the first is RANGE 4000 SLIDE 1000."""

    number: int

    @property
    def range(self) -> int:
        return 4000 + 700 * self.number

    @property
    def slide(self) -> int:
        return 1000 + 100 * (self.number * 37 % 91)

    @property
    def name(self) -> str:
        return f"q{self.number}"

    @property
    def query(self) -> str:
        return f"SELECT {VALUES} FROM ticks [RANGE {self.range} rows SLIDE {self.slide} rows]"


@dataclass(frozen=True)
class Point:
    windows: int
    seconds: float
    best: float
    worst: float


@dataclass
class Counted:
    setup: Setup
    points: list[Point] = field(default_factory=list)
    compared: int = 0

    @property
    def growth(self) -> float:
        """How many times the time of the fewest windows the most take."""
        return self.points[-1].seconds / self.points[0].seconds


def run(spark: SparkSession, setup: Setup, console: Console) -> Counted:
    outcome = Counted(setup)
    with tempfile.TemporaryDirectory(prefix="muntin-ticks-") as scratch:
        ticks = written(Path(scratch), rows=setup.rows, disorder=0, file=setup.file)
        engines = {count: engine_over(spark, ticks, queries(count)) for count in setup.counts}
        with progress(console, "tuple-based windows: checking answers", len(setup.counts)) as tick:
            outcome.compared = sum(checked(engine, setup, count, ticks, tick) for count, engine in engines.items())
        tasks = [Task(str(count), engine.run) for count, engine in engines.items()]
        with progress(console, "tuple-based windows: timing", runs(tasks, rounds=setup.rounds, warmups=setup.warmups)) as tick:
            times = interleaved(tasks, rounds=setup.rounds, warmups=setup.warmups, prepare=lambda: None, tick=tick)
    outcome.points = [point(count, times[str(count)]) for count in setup.counts]
    return outcome


def queries(count: int) -> dict[str, str]:
    return {window.name: window.query for window in map(Window, range(count))}


def checked(engine: Engine, setup: Setup, count: int, ticks: Ticks, tick: Tick) -> int:
    """All windows of some of the queries."""
    tick(f"{count} windows")
    found = engine.run()
    return sum(check(window, ticks, found[window.name], count) for window in spread(list(map(Window, range(count))), setup.checked))


def check(window: Window, ticks: Ticks, found: pa.Table, count: int) -> int:
    """Ends are multiples of SLIDE, up to the last window that holds a row; rows have numbers from 0 on."""
    rows = len(ticks)
    ends = np.arange(window.slide, rows + window.range, window.slide)
    low, high = np.clip(ends - window.range, 0, rows), np.minimum(ends, rows)
    return check_extents(f"{window.name} of {count}", columns(found), ticks.volumes, low, high)


def point(count: int, times: Times) -> Point:
    return Point(count, times.median, times.best, times.worst)
