"""Two workers against one: a standalone cluster on this machine, each worker and its Python on one core.

In: numbers of workers, groups and queries. Out: seconds a batch for each number of workers. Convention: `muntin run` as a user would type
it, on a cluster of processes; a batch is one minute with a row of every group, in as many Parquet files for any number of workers: a
single file is read by one task, and nobody could help it. Seconds are those from one commit of results to the next. The driver and the
master are not pinned: what they do is part of what is measured.
"""

from __future__ import annotations

import os
import statistics
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import SparkSession
from rich.console import Console

from benchmarks.answers import differing
from benchmarks.measuring import progress
from benchmarks.minutes import many_queries, values_of, write_minute

sys.path.append(str(Path(__file__).parents[1] / "tests"))

from cluster import Cluster

SETTINGS = {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1", "spark.ui.enabled": "false"}


@dataclass(frozen=True)
class Setup:
    workers: tuple[int, ...] = (1, 2)
    groups: int = 100_000
    queries: int = 64
    files: int = 4  # of a batch
    batches: int = 16
    warmups: int = 9  # until the longest window is full, and every worker has met every stage
    memory: str = "3g"


@dataclass(frozen=True)
class Crewed:
    """A number of workers: seconds of every batch after the warm-ups, and the rows checked."""

    workers: int
    seconds: tuple[float, ...]
    checked: int

    @property
    def median(self) -> float:
        return statistics.median(self.seconds)


@dataclass
class SpeedUp:
    setup: Setup
    found: list[Crewed] = field(default_factory=list)


def run(_spark: SparkSession, setup: Setup, console: Console) -> SpeedUp:
    """The session is not used: a cluster has drivers of its own."""
    found = SpeedUp(setup)
    with progress(console, "workers", len(setup.workers)) as tick:
        for workers in setup.workers:
            tick(f"{workers} workers")
            with tempfile.TemporaryDirectory(prefix="muntin-workers-") as scratch:
                found.found.append(crewed(Path(scratch), setup, workers))
    return found


def crewed(directory: Path, setup: Setup, workers: int) -> Crewed:
    (directory / "minutes").mkdir()
    for minute in range(setup.batches):
        write_minute(directory / "minutes", minute, setup.groups, files=setup.files)
    (directory / "pipeline.sql").write_text(many_queries(directory / "minutes", setup.queries, setup.files))
    cluster = Cluster(directory)
    try:
        cluster.start_master()
        for number in range(workers):
            cluster.start_worker(f"worker{number}", memory=setup.memory, core=number % (os.cpu_count() or 1))
        drive(cluster, directory, setup, workers)
    finally:
        cluster.stop()
    seconds = np.diff(commits(directory / "out"))[setup.warmups :]
    return Crewed(workers, tuple(seconds.tolist()), check(directory / "out", setup))


def commits(out: Path) -> list[float]:
    """When the results of each entry were made visible: a rename changes the time of a file's status."""
    latest: dict[str, float] = {}
    for part in out.glob("q*/*.parquet"):
        entry = part.name.partition("-")[0]
        latest[entry] = max(latest.get(entry, 0.0), part.stat().st_ctime)
    return [latest[entry] for entry in sorted(latest)]


def drive(cluster: Cluster, directory: Path, setup: Setup, workers: int) -> None:
    settings = SETTINGS | {"spark.executor.memory": setup.memory, "spark.sql.shuffle.partitions": str(workers)}
    command = [sys.executable, "-m", "muntin.cli", "run", str(directory / "pipeline.sql"), "--master", cluster.master, "--once"]
    command += ["--out", str(directory / "out"), "--format", "parquet", "--checkpoint", str(directory / "state")]
    command += ["--assembly", "executors", "--instances", str(workers)]
    command += [text for name, value in settings.items() for text in ("--conf", f"{name}={value}")]
    driver = cluster.run("driver", command, {"PYSPARK_PYTHON": sys.executable})
    if driver.wait() != 0:
        raise differing(f"{workers} workers", (directory / "driver.log").read_text()[-2000:])


def check(out: Path, setup: Setup) -> int:
    """Every window of the first two queries: counts and sums of the minutes they stand for."""
    values = np.array([values_of(minute, setup.groups) for minute in range(setup.batches)])
    windows = [values[max(0, end - 2) : end] for end in range(1, setup.batches)]
    truth = {"q0": [float(len(window)) for window in windows], "q1": [float(window.sum()) for window in windows]}
    rows = 0
    for query, expected in truth.items():
        found = pa.concat_tables([pq.read_table(part) for part in sorted((out / query).glob("*.parquet"))])
        by_window = found.group_by("window_end").aggregate([("v", "sum"), ("v", "count")]).sort_by("window_end")
        wanted = [value * setup.groups for value in expected] if query == "q0" else expected
        whole = pc.all(pc.equal(by_window["v_count"], setup.groups)).as_py()
        if not whole or not np.allclose(by_window["v_sum"].to_numpy().astype(float), wanted, rtol=1e-9, atol=0):
            raise differing(f"{setup.groups} groups", f"query {query}")
        rows += found.num_rows
    return rows
