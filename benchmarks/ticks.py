"""Ticks in files, and a streaming job over them: what slide-by-tuple and tuple-based windows are measured on, from files to Parquet.

In: a directory, a number of rows, a share of them out of order. Out: `Ticks`: the files in order of arrival, and the same rows as arrays,
to recompute answers from; `streamed`, one run of a job. Convention: rows are 100 µs apart, each with a time of its own; disorder means that
this share of them comes up to 4 seconds late, within the slack of 5. A micro-batch takes two files, a task for each core.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from benchmarks.batches import write_batch
from muntin import Engine, FileSink, Layout, Pace, Trigger
from muntin.aggregates.base import Array
from muntin.timeline import SECOND

APART, DELAY, START = 100, 4 * SECOND, 1_700_000_000 * SECOND
VALUES = "count(*) AS n, sum(vol) AS v, max(vol) AS top"
_STREAM = "source = 'files', path = '{path}', format = 'parquet', time = 'ts', slack = '5 seconds', max_files_per_trigger = '2'"


@dataclass(frozen=True)
class Ticks:
    """Times and volumes in order of arrival, and where their files are."""

    path: Path
    times: Array
    volumes: Array

    def __len__(self) -> int:
        return len(self.times)


def written(directory: Path, *, rows: int, disorder: float, file: int) -> Ticks:
    """So many rows in files of `file` rows each."""
    chance = np.random.default_rng(7)
    times = START + np.arange(rows, dtype=np.int64) * APART
    arrives = times + np.where(chance.random(rows) < disorder, chance.integers(0, DELAY, rows), 0)
    times, volumes = times[np.argsort(arrives, kind="stable")], chance.integers(0, 1000, rows)
    path = directory / f"ticks-{disorder}"
    path.mkdir()
    for number, at in enumerate(range(0, rows, file)):
        ts = pa.array(times[at : at + file], type=pa.timestamp("us", tz="UTC"))
        write_batch(path, number, pa.table({"ts": ts, "vol": volumes[at : at + file]}))
    return Ticks(path, times, volumes)


def streamed(spark: SparkSession, ticks: Ticks, queries: Mapping[str, str], out: Path) -> None:
    """One run: every file, micro-batch by micro-batch, and the end of the input; results as Parquet parts in a new directory."""
    engine = engine_over(spark, ticks, queries)
    engine.start(FileSink(out, "parquet", Layout.PARTS), trigger=Trigger(Pace.AVAILABLE_NOW)).wait(final=True)


def engine_over(spark: SparkSession, ticks: Ticks, queries: Mapping[str, str]) -> Engine:
    engine = Engine(spark)
    engine.execute(f"CREATE STREAM ticks (ts TIMESTAMP, vol BIGINT) WITH ({_STREAM.format(path=ticks.path)})")
    for name, text in queries.items():
        engine.add(text, name=name)
    return engine


def results(out: Path, query: str) -> dict[str, Array]:
    """The columns of a query's results, parts in order."""
    return columns(pa.concat_tables(pq.read_table(part) for part in sorted((out / query).glob("*.parquet"))))


def columns(table: pa.Table) -> dict[str, Array]:
    """Of a query's results; bounds as whole numbers."""
    bounds = {name: table[name].cast(pa.int64()).to_numpy() for name in ("window_start", "window_end")}
    return bounds | {name: table[name].to_numpy() for name in ("n", "v", "top")}


def cleared(out: Path) -> None:
    shutil.rmtree(out, ignore_errors=True)
