"""What an instance's turn costs: absorbing a batch, by the groups it touches; closing a window, by the groups alive in it.

In: numbers of groups alive in the window and of groups that a batch touches. Out: `Turned`, seconds of the processor for each.
Convention: a turn is what an executor does: the assembly is taken up from its folder, steps, and is left there. A window of some minutes
is full before anything is measured, and as many groups again as the smallest case has were alive before it and are gone. One process a
case; the counts of the windows that close are checked.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyspark.sql import SparkSession
from rich.console import Console

from benchmarks.answers import differing
from benchmarks.apart import apart
from benchmarks.long_windows import STREAM, states_of
from benchmarks.measuring import Tick, progress
from muntin.aggregates import AGGREGATES
from muntin.plan.family import BUCKETS
from muntin.plan.shared import SharedPlan, shared_plan
from muntin.query.check import check_pipeline
from muntin.spark.folders import Folder
from muntin.timeline import MINUTE
from muntin.windows.assembly import Assembly
from muntin.windows.shards import Partials
from muntin.windows.turns import Taking, Turn

QUERY = "CREATE QUERY q AS SELECT g, count(*) AS n, sum(x) AS s, max(x) AS m FROM s [RANGE {} minutes SLIDE 1 minute] GROUP BY g;"


@dataclass(frozen=True)
class Setup:
    alive: tuple[int, ...] = (50_000, 100_000, 200_000, 400_000)
    touched: tuple[int, ...] = (1_000, 10_000, 50_000)
    minutes: int = 10
    rounds: int = 7


@dataclass(frozen=True)
class Case:
    alive: int
    gone: int
    setup: Setup


@dataclass(frozen=True)
class Turned:
    """Median seconds of the processor: by number of groups touched, and to close one window with all that are alive."""

    alive: int
    absorbing: dict[int, float]
    closing: float
    checked: int


def run(_: SparkSession, setup: Setup, console: Console) -> list[Turned]:
    cases = [Case(alive, min(setup.alive), setup) for alive in setup.alive]
    with progress(console, "touched", len(cases)) as tick:
        return [apart(turned, case, tick) for case in cases]


def turned(case: Case, tick: Tick = lambda _: None) -> Turned:
    tick(f"{case.alive:,} groups alive")
    setup = case.setup
    with tempfile.TemporaryDirectory(prefix="muntin-touched-") as scratch:
        instance = Instance(Path(scratch) / "state", setup.minutes)
        instance.take(range(case.alive, case.alive + case.gone), minute=0)
        for minute in range(1, 2 * setup.minutes + 1):
            instance.take(range(case.alive), minute=minute)
        absorbing: dict[int, list[float]] = {touched: [] for touched in setup.touched}
        closing, checked = [], 0
        for minute in range(2 * setup.minutes + 1, 2 * setup.minutes + 1 + setup.rounds):
            # The minute's slice is there already when a batch that is measured comes, as in all but the first batch of a minute.
            instance.take(range(case.alive), minute=minute, closing=False)
            for touched in setup.touched:
                some = np.linspace(0, case.alive - 1, touched, dtype=np.int64)
                absorbing[touched].append(instance.take(some, minute=minute, closing=False)[0])
            took, rows = instance.take((), minute=minute)
            closing.append(took)
            checked += check(case, rows, minute)
    return Turned(
        case.alive, {touched: statistics.median(took) for touched, took in absorbing.items()}, statistics.median(closing), checked
    )


class Instance:
    """An assembly in a folder, one turn after another."""

    def __init__(self, path: Path, minutes: int) -> None:
        self.path, self.turns = path, 0
        self.plan: SharedPlan = shared_plan(
            check_pipeline(STREAM + QUERY.format(minutes), AGGREGATES).queries, AGGREGATES, spread=lambda _: True
        )
        folder = Folder(path)
        folder.clear()
        folder.save("0", Assembly(self.plan, arena=folder))

    def take(self, groups: Iterator[int] | np.ndarray | range | tuple[()], *, minute: int, closing: bool = True) -> tuple[float, int]:
        """A turn with a row of each of these groups; the processor's seconds, and how many results came."""
        turn = Turn(self.plan, (minute + closing) * MINUTE, minute * MINUTE)
        partials = self._partials(np.asarray(groups, dtype=np.int64), minute)
        began = time.process_time()
        folder = Folder(self.path)
        taking = Taking(folder.load(str(self.turns)), turn, [partials])
        results = sum(chunk.table.num_rows for chunk in taking.results())
        folder.save(str(self.turns + 1), taking.assembly)
        self.turns += 1
        return time.process_time() - began, results

    def _partials(self, groups: np.ndarray, minute: int) -> Partials:
        keys = (pa.array(groups), pa.array((groups % BUCKETS).astype(np.int32)))
        values = np.random.default_rng(minute).random(len(groups))
        return Partials(np.full(len(groups), minute * MINUTE), keys, states_of(self.plan.groupings[0], values))


def check(case: Case, rows: int, minute: int) -> int:
    if rows != case.alive:
        raise differing(f"{case.alive} groups alive", f"{rows} results of the window that ends with minute {minute}")
    return rows
