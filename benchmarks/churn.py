"""Churn: queries join and leave a running job, a thousand times, over 256 standing queries.

In: a session, numbers of queries, changes and micro-batches. Out: `ChurnOutcome`: times with and without churn, when each change was in
effect, and answers compared.
Convention: times are taken in several processes, since what the JVM's compiler makes of the same code differs between them by as much as
churn costs. Standing queries are workload C regular. A visitor is a query of its own, with a short window, that joins, stays for some
batches and leaves. A run without churn has as many visitors as one with churn has at a time, all there from the start: what differs is
that nobody comes or goes. How much the standing queries take alone is told beside it. Changes are asked for by a thread beside the job,
after each batch, through `engine.add` and `engine.drop`; the version of the registry that each batch ran under says from which batch on
a change was in effect. Every query's answers are held against plain Spark's: those windows that start after the last row before it
joined, and that were complete before it left.
"""

from __future__ import annotations

import tempfile
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyspark.sql import SparkSession
from rich.console import Console

from benchmarks.answers import check_same, micros
from benchmarks.apart import apart
from benchmarks.baselines import PlainSpark, by_query
from benchmarks.batches import ONE_A_BATCH, write_batch
from benchmarks.measuring import Tick, progress, spread
from benchmarks.visits import Change, Kind, Visit, schedule, visits
from muntin import Engine, MemorySink, Pace, RunningJob, Trigger, session
from muntin.demo.workloads import TRADES, workload_c_regular
from muntin.spark.generator import closing_prices, index_membership, trades


@dataclass(frozen=True)
class Setup:
    """`changes` are joins and leaves together; a visitor stays `stay` micro-batches; `checked` queries of either kind are compared.

    `rounds` are those of each process, after one to warm up.
    """

    queries: int = 256
    changes: int = 1_000
    batches: int = 60
    stay: int = 5
    rows: int = 48_000_000
    processes: int = 4
    rounds: int = 1
    checked: int = 32
    memory: str = "8g"

    @property
    def at_a_time(self) -> int:
        """Visitors that are there at a time."""
        return self.changes // 2 * self.stay // (self.batches - self.stay - 1)


class Mode(Enum):
    ALONE = "standing queries alone"
    STEADY = "without churn"
    CHURNING = "with churn"


@dataclass(frozen=True)
class Applied:
    """A change that was made: the version it made, the batches done when it was asked for, and how long asking took."""

    change: Change
    version: int
    done: int
    seconds: float


@dataclass
class Run:
    """One run: its seconds, those of each batch, the version each batch ran under, and the changes that were made."""

    seconds: float = 0.0
    ended: list[float] = field(default_factory=list)
    versions: list[int] = field(default_factory=list)
    queries: list[int] = field(default_factory=list)
    applied: list[Applied] = field(default_factory=list)

    def effective(self, version: int) -> int:
        """The first batch that ran under this version or a later one; one past the last if none did."""
        return next((at for at, used in enumerate(self.versions) if used >= version), len(self.versions))

    def waited(self) -> list[int]:
        """For each change, how many batches began under an older version after it was asked for, the one in hand not counted."""
        return [max(0, self.effective(one.version) - one.done - 1) for one in self.applied]

    @property
    def in_effect(self) -> int:
        return sum(1 for one in self.applied if self.effective(one.version) < len(self.versions))


@dataclass
class ChurnOutcome:
    setup: Setup
    runs: dict[Mode, list[Run]] = field(default_factory=lambda: {mode: [] for mode in Mode})
    rows_compared: int = 0
    queries_compared: int = 0


@dataclass(frozen=True)
class Case:
    """What one process does: the files are there already."""

    setup: Setup
    directory: Path
    number: int


def written(spark: SparkSession, setup: Setup, directory: Path) -> list[int]:
    """Write the files of the stream, and tell when the last row of each is."""
    (directory / "trades").mkdir()
    rows = trades(spark, rows=setup.rows).toArrow().sort_by("ts")
    cuts = np.linspace(0, rows.num_rows, setup.batches + 1).astype(int)
    for number, (start, end) in enumerate(pairwise(cuts)):
        write_batch(directory / "trades", number, rows.slice(start, end - start))
    return [int(micros(rows["ts"].slice(end - 1, 1))[0]) for end in cuts[1:]]


class Arena:
    """How to run a job over the files of the stream."""

    def __init__(self, spark: SparkSession, setup: Setup, directory: Path) -> None:
        self.spark, self.setup, self.directory = spark, setup, directory
        self.standing = workload_c_regular(setup.queries)
        self.visits = visits(setup.changes // 2, batches=setup.batches, stay=setup.stay)
        self.source = directory / "trades"

    def engine(self) -> Engine:
        engine = Engine(self.spark)
        engine.execute(f"CREATE STREAM trades ({TRADES}) WITH ({ONE_A_BATCH.format(path=self.source)})")
        engine.table("close", closing_prices(self.spark))
        engine.table("index", index_membership(self.spark))
        for query in self.standing:
            engine.add(query.select, name=query.name)
        return engine

    def run(self, name: str, mode: Mode) -> tuple[Run, MemorySink]:
        """Everything there is, one file a batch, on a checkpoint of its own."""
        engine, sink, found = self.engine(), MemorySink(), Run()
        for visit in self.visits[: self.setup.at_a_time] if mode is Mode.STEADY else ():
            engine.add(visit.query.select, name=visit.query.name)
        jobs: list[RunningJob] = []

        def note(_: object) -> None:
            found.ended.append(time.perf_counter())
            found.versions.append(jobs[0].jobs["trades"].used if jobs else engine.registry.version)
            found.queries.append(len(engine.queries))

        began = time.perf_counter()
        trigger = Trigger(Pace.AVAILABLE_NOW)
        jobs.append(engine.start(sink, checkpoint=self.directory / f"checkpoint {name}", trigger=trigger, on_progress=note))
        visitors = Visitors(engine, schedule(self.visits, self.setup.batches) if mode is Mode.CHURNING else [], found)
        visitors.start()
        jobs[0].wait()
        visitors.join()
        found.seconds = time.perf_counter() - began
        found.ended = [moment - began for moment in found.ended]
        return found, sink


class Visitors(threading.Thread):
    """Asks for the changes of each batch once it is done."""

    def __init__(self, engine: Engine, changes: Sequence[Sequence[Change]], run: Run) -> None:
        super().__init__(daemon=True)
        self.engine, self.changes, self.run_in = engine, changes, run

    def run(self) -> None:
        for batch, changes in enumerate(self.changes):
            while len(self.run_in.versions) <= batch:
                time.sleep(0.005)
            for change in changes:
                self._ask(change)

    def _ask(self, change: Change) -> None:
        done, began = len(self.run_in.versions), time.perf_counter()
        if change.kind is Kind.JOIN:
            self.engine.add(change.query.select, name=change.query.name)
        else:
            self.engine.drop(change.query.name)
        self.run_in.applied.append(Applied(change, self.engine.registry.version, done, time.perf_counter() - began))


def run(spark: SparkSession, setup: Setup, console: Console) -> ChurnOutcome:
    """A run with churn is checked here; all are timed in other processes."""
    outcome, runs = ChurnOutcome(setup), len(Mode) * (1 + setup.rounds)
    with (
        tempfile.TemporaryDirectory(prefix="muntin-churn-") as scratch,
        progress(console, "churn", 3 + setup.processes * runs) as tick,
    ):
        tick("writing trades")
        last = written(spark, setup, Path(scratch))
        tick("with churn, to be checked")
        arena = Arena(spark, setup, Path(scratch))
        check(arena, last, *arena.run("checked", Mode.CHURNING), outcome, tick)
        for number in range(setup.processes):
            for mode, found in apart(taking_turns, Case(setup, Path(scratch), number), tick):
                outcome.runs[mode].append(found)
    return outcome


def taking_turns(case: Case, tick: Tick) -> list[tuple[Mode, Run]]:
    """Each mode once to warm up, then in turns; which comes first changes from process to process."""
    spark = session("muntin benchmarks", **{"spark.driver.memory": case.setup.memory, "spark.driver.maxResultSize": "0"})
    try:
        arena, found = Arena(spark, case.setup, case.directory), []
        modes = [*Mode][case.number % len(Mode) :] + [*Mode][: case.number % len(Mode)]
        for turn in range(1 + case.setup.rounds):
            for mode in modes:
                tick(f"process {case.number + 1} of {case.setup.processes}, {mode.value}{', to warm up' * (not turn)}")
                ran, _ = arena.run(f"{case.number} {turn} {mode.name}", mode)
                found += [(mode, ran)] if turn else []
        return found
    finally:
        spark.stop()


def check(arena: Arena, last: Sequence[int], found: Run, sink: MemorySink, outcome: ChurnOutcome, tick: Tick) -> None:
    """Standing queries and visitors, spread over all."""
    tick("plain Spark")
    lives = {query: (0, len(found.versions)) for query in arena.standing} | {visit.query: life(visit, found) for visit in arena.visits}
    chosen = spread(arena.standing, arena.setup.checked) + spread([visit.query for visit in arena.visits], arena.setup.checked)
    plain = PlainSpark(arena.spark, arena.spark.read.parquet(str(arena.source)), closing_prices(arena.spark), index_membership(arena.spark))
    truth = by_query(plain.exploded(chosen)())
    for query in chosen:
        expected = while_there(truth[query.name], lives[query], last) if query.name in truth else sink.table(query.name).slice(0, 0)
        outcome.rows_compared += check_same(query.name, sink.table(query.name), expected)
    outcome.queries_compared = len(chosen)


def life(visit: Visit, found: Run) -> tuple[int, int]:
    """The batch a visitor joined with, and the one it was no longer there for."""
    versions = {one.change.kind: one.version for one in found.applied if one.change.query == visit.query}
    joined, left = (found.effective(versions[kind]) if kind in versions else len(found.versions) for kind in Kind)
    return joined, left


def while_there(table: pa.Table, there: tuple[int, int], last: Sequence[int]) -> pa.Table:
    """The windows that start after every row before the first batch, and end by the last row before the other."""
    joined, left = there
    since = last[joined - 1] if joined else -(2**63)
    until = last[left - 1] if left > joined else -(2**63)
    return table.filter(pa.array((micros(table["window_start"]) > since) & (micros(table["window_end"]) <= until)))
