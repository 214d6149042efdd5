"""From 1 to 1,000 queries over the same rows: what does the time grow by?

In: a session, numbers of queries, rows and rounds. Out: `Growth`: checked answers, times, and what Spark compiled.
Convention: trades are read from Parquet files on disk, results go to one sink in memory; a time is `engine.run()`, median of interleaved
rounds. Parsing (text to checked queries) and planning are timed apart: a run goes on with the plan that an earlier one left. The
rows are an hour's, so that there are as many windows of ten minutes per query as in the paper.

    windows      random windows, no predicate                   workload A
    predicates   random windows, each with a random predicate   workload C low sharing: three expressions, three memberships, two joins
"""

from __future__ import annotations

import statistics
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
from pyspark.sql import SparkSession
from rich.console import Console

from benchmarks.answers import check_all_same
from benchmarks.apart import apart
from benchmarks.baselines import PlainSpark
from benchmarks.compiling import Case, Compilations, compilations
from benchmarks.measuring import Task, Tick, Times, interleaved, progress, spread, timed
from muntin import Engine
from muntin.demo.workloads import WindowedSum, pipeline, workload_a, workload_c_low_sharing
from muntin.plan.shared import shared_plan
from muntin.spark.generator import SECONDS, closing_prices, index_membership, write_files


@dataclass(frozen=True)
class Kind:
    """How queries differ, and how many times the time of one query the most of them may take."""

    name: str
    queries: Callable[[int], list[WindowedSum]]
    allowed: float


KINDS = (Kind("windows", workload_a, 1.5), Kind("predicates", workload_c_low_sharing, 6.0))


@dataclass(frozen=True)
class Setup:
    """`checked` queries are also run in plain Spark; `batches` of `batch_rows` each are streamed to count compilations."""

    counts: tuple[int, ...] = (1, 10, 100, 1_000)
    rows: int = 12_000_000
    seconds: int = SECONDS
    rounds: int = 5
    warmups: int = 1
    checked: int = 8
    batches: int = 20
    batch_rows: int = 20_000


@dataclass(frozen=True)
class Point:
    """One kind and number of queries: seconds of a run, and of parsing and planning."""

    kind: str
    queries: int
    seconds: float
    best: float
    worst: float
    parsing: float
    planning: float
    results: int


@dataclass
class Growth:
    setup: Setup
    points: list[Point] = field(default_factory=list)
    compiled: list[Compilations] = field(default_factory=list)
    rows_compared: int = 0

    def of(self, kind: str) -> list[Point]:
        return sorted((point for point in self.points if point.kind == kind), key=lambda point: point.queries)

    def growth(self, kind: str) -> float:
        """How many times the time of the fewest queries the most take."""
        return self.of(kind)[-1].seconds / self.of(kind)[0].seconds


@dataclass(frozen=True)
class Contender:
    """An engine with some queries, its parsing and planning timed once."""

    kind: Kind
    queries: int
    engine: Engine
    parsing: float
    planning: float
    results: int

    @property
    def name(self) -> str:
        return f"{self.kind.name} {self.queries}"


def run(spark: SparkSession, setup: Setup, console: Console) -> Growth:
    outcome = Growth(setup)
    steps = len(KINDS) * (setup.checked + len(setup.counts))
    with tempfile.TemporaryDirectory(prefix="muntin-queries-") as scratch:
        directory = Path(scratch)
        with progress(console, "queries: checking answers", steps + 1) as tick:
            tick("writing trades")
            write_files(spark, directory, rows=setup.rows, seconds=setup.seconds)
            found = [one for kind in KINDS for one in checked(spark, kind, directory, outcome, tick)]
        tasks = [Task(one.name, one.engine.run) for one in found]
        with progress(console, "queries: timing", (setup.rounds + setup.warmups) * len(tasks)) as tick:
            times = interleaved(tasks, rounds=setup.rounds, warmups=setup.warmups, prepare=lambda: None, tick=tick)
    outcome.points = [point(one, times[one.name]) for one in found]
    cases = [Case(kind.queries.__name__, max(setup.counts), setup.batches, setup.batch_rows) for kind in KINDS]
    with progress(console, "queries: counting compilations", setup.batches * len(cases)) as tick:
        outcome.compiled = apart(compilations, cases, tick)
    return outcome


def checked(spark: SparkSession, kind: Kind, directory: Path, outcome: Growth, tick: Tick) -> list[Contender]:
    """An engine for each number of queries; some queries are compared with plain Spark, all with the same query among fewer."""
    setup = outcome.setup
    queries = kind.queries(max(setup.counts))
    plain = PlainSpark(spark, spark.read.parquet(str(directory / "trades")), closing_prices(spark), index_membership(spark))
    known: dict[str, pa.Table] = {}
    for query in spread(queries, setup.checked):
        tick(f"plain Spark {query.name}")
        known[query.name] = plain.per_query(query)()
    found = []
    for count in sorted(setup.counts, reverse=True):
        tick(f"{kind.name} {count}")
        one, tables = contender(spark, kind, queries[:count], directory)
        outcome.rows_compared += check_all_same(one.name, tables, known)
        known |= tables
        found.append(one)
    return found


def contender(spark: SparkSession, kind: Kind, queries: Sequence[WindowedSum], directory: Path) -> tuple[Contender, dict[str, pa.Table]]:
    engine, text = Engine(spark), pipeline(queries, directory)
    parsing = timed(lambda: engine.execute(text))
    results = engine.run()
    planning = statistics.median(timed(lambda: shared_plan(engine.queries, engine.aggregates)) for _ in range(3))
    tables = {name: results[name] for name in results}
    return Contender(kind, len(queries), engine, parsing, planning, sum(table.num_rows for table in tables.values())), tables


def point(one: Contender, times: Times) -> Point:
    return Point(one.kind.name, one.queries, times.median, times.best, times.worst, one.parsing, one.planning, one.results)
