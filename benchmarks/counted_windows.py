"""Windows that count rows, through the engine: slide-by-tuple from files to Parquet, and 256 tuple-based windows against one.

In: a number of rows, sessions of Spark. Out: a table: `python -m benchmarks.counted_windows`. Convention: rows are 100 µs apart; disorder
means that this share of them comes up to 4 seconds late, within the slack; the best of some runs counts, after one to warm up. Every run
is checked by the number of its results before its time is believed. The claims are those of the issue: 500,000 tuples/s, disorder at most
1.5 times, 256 windows at most 1.5 times one.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pyarrow.parquet as pq
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from benchmarks.machine import this_machine
from muntin import Engine, FileSink, Layout, Pace, Trigger, session
from muntin.timeline import SECOND

APART, DELAY, FILES = 100, 4 * SECOND, 8
START = 1_700_000_000 * SECOND
VALUES = "count(*) AS n, sum(vol) AS v, max(vol) AS top"


@dataclass(frozen=True)
class Case:
    name: str
    queries: Mapping[str, str]
    disorder: float = 0.0
    results: int | None = None  #: of the first query; None for as many as there are rows


def slide_by_tuple(seconds: int, disorder: float = 0.0) -> Case:
    window = f"RANGE {seconds} seconds RATTR ts SLIDE 1 row SATTR row_num"
    shown = f", {disorder:.0%} out of order" if disorder else ""
    return Case(f"slide-by-tuple, RANGE {seconds} s{shown}", {"q": f"SELECT {VALUES} FROM ticks [{window}]"}, disorder)


def tuple_based(windows: int, rows: int) -> Case:
    """Ranges and slides are multiples of 100 rows; the first is RANGE 4000 rows SLIDE 1000 rows."""
    lengths = [(4000 + 700 * at, 1000 + 100 * (at * 37 % 91)) for at in range(windows)]
    texts = {f"q{at}": f"SELECT {VALUES} FROM ticks [RANGE {range_} rows SLIDE {slide} rows]" for at, (range_, slide) in enumerate(lengths)}
    return Case(f"{windows} tuple-based windows", texts, results=-(-(rows + 3000) // 1000))


def written(spark: SparkSession, directory: Path, rows: int, disorder: float) -> Path:
    """Files in order of arrival, each sorted by it."""
    tick = F.col("id") * APART
    late = F.when(F.rand(7) < disorder, (F.rand(8) * DELAY).cast("bigint")).otherwise(F.lit(0))
    frame = spark.range(rows).select(
        F.timestamp_micros(F.lit(START) + tick).alias("ts"), (F.rand(9) * 1000).cast("bigint").alias("vol"), (tick + late).alias("arrives")
    )
    path = directory / f"ticks-{disorder}"
    frame.repartitionByRange(FILES, "arrives").sortWithinPartitions("arrives").drop("arrives").write.parquet(str(path))
    return path


def seconds_of(spark: SparkSession, case: Case, path: Path, out: Path, rows: int) -> float:
    engine = Engine(spark)
    options = f"source = 'files', path = '{path}', format = 'parquet', time = 'ts', slack = '5 seconds', max_files_per_trigger = '2'"
    engine.execute(f"CREATE STREAM ticks (ts TIMESTAMP, vol BIGINT) WITH ({options})")
    for name, text in case.queries.items():
        engine.add(text, name=name)
    shutil.rmtree(out, ignore_errors=True)
    began = time.perf_counter()
    engine.start(FileSink(out, "parquet", Layout.PARTS), trigger=Trigger(Pace.AVAILABLE_NOW)).wait(final=True)
    took = time.perf_counter() - began
    found = sum(pq.read_metadata(part).num_rows for part in (out / next(iter(case.queries))).glob("*.parquet"))
    expected = rows if case.results is None else case.results
    if found != expected:
        raise AssertionError(f"{case.name}: {found:,} results, not {expected:,}")
    return took


def measured(spark: SparkSession, rows: int, *, times: int, windows: int) -> dict[str, float]:
    """Rows per second of each case."""
    cases = [
        *(slide_by_tuple(seconds) for seconds in (1, 10, 60, 300)),
        slide_by_tuple(300, 0.1),
        tuple_based(1, rows),
        tuple_based(windows, rows),
    ]
    with tempfile.TemporaryDirectory() as scratch:
        paths = {disorder: written(spark, Path(scratch), rows, disorder) for disorder in (0.0, 0.1)}
        found = {}
        for case in cases:
            took = [seconds_of(spark, case, paths[case.disorder], Path(scratch) / "out", rows) for _ in range(times + 1)]
            found[case.name] = rows / min(took[1:])
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=8_000_000)
    parser.add_argument("--times", type=int, default=3)
    given = parser.parse_args()
    spark = session("muntin-benchmarks", **{"spark.master": "local[2]", "spark.driver.memory": "6g"})
    lines = [*this_machine().lines(), "", f"{given.rows:,} rows, files to Parquet", "", "| case | M rows/s |", "|---|---|"]
    lines += [f"| {name} | {rate / 1e6:.3f} |" for name, rate in measured(spark, given.rows, times=given.times, windows=256).items()]
    spark.stop()
    print("\n".join(lines))


if __name__ == "__main__":
    main()
