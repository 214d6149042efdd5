"""Workload A: queries that differ only in their windows, by five strategies, over the same cached hour of trades in one process.

In: a session, the numbers of queries, rows and rounds. Out: `WorkloadA`: checked answers, times and aggregations per strategy.
Convention: plain Spark is one sliding `window()` job per query. Plain and unshared strategies run `measured` of the queries, each
or all of which are timed in every round; for more queries the time per query is multiplied, and `Timing.scaled` says so.
A shared strategy's time is `engine.run()`: from the cached DataFrame to the tables of all windows of all queries in memory.
Paper: on-the-fly-sharing-2006, section 6.2 and Table 8.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from rich.console import Console

from benchmarks.answers import check_all_same
from benchmarks.counting import Aggregations, Scheme
from benchmarks.measuring import Task, Tick, Times, interleaved, progress
from muntin import Engine, Results, Sharing, Slicing
from muntin.demo.workloads import WindowedSum, workload_a
from muntin.spark.generator import ROWS, trades

PLAIN = "plain Spark"
STRATEGIES = {f"{scheme.value} {slicing.value}": (scheme, slicing) for scheme in Scheme for slicing in Slicing}
SHARED = [name for name, (scheme, _) in STRATEGIES.items() if scheme is Scheme.SHARED]
UNSHARED = [name for name, (scheme, _) in STRATEGIES.items() if scheme is Scheme.UNSHARED]


@dataclass(frozen=True)
class Setup:
    """What to run. `checked` queries are also run one by one, once, before the timing, and compared with all strategies."""

    queries: tuple[int, ...] = (16, 32, 64, 128, 256)
    rows: int = ROWS
    rounds: int = 7
    warmups: int = 2
    measured: int = 16
    checked: int = 16


@dataclass(frozen=True)
class Timing:
    """A strategy's median for some number of queries; `scaled` where fewer were run and their time was multiplied."""

    strategy: str
    queries: int
    seconds: float
    best: float
    worst: float
    scaled: bool


@dataclass(frozen=True)
class Work:
    """A strategy's aggregations for the queries it ran: by the paper's definition, and combines as performed by assembly."""

    strategy: str
    queries: int
    counted: Aggregations
    performed: int


@dataclass
class WorkloadA:
    """The whole outcome."""

    setup: Setup
    rows_compared: int = 0
    one_plain: float = 0.0
    adding_seconds: float = 0.0
    once: dict[str, float] = field(default_factory=dict)
    timings: list[Timing] = field(default_factory=list)
    work: list[Work] = field(default_factory=list)

    def seconds(self, strategy: str, queries: int) -> float:
        return next(one.seconds for one in self.timings if (one.strategy, one.queries) == (strategy, queries))


class Contest:
    """The cached trades, and an engine per strategy and number of queries."""

    def __init__(self, spark: SparkSession, setup: Setup) -> None:
        self.spark = spark
        self.setup = setup
        self.frame: DataFrame = trades(spark, rows=setup.rows)
        self.all_queries = workload_a(max(setup.queries))
        self.prepare()

    def prepare(self) -> None:
        """The trades are in memory. An unshared run ends with unpersisting its DataFrame, and with it everybody's cached copy."""
        if not self.frame.storageLevel.useMemory:
            self.frame.cache().count()

    def engine(self, strategy: str, queries: int) -> Engine:
        """Shared is what an engine does if nothing else is asked for."""
        scheme, slicing = STRATEGIES[strategy]
        engine = Engine(self.spark, slicing=slicing)
        if scheme is Scheme.UNSHARED:
            engine = Engine(self.spark, sharing=Sharing.UNSHARED, slicing=slicing)
        engine.stream("trades", self.frame, time="ts")
        for query in self.all_queries[:queries]:
            engine.add(query.select, name=query.name)
        return engine

    def plain(self, query: WindowedSum) -> pa.Table:
        """The query as a Spark user writes it; ends are multiples of SLIDE, so starts are offset by what RANGE leaves."""
        window = F.window("ts", f"{query.range} seconds", f"{query.slide} seconds", f"{-query.range % query.slide} seconds")
        value = F.sum(F.col("price") * F.col("vol")).alias("value")
        bounds = [F.col("window.start").alias("window_start"), F.col("window.end").alias("window_end")]
        return self.frame.groupBy(window).agg(value).select(*bounds, "value").toArrow()


def run(spark: SparkSession, setup: Setup, console: Console) -> WorkloadA:
    outcome = WorkloadA(setup)
    contest = Contest(spark, setup)
    measured, rounds = min(setup.measured, max(setup.queries)), setup.rounds + setup.warmups
    with progress(console, "workload A: checking answers", setup.checked + len(UNSHARED) + len(SHARED) * len(setup.queries)) as tick:
        engines = check(contest, outcome, tick)
    tasks = [Task(f"{PLAIN} {query.name}", partial(contest.plain, query)) for query in contest.all_queries[:measured]]
    for name in UNSHARED:
        tasks.append(Task(name, contest.engine(name, measured).run))
    tasks += [Task(f"{name} {queries}", engine.run) for (name, queries), engine in engines.items()]
    with progress(console, "workload A: timing", rounds * len(tasks)) as tick:
        times = interleaved(tasks, rounds=setup.rounds, warmups=setup.warmups, prepare=contest.prepare, tick=tick)
    contest.frame.unpersist()
    gather(outcome, times, measured)
    return outcome


def check(contest: Contest, outcome: WorkloadA, tick: Tick) -> dict[tuple[str, int], Engine]:
    """Every strategy against plain Spark, shared against unshared and paned against paired, before anything is timed."""
    setup = outcome.setup
    truth: dict[str, pa.Table] = {}
    for query in contest.all_queries[: setup.checked]:
        tick(f"{PLAIN} {query.name}")
        began = time.perf_counter()
        truth[query.name] = contest.plain(query)
        outcome.once[PLAIN] = outcome.once.get(PLAIN, 0.0) + time.perf_counter() - began
    known = dict(truth)
    for name in UNSHARED:
        known |= compared(contest, contest.engine(name, setup.checked), name, setup.checked, [truth], outcome, tick)
    engines = {}
    for queries in sorted(setup.queries, reverse=True):
        for name in SHARED:
            began = time.perf_counter()
            engine = engines[name, queries] = contest.engine(name, queries)
            outcome.adding_seconds = max(outcome.adding_seconds, time.perf_counter() - began)
            known |= compared(contest, engine, name, queries, [truth, known], outcome, tick)
    return engines


def compared(
    contest: Contest, engine: Engine, name: str, queries: int, truths: Sequence[dict[str, pa.Table]], outcome: WorkloadA, tick: Tick
) -> dict[str, pa.Table]:
    """Run one strategy once and compare its tables with those found before."""
    tick(f"{name} {queries}")
    contest.prepare()
    began = time.perf_counter()
    results = engine.run()
    outcome.once[f"{name} {queries}"] = time.perf_counter() - began
    tables = {query: results[query] for query in results}
    outcome.rows_compared += sum(check_all_same(f"{name} {queries}", tables, truth) for truth in truths)
    outcome.work.append(work_of(name, queries, results))
    return tables


def work_of(name: str, queries: int, results: Results) -> Work:
    (job,) = results.jobs.values()
    counts = job.assembly.aggregations
    performed = sum(store.work.combines for store in job.assembly.stores)
    return Work(name, queries, Aggregations(job.assembly.slices_seen, counts.partial, counts.final), performed)


def gather(outcome: WorkloadA, times: dict[str, Times], measured: int) -> None:
    """Medians per strategy and number of queries; one plain query is the median of the medians of those run."""
    plain = [one for name, one in times.items() if name.startswith(PLAIN)]
    outcome.one_plain = statistics.median(one.median for one in plain)
    spread = Times(tuple(statistics.median(one.seconds[at] for one in plain) for at in range(outcome.setup.rounds)))
    for queries in outcome.setup.queries:
        outcome.timings.append(
            Timing(PLAIN, queries, outcome.one_plain * queries, spread.best * queries, spread.worst * queries, queries != measured)
        )
        for name in UNSHARED:
            one, factor = times[name], queries / measured
            outcome.timings.append(Timing(name, queries, one.median * factor, one.best * factor, one.worst * factor, queries != measured))
        for name in SHARED:
            one = times[f"{name} {queries}"]
            outcome.timings.append(Timing(name, queries, one.median, one.best, one.worst, scaled=False))
    check_slices(outcome)


def check_slices(outcome: WorkloadA) -> None:
    """Theorem 1: paired never has more slices than paned."""
    slices = {(one.strategy, one.queries): one.counted.slices for one in outcome.work}
    for (strategy, queries), paired in slices.items():
        if strategy.endswith(Slicing.PAIRED.value):
            assert paired <= slices[strategy.replace(Slicing.PAIRED.value, Slicing.PANED.value), queries], (strategy, queries)
