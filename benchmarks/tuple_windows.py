"""Tuple-based windows through the engine: what do 256 of them, shared, cost more than one?

In: a session, sizes. Out: `Counted`: checked answers, and the times of runs. Convention: RANGE and SLIDE are different multiples of
100 rows; from files to Parquet, a part for every query and micro-batch; some queries' windows are compared with the rows before any run
is timed; runs are interleaved. Target: 256 windows at most 1.5 times the time of one.
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from pyspark.sql import SparkSession
from rich.console import Console

from benchmarks.extents import check_extents
from benchmarks.measuring import Task, Tick, Times, interleaved, progress, runs, spread
from benchmarks.ticks import VALUES, Ticks, cleared, results, streamed, written

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
        ticks, out = written(Path(scratch), rows=setup.rows, disorder=0, file=setup.file), Path(scratch) / "out"
        with progress(console, "tuple-based windows: checking answers", len(setup.counts)) as tick:
            outcome.compared = sum(checked(spark, setup, count, ticks, out, tick) for count in setup.counts)
        tasks = [task(spark, count, ticks, out) for count in setup.counts]
        with progress(console, "tuple-based windows: timing", runs(tasks, rounds=setup.rounds, warmups=setup.warmups)) as tick:
            times = interleaved(tasks, rounds=setup.rounds, warmups=setup.warmups, prepare=lambda: cleared(out), tick=tick)
    outcome.points = [point(count, times[str(count)]) for count in setup.counts]
    return outcome


def queries(count: int) -> dict[str, str]:
    return {window.name: window.query for window in map(Window, range(count))}


def task(spark: SparkSession, count: int, ticks: Ticks, out: Path) -> Task:
    return Task(str(count), lambda: streamed(spark, ticks, queries(count), out))


def checked(spark: SparkSession, setup: Setup, count: int, ticks: Ticks, out: Path, tick: Tick) -> int:
    """All windows of some of the queries."""
    tick(f"{count} windows")
    cleared(out)
    streamed(spark, ticks, queries(count), out)
    return sum(check(window, ticks, out, count) for window in spread(list(map(Window, range(count))), setup.checked))


def check(window: Window, ticks: Ticks, out: Path, count: int) -> int:
    """Ends are multiples of SLIDE, up to the last window that holds a row; rows have numbers from 0 on."""
    rows = len(ticks)
    ends = np.arange(window.slide, rows + window.range, window.slide)
    low, high = np.clip(ends - window.range, 0, rows), np.minimum(ends, rows)
    return check_extents(f"{window.name} of {count}", results(out, window.name), ticks.volumes, low, high)


def point(count: int, times: Times) -> Point:
    return Point(count, times.median, times.best, times.worst)
