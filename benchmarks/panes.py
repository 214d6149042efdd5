"""Figure 3 of panes-2005: the cost of panes over that of windows without panes, by tuples per pane and panes per window.

In: a session, sizes. Out: `Panes`: the model's ratio for every cell, and the one measured. Convention: the query is a sliding max, as in
the paper. Windowed is Spark's own sliding `window()`: each row is taken once for every window that it is in, formula (3.3). Paned is
Muntin with panes, over the same cached rows of the same session. Both end with all windows in one Arrow table, and the tables are
compared first. As in the paper, the scan is subtracted: of either side, the median time of the same query with one window around all
rows. Runs are interleaved.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from rich.console import Console

from benchmarks.answers import differing, micros
from benchmarks.measuring import Task, Tick, Times, interleaved, progress, runs
from muntin import Engine, Slicing
from muntin.plan.cost import buffered_cost, paned_cost
from muntin.semantics import TimeWindow
from muntin.timeline import SECOND

MILLISECOND = SECOND // 1000
#: The cell that the paper's text gives, and its ratio there.
PAPER_CELL, PAPER_RATIO = (20, 5), 0.30
#: A time above the scan that is shorter than this is lost in the noise.
LEAST = 1e-3


@dataclass(frozen=True)
class Setup:
    """A tuple comes every millisecond."""

    tuples: tuple[int, ...] = (1, 5, 10, 20, 50, 100)
    panes: tuple[int, ...] = (2, 5, 10, 20)
    rows: int = 1_000_000
    rounds: int = 3
    warmups: int = 0


@dataclass(frozen=True)
class Side:
    """Seconds of a run, and of its scan."""

    seconds: float
    scan: float

    @property
    def above(self) -> float:
        return max(self.seconds - self.scan, LEAST)


@dataclass(frozen=True)
class Cell:
    tuples: int
    panes: int
    model: float
    paned: Side
    windowed: Side

    @property
    def measured(self) -> float:
        return self.paned.above / self.windowed.above


@dataclass
class Panes:
    setup: Setup
    cells: list[Cell] = field(default_factory=list)
    compared: int = 0

    def of(self, tuples: int, panes: int) -> Cell:
        return next(cell for cell in self.cells if (cell.tuples, cell.panes) == (tuples, panes))


def model(tuples: int, panes: int) -> float:
    """Formula (3.1) over (3.3), all costs equal, one group.

    >>> model(20, 5)
    0.26
    """
    window = TimeWindow(range=tuples * panes * MILLISECOND, slide=tuples * MILLISECOND)
    rows = tuples * panes
    return paned_cost(window, rows=rows, groups=1, differential=False) / buffered_cost(window, rows=rows, differential=False)


def run(spark: SparkSession, setup: Setup, console: Console) -> Panes:
    outcome, shapes = Panes(setup), [(tuples, panes) for tuples in setup.tuples for panes in setup.panes]
    rows = readings(spark, setup.rows)
    around = (setup.rows, 1)  # one window around all rows
    with progress(console, "panes: checking answers", len(shapes)) as tick:
        outcome.compared = sum(checked(spark, rows, *shape, tick) for shape in shapes)
    tasks = [Task(f"{side.__name__} {shape}", side(spark, rows, *shape)) for shape in (around, *shapes) for side in (paned, windowed)]
    with progress(console, "panes: timing", runs(tasks, rounds=setup.rounds, warmups=setup.warmups)) as tick:
        times = interleaved(tasks, rounds=setup.rounds, warmups=setup.warmups, prepare=lambda: kept(rows), tick=tick)
    for shape in shapes:
        sides = [Side(of(times, side, shape), of(times, side, around)) for side in (paned, windowed)]
        outcome.cells.append(Cell(*shape, model(*shape), *sides))
    rows.unpersist()
    return outcome


def readings(spark: SparkSession, rows: int) -> DataFrame:
    ts = F.timestamp_micros(F.lit(1_700_000_000 * SECOND) + F.col("id") * F.lit(MILLISECOND)).alias("ts")
    return kept(spark.range(rows).select(ts, (F.rand(3) * 1e6).cast("bigint").alias("speed")))


def kept(rows: DataFrame) -> DataFrame:
    """In memory. A run of Muntin ends with unpersisting its DataFrame."""
    if not rows.storageLevel.useMemory:
        rows.cache().count()
    return rows


def paned(spark: SparkSession, rows: DataFrame, tuples: int, panes: int) -> Callable[[], pa.Table]:
    engine = Engine(spark, slicing=Slicing.PANED)
    engine.stream("readings", rows, time="ts")
    window = f"RANGE {tuples * panes} milliseconds SLIDE {tuples} milliseconds"
    engine.add(f"SELECT max(speed) AS value FROM readings [{window}]", name="q")
    return lambda: engine.run()["q"]


def windowed(_: SparkSession, rows: DataFrame, tuples: int, panes: int) -> Callable[[], pa.Table]:
    window = F.window("ts", f"{tuples * panes} milliseconds", f"{tuples} milliseconds")
    bounds = [F.col("window.start").alias("window_start"), F.col("window.end").alias("window_end")]
    return lambda: rows.groupBy(window).agg(F.max("speed").alias("value")).select(*bounds, "value").toArrow()


def checked(spark: SparkSession, rows: DataFrame, tuples: int, panes: int, tick: Tick) -> int:
    name = f"{tuples} tuples per pane, {panes} panes per window"
    tick(name)
    kept(rows)
    ours, theirs = (side(spark, rows, tuples, panes)().sort_by("window_end") for side in (paned, windowed))
    for column in ("window_start", "window_end", "value"):
        mine, truth = (micros(one[column]) if column != "value" else one[column].to_numpy() for one in (ours, theirs))
        if not np.array_equal(mine, truth):
            raise differing(name, f"column {column}, {len(mine)} windows and {len(truth)}")
    return int(ours.num_rows)


def of(times: dict[str, Times], side: Callable[..., object], shape: tuple[int, int]) -> float:
    return times[f"{side.__name__} {shape}"].median
