"""What a micro-batch costs, in runs to fit a model to and in others to hold against it.

In: a session, loads. Out: `Measured`: a `Run` of each load, with the model fitted to some of them. Convention: a batch is a minute's file
with some rows of every group, and each query closes one window of every group with it; results go to Parquet and are counted. Processor
time is that of the driver's Python and of all its descendants, from `/proc`; so a busy machine changes it little. What the JVM
compiles it compiles in the first runs: one of every kind is run before, and those to fit and those to hold out come in mixed order.
"""

from __future__ import annotations

import os
import random
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
from pyspark.sql import SparkSession
from rich.console import Console

from benchmarks.answers import differing
from benchmarks.measuring import progress
from benchmarks.minutes import many_queries, write_minute
from benchmarks.model import Cost, Load, Model, Run, fitted
from benchmarks.processes import processor_seconds
from muntin import Engine, FileSink, Layout, Pace, Trigger

#: Groups, rows of each, queries, instances.
FITTED = (
    (1_000, 1, 1, 2), (1_000, 1, 16, 2), (1_000, 1, 4, 16), (20_000, 1, 16, 2), (20_000, 16, 1, 2), (100_000, 1, 1, 2), (100_000, 8, 4, 2),
    (300_000, 1, 1, 2), (300_000, 1, 4, 2),
)  # fmt: skip
HELD_OUT = ((5_000, 4, 8, 2), (1_000, 1, 8, 8), (50_000, 2, 2, 2), (50_000, 1, 8, 4), (200_000, 2, 1, 2), (200_000, 1, 4, 2))

PLACES = ("driver", "executors")
WARM_UPS = 4


@dataclass(frozen=True)
class Setup:
    fitted: tuple[tuple[int, int, int, int], ...] = FITTED
    held_out: tuple[tuple[int, int, int, int], ...] = HELD_OUT
    batches: int = 9
    warmups: int = 3


@dataclass
class Measured:
    """`models` by place of assembly."""

    setup: Setup
    cores: int
    fitted: list[Run] = field(default_factory=list)
    held_out: list[Run] = field(default_factory=list)
    models: dict[str, Model] = field(default_factory=dict)


def loads(numbers: tuple[tuple[int, int, int, int], ...], place: str) -> list[Load]:
    """Where the driver assembles, loads that differ only in instances are one."""
    found = [Load(groups, rows, queries, instances, place) for groups, rows, queries, instances in numbers]
    return found if place == "executors" else [one for one in found if one.instances == found[0].instances]


def run(spark: SparkSession, setup: Setup, console: Console) -> Measured:
    measured = Measured(setup, os.cpu_count() or 1)
    with progress(console, "scaling", sum(len(both(setup, place)) + WARM_UPS for place in PLACES)) as tick:
        for place in PLACES:
            plan = both(setup, place)
            random.Random(1).shuffle(plan)
            for _, one in plan[:WARM_UPS]:
                tick(f"warm-up: {one}")
                costs(spark, setup, one)
            for part, one in plan:
                tick(str(one))
                getattr(measured, part).append(Run(one, costs(spark, setup, one)))
            measured.models[place] = fitted([each for each in measured.fitted if each.load.place == place], measured.cores)
    return measured


def both(setup: Setup, place: str) -> list[tuple[str, Load]]:
    """All loads in a place, each with what it is for."""
    return [(part, one) for part in ("fitted", "held_out") for one in loads(getattr(setup, part), place)]


def costs(spark: SparkSession, setup: Setup, load: Load) -> Cost:
    with tempfile.TemporaryDirectory(prefix="muntin-scaling-") as scratch:
        directory = Path(scratch)
        (directory / "minutes").mkdir()
        for minute in range(setup.batches):
            write_minute(directory / "minutes", minute, load.groups, load.rows)
        engine = Engine(spark, assembly=load.place, instances=load.instances)
        engine.execute(many_queries(directory / "minutes", load.queries))
        seen: list[tuple[float, float, float]] = []

        def look(_: object) -> None:
            seen.append((time.perf_counter(), *processor_seconds()))

        sink = FileSink(directory / "out", "parquet", Layout.PARTS)
        engine.start(sink, checkpoint=directory / "state", trigger=Trigger(Pace.AVAILABLE_NOW), on_progress=look).wait()
        check(directory / "out", load, setup.batches - 1)
    return average(seen[setup.warmups - 1 :])


def average(seen: list[tuple[float, float, float]]) -> Cost:
    """Of the batches between the looks: the median on the wall, where others get in the way, and the mean of the processor's ticks."""
    ends, *processor = zip(*seen, strict=True)
    return Cost(float(np.median(np.diff(ends))), *((each[-1] - each[0]) / (len(each) - 1) for each in processor))


def check(out: Path, load: Load, windows: int) -> None:
    """Every query has a result of every group for each window that closed."""
    for query in range(load.queries):
        found = sum(pq.ParquetFile(part).metadata.num_rows for part in (out / f"q{query}").glob("*.parquet"))
        if found != windows * load.groups:
            raise differing(str(load), f"{found:,} results of query q{query}, {windows * load.groups:,} expected")
