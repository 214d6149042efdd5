"""The code that Spark generates: is it compiled again while slice edges move, and is a method too long for the JVM to compile?

In: queries and a number of micro-batches. Out: `Compilations`: what each micro-batch compiled, and the methods that were too long.
Convention: counted in a process of its own, in which Spark's code generator logs to a file (`Code generated in …` for each class that is
compiled, `Generated method too long …` for each method above 8,000 bytes, from where on HotSpot leaves it interpreted). A job that is
known to have such a method is run last: if the log does not tell, the check is no check.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from pyspark.sql import SparkSession

from benchmarks.answers import WrongAnswer
from benchmarks.baselines import PlainSpark
from benchmarks.measuring import Tick
from muntin import Engine, MemorySink, session
from muntin.demo import workloads
from muntin.spark.generator import closing_prices, index_membership, trades
from muntin.spark.session import JAVA_OPTIONS, LOGGING

COMPILED, TOO_LONG = "Code generated in ", "Generated method too long"

LOG_OF_THE_CODE_GENERATOR = """
appender.file.type = File
appender.file.name = file
appender.file.fileName = {log}
appender.file.layout.type = PatternLayout
appender.file.layout.pattern = %m%n
logger.codegen.name = org.apache.spark.sql.catalyst.expressions.codegen
logger.codegen.level = info
logger.codegen.additivity = false
logger.codegen.appenderRef.file.ref = file
"""

#: Conditional sums of the control, in one method: enough to make it too long.
CONTROL_QUERIES = 100


@dataclass(frozen=True)
class Case:
    """A workload as a stream: so many queries, micro-batches, and rows in each; the hour passes `rows` at a time."""

    workload: str
    queries: int
    batches: int
    rows: int


@dataclass(frozen=True)
class Compilations:
    """Classes compiled in each micro-batch, and methods that were too long in any."""

    case: Case
    per_batch: tuple[int, ...]
    too_long: tuple[str, ...]

    @property
    def settled(self) -> int:
        """Compilations in the second half: plans are chosen anew from what the first batches showed, later ones only move edges."""
        return sum(self.per_batch[len(self.per_batch) // 2 :])


@dataclass
class GeneratorLog:
    """What Spark's code generator has said so far."""

    path: Path

    def lines(self, beginning: str) -> list[str]:
        return [line for line in self.path.read_text().splitlines() if line.startswith(beginning)]

    def session(self) -> SparkSession:
        configuration = self.path.with_suffix(".properties")
        configuration.write_text(LOGGING + LOG_OF_THE_CODE_GENERATOR.format(log=self.path))
        options = f"{JAVA_OPTIONS} -Dlog4j2.configurationFile={configuration.as_uri()}"
        return session("muntin compilations", **{"spark.driver.extraJavaOptions": options})


def compilations(cases: Sequence[Case], tick: Tick) -> list[Compilations]:
    """For a process that has no session yet."""
    with tempfile.TemporaryDirectory(prefix="muntin-codegen-") as scratch:
        log = GeneratorLog(Path(scratch) / "codegen.log")
        spark = log.session()
        try:
            found = [compiled(spark, log, case, tick) for case in cases]
            check_control(spark, log)
        finally:
            spark.stop()
    return found


def compiled(spark: SparkSession, log: GeneratorLog, case: Case, tick: Tick) -> Compilations:
    """Run a stream and look at the log after each micro-batch."""
    engine = engine_over_a_stream(spark, case)
    counts, told = [len(log.lines(COMPILED))], len(log.lines(TOO_LONG))

    def look(_: object) -> None:
        counts.append(len(log.lines(COMPILED)))
        if len(counts) <= case.batches:
            tick(f"{case.workload}, {case.queries} queries: batch {len(counts)}")

    job = engine.start(MemorySink(), on_progress=look)
    while len(counts) <= case.batches:
        job.wait(0.1)
    job.stop()
    per_batch = [after - before for before, after in pairwise(counts[: case.batches + 1])]
    return Compilations(case, tuple(per_batch), tuple(log.lines(TOO_LONG)[told:]))


def engine_over_a_stream(spark: SparkSession, case: Case) -> Engine:
    engine = Engine(spark)
    source = f"source = 'generator', rows_per_batch = '{case.rows}', time = 'ts'"
    engine.execute(f"CREATE STREAM trades ({workloads.TRADES}) WITH ({source})")
    engine.table("close", closing_prices(spark))
    engine.table("index", index_membership(spark))
    for query in getattr(workloads, case.workload)(case.queries):
        engine.add(query.select, name=query.name)
    return engine


def check_control(spark: SparkSession, log: GeneratorLog) -> None:
    spark.conf.set("spark.sql.codegen.methodSplitThreshold", str(2**20))
    plain = PlainSpark(spark, trades(spark, rows=100), closing_prices(spark), index_membership(spark))
    plain.conditional(workloads.workload_b(CONTROL_QUERIES))()
    if not log.lines(TOO_LONG):
        raise WrongAnswer(
            "the log tells of methods that are too long", values="none for the control", way_out="find what Spark logs instead"
        )
