"""A contest: one workload by every strategy and in plain Spark, over the same cached hour of trades in one process.

In: a session, a workload, its size. Out: an `Outcome`: checked answers, times and aggregations per strategy and number of queries.
Convention: what is cached are the trades and the static tables as they are; whoever joins them does so while it is timed. Plain Spark
and the sampled strategies run `measured` of the queries, spread evenly over all of them; for more queries the time per query is
multiplied, and `Timing.scaled` says so. Muntin's time is `engine.run()`: from the cached DataFrame to the tables of all windows of all
queries in memory. A single job in plain Spark ends likewise with all results in one Arrow table.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from rich.console import Console

from benchmarks.answers import check_all_same
from benchmarks.baselines import PlainSpark, by_query
from benchmarks.counting import Aggregations, Scheme
from benchmarks.fragments import JoinedRows, aggregations, lineage
from benchmarks.measuring import Task, Tick, Times, interleaved, progress, runs, spread
from benchmarks.outcome import Outcome, Setup, Timing, Work
from benchmarks.performed import performed
from benchmarks.workloads import PLAIN, SELDOM, Form, Strategy, Workload
from muntin import Engine, Results, Sharing
from muntin.demo.workloads import WindowedSum
from muntin.spark.generator import closing_prices, index_membership, trades

Tables = dict[str, pa.Table]


class Arena:
    """The cached trades and tables, and what can be run over them."""

    def __init__(self, spark: SparkSession, workload: Workload, setup: Setup) -> None:
        self.spark = spark
        self.queries = workload.queries(max(setup.queries))
        self.trades = trades(spark, rows=setup.rows)
        self.tables = {"close": closing_prices(spark), "index": index_membership(spark)}
        self.plain = PlainSpark(spark, self.trades, **self.tables)
        self.prepare()

    @property
    def frames(self) -> list[DataFrame]:
        return [self.trades, *self.tables.values()]

    def prepare(self) -> None:
        """All is in memory. Some runs end with unpersisting their DataFrame, and with it everybody's cached copy."""
        for frame in self.frames:
            if not frame.storageLevel.useMemory:
                frame.cache().count()

    def close(self) -> None:
        for frame in self.frames:
            frame.unpersist()

    def engine(self, strategy: Strategy, queries: Sequence[WindowedSum]) -> Engine:
        engine = Engine(self.spark, sharing=strategy.sharing, slicing=strategy.slicing)
        engine.stream("trades", self.trades, time="ts")
        for name, frame in self.tables.items():
            engine.table(name, frame)
        for query in queries:
            engine.add(query.select, name=query.name)
        return engine


def run(workload: Workload, spark: SparkSession, setup: Setup, console: Console) -> Outcome:
    outcome = Outcome(setup)
    arena = Arena(spark, workload, setup)
    again = sum(strategy.sharing is Sharing.AUTOMATIC for strategy in workload.whole)
    checks = setup.checked + len(workload.sampled) + (len(workload.forms) + len(workload.whole) + again) * len(setup.queries)
    with progress(console, f"{workload.name}: checking answers", checks) as tick:
        tasks = Check(arena, workload, outcome, tick).tasks()
    total = runs(tasks, rounds=setup.rounds, warmups=setup.warmups)
    with progress(console, f"{workload.name}: timing", total) as tick:
        times = interleaved(tasks, rounds=setup.rounds, warmups=setup.warmups, prepare=arena.prepare, tick=tick)
    gather(outcome, workload, times)
    if workload.forms:
        count_by_definition(arena, outcome)
    arena.close()
    return outcome


class Check:
    """Runs everything once, compares its answers with those of plain Spark and of each other, and makes tasks of it."""

    def __init__(self, arena: Arena, workload: Workload, outcome: Outcome, tick: Tick) -> None:
        self.arena, self.workload, self.outcome, self.tick = arena, workload, outcome, tick
        self.truth: Tables = {}
        self.known: Tables = {}

    def tasks(self) -> list[Task]:
        setup, arena = self.outcome.setup, self.arena
        for query in spread(arena.queries, setup.checked):
            self.truth[query.name] = self._timed(PLAIN, arena.plain.per_query(query))
        self.known |= self.truth
        found = [Task(f"{PLAIN} {query.name}", arena.plain.per_query(query)) for query in spread(arena.queries, setup.measured)]
        for queries in sorted(setup.queries, reverse=True):
            found += [self._form(form, arena.queries[:queries]) for form in self.workload.forms]
        for strategy in self.workload.sampled:
            self._engine(strategy, spread(arena.queries, setup.checked))
            found.append(Task(strategy.name, arena.engine(strategy, spread(arena.queries, setup.measured)).run))
        for queries in sorted(setup.queries, reverse=True):
            found += [self._engine(strategy, arena.queries[:queries]) for strategy in self.workload.whole]
        return found

    def _form(self, form: Form, queries: Sequence[WindowedSum]) -> Task:
        name, job = f"{form.value} {len(queries)}", form.job(self.arena.plain, queries)
        self._compare(name, by_query(self._timed(name, job)))
        return Task(name, job, every=SELDOM)

    def _engine(self, strategy: Strategy, queries: Sequence[WindowedSum]) -> Task:
        name = f"{strategy.name} {len(queries)}"
        began = time.perf_counter()
        engine = self.arena.engine(strategy, queries)
        self.outcome.adding_seconds = max(self.outcome.adding_seconds, time.perf_counter() - began)
        results = self._timed(name, engine.run)
        self._compare(name, {query: results[query] for query in results})
        if strategy.sharing is Sharing.AUTOMATIC:  # what is timed is the plan chosen from what a first run shows
            results = self._timed(name, engine.run)
        self.outcome.work.append(work_of(strategy.name, len(queries), results))
        return Task(name, engine.run, every=strategy.every)

    def _timed(self, name: str, run: Callable[[], Any]) -> Any:
        """Run something once; what a name took altogether is kept."""
        self.tick(name)
        self.arena.prepare()
        began = time.perf_counter()
        found = run()
        self.outcome.once[name] = self.outcome.once.get(name, 0.0) + time.perf_counter() - began
        return found

    def _compare(self, name: str, tables: Mapping[str, pa.Table]) -> None:
        """With what plain Spark says, one query at a time, and with what was found before of all other queries."""
        self.outcome.rows_compared += check_all_same(name, tables, self.known)
        self.known |= tables


def work_of(strategy: str, queries: int, results: Results) -> Work:
    (job,) = results.jobs.values()
    counts = job.assembly.aggregations
    return Work(strategy, queries, Aggregations(job.assembly.once.slices_seen, counts.partial, counts.final), performed(job.assembly.once))


def gather(outcome: Outcome, workload: Workload, times: Mapping[str, Times]) -> None:
    """Medians per strategy and number of queries; one plain query is the median of the medians of those run."""
    setup = outcome.setup
    measured = min(setup.measured, outcome.most)
    plain = [one for name, one in times.items() if name.startswith(PLAIN)]
    outcome.one_plain = statistics.median(one.median for one in plain)
    per_round = Times(tuple(statistics.median(one.seconds[at] for one in plain) for at in range(setup.rounds)))
    for queries in setup.queries:
        best, worst = per_round.best * queries, per_round.worst * queries
        outcome.timings.append(Timing(PLAIN, queries, outcome.one_plain * queries, best, worst, scaled=queries != measured))
        for strategy in workload.sampled:
            outcome.timings.append(timing(strategy.name, queries, times[strategy.name], queries / measured))
        for name in (*(form.value for form in workload.forms), *(strategy.name for strategy in workload.whole)):
            outcome.timings.append(timing(name, queries, times[f"{name} {queries}"], 1.0))


def timing(name: str, queries: int, times: Times, factor: float) -> Timing:
    return Timing(name, queries, times.median * factor, times.best * factor, times.worst * factor, scaled=factor != 1)


def count_by_definition(arena: Arena, outcome: Outcome) -> None:
    """The paper's schemes on these rows, for the most queries."""
    arena.prepare()
    found = lineage(JoinedRows.of(arena.plain.joined.toArrow()), arena.queries)
    outcome.fragments = found.fragments()
    outcome.definition = {scheme.value: aggregations(found, arena.queries, scheme) for scheme in Scheme}
