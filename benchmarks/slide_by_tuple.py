"""Slide-by-tuple windows through the engine: a result for every tuple, from files to Parquet, as RANGE grows and order is lost.

In: a session, sizes. Out: `BySlide`: checked answers, and the times of runs. Convention: count, sum and max over the last RANGE of time
at every tuple; every window's answer is compared with the rows before any run is timed; runs are interleaved. What the core of it does
alone is in `tuple_core`.
Targets: 500,000 tuples a second with RANGE 5 minutes; time per tuple in proportion to log2(tuples per window) at the most; 10 % out of
order at most 1.5 times the time.
"""

from __future__ import annotations

import math
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from pyspark.sql import SparkSession
from rich.console import Console

from benchmarks.answers import differing
from benchmarks.extents import check_extents
from benchmarks.measuring import Task, Tick, Times, interleaved, progress, runs
from benchmarks.ticks import APART, VALUES, Ticks, cleared, results, streamed, written
from muntin.timeline import SECOND

#: Tuples a second, and how many times the time in order disorder may take.
TARGET, DISORDERED = 500_000, 1.5


@dataclass(frozen=True)
class Setup:
    """`ranges` in seconds, the last of them the one that targets are for; `file` rows a file, two files a micro-batch."""

    ranges: tuple[int, ...] = (1, 10, 60, 300)
    rows: int = 5_000_000
    file: int = 500_000
    percent: int = 10  #: out of order
    rounds: int = 3
    warmups: int = 1


@dataclass(frozen=True)
class Case:
    seconds: int
    percent: int = 0

    @property
    def name(self) -> str:
        return f"RANGE {self.seconds} s" + (f", {self.percent} % out of order" if self.percent else "")

    @property
    def query(self) -> str:
        return f"SELECT {VALUES} FROM ticks [RANGE {self.seconds} seconds RATTR ts SLIDE 1 row SATTR row_num]"

    @property
    def tuples(self) -> int:
        """Of a full window."""
        return self.seconds * SECOND // APART


@dataclass(frozen=True)
class Point:
    case: Case
    seconds: float
    best: float
    worst: float


@dataclass
class BySlide:
    setup: Setup
    points: list[Point] = field(default_factory=list)
    compared: int = 0

    def of(self, case: Case) -> Point:
        return next(point for point in self.points if point.case == case)

    @property
    def main(self) -> Point:
        return self.of(Case(self.setup.ranges[-1]))

    @property
    def disordered(self) -> Point:
        return self.of(Case(self.setup.ranges[-1], self.setup.percent))

    @property
    def ordered(self) -> list[Point]:
        return [self.of(Case(seconds)) for seconds in self.setup.ranges]

    def growth(self, point: Point) -> tuple[float, float]:
        """How many times the time of the shortest RANGE, and how many times its logarithm of tuples per window."""
        first = self.ordered[0]
        return point.seconds / first.seconds, math.log2(point.case.tuples) / math.log2(first.case.tuples)


def run(spark: SparkSession, setup: Setup, console: Console) -> BySlide:
    outcome = BySlide(setup)
    cases = [*(Case(seconds) for seconds in setup.ranges), Case(setup.ranges[-1], setup.percent)]
    with tempfile.TemporaryDirectory(prefix="muntin-ticks-") as scratch:
        out = Path(scratch) / "out"
        stored = {
            percent: written(Path(scratch), rows=setup.rows, disorder=percent / 100, file=setup.file) for percent in (0, setup.percent)
        }
        with progress(console, "slide by tuple: checking answers", len(cases)) as tick:
            outcome.compared = sum(checked(spark, case, stored[case.percent], out, tick) for case in cases)
        tasks = [task(spark, case, stored[case.percent], out) for case in cases]
        with progress(console, "slide by tuple: timing", runs(tasks, rounds=setup.rounds, warmups=setup.warmups)) as tick:
            times = interleaved(tasks, rounds=setup.rounds, warmups=setup.warmups, prepare=lambda: cleared(out), tick=tick)
    outcome.points = [point(case, times[case.name]) for case in cases]
    return outcome


def task(spark: SparkSession, case: Case, ticks: Ticks, out: Path) -> Task:
    return Task(case.name, lambda: streamed(spark, ticks, {"q": case.query}, out))


def checked(spark: SparkSession, case: Case, ticks: Ticks, out: Path, tick: Tick) -> int:
    """Every tuple ends a window; its extent is the tuples of the last RANGE, this one included."""
    tick(case.name)
    cleared(out)
    streamed(spark, ticks, {"q": case.query}, out)
    found, order = results(out, "q"), np.argsort(ticks.times)
    ends = ticks.times[order]
    low = np.searchsorted(ends, ends - case.seconds * SECOND, side="right")
    compared = check_extents(case.name, found, ticks.volumes[order], low, np.arange(1, len(ends) + 1))
    if not np.array_equal(found["window_end"], ends):
        raise differing(case.name, "windows do not end at the tuples")
    return compared


def point(case: Case, times: Times) -> Point:
    return Point(case, times.median, times.best, times.worst)
