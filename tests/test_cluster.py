"""On a real cluster, of one master and two workers, a pipeline gives what it gives in local mode, whatever dies on the way."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from cluster import Cluster, running_cluster
from muntin import Engine
from spreading import FILES, LATE, PIPELINE, results, run_on, write_file

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SETTINGS = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.sql.shuffle.partitions": "2",
    "spark.ui.enabled": "false",
    "spark.network.timeout": "600s",
    "spark.executor.extraJavaOptions": "-XX:+UseSerialGC -XX:-DontCompileHugeMethods",
}
STOPPED_ON_DATA = 1
PATIENCE_SECONDS = 600
SECOND = PIPELINE[: PIPELINE.index("CREATE QUERY some")] + PIPELINE[PIPELINE.index("CREATE QUERY parity") :]
#: Executors whose Python processes end in the midst of a task, one in ten: when they open a file of ours to write to it.
FAILING = """
import os, random, sys

def fail(event, arguments):
    if event == "open" and arguments[1] and set(str(arguments[1])) & set("wax+") and random.random() < 0.02:
        if any(name in str(arguments[0]) for name in ("parts", "_hidden", "-of-")):
            os._exit(1)

sys.addaudithook(fail)
"""


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    with running_cluster(tmp_path) as found:
        yield found


@pytest.fixture(scope="module")
def expected(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    """In local mode, in the driver: three files, then three more with a query that joined and one that left."""
    directory = tmp_path_factory.mktemp("local")
    for part in (0, 1):
        prepare(directory, part)
        engine = Engine(spark, assembly="driver")
        engine.execute((directory / "pipeline.sql").read_text())
        run_on(engine, directory, final=part == 1)
    return results(directory)


def prepare(directory: Path, part: int) -> None:
    for number in range(part * FILES // 2, (part + 1) * FILES // 2):
        write_file(directory / "clicks", number)
    text = SECOND + f"CREATE QUERY late AS {LATE};" if part else PIPELINE
    (directory / "pipeline.sql").write_text(text.format(path=directory / "clicks"))


def start(cluster: Cluster, directory: Path, *options: str, settings: Sequence[str] = ()) -> subprocess.Popen[bytes]:
    """`muntin run` as a user would type it."""
    places = ("--out", str(directory / "out"), "--checkpoint", str(directory / "checkpoint"))
    conf = [text for name, value in SETTINGS.items() for text in ("--conf", f"{name}={value}")]
    command = [sys.executable, "-m", "muntin.cli", "run", str(directory / "pipeline.sql"), "--master", cluster.master, "--once"]
    more = [text for one in settings for text in ("--conf", one)]
    return cluster.run("driver", [*command, *places, *conf, *more, "--assembly", "executors", *options], {"PYSPARK_PYTHON": sys.executable})


def ended(driver: subprocess.Popen[bytes], directory: Path) -> None:
    driver.wait(timeout=PATIENCE_SECONDS)
    assert driver.returncode in (0, STOPPED_ON_DATA), (directory / "driver.log").read_text()[-3000:]


def wait_for_entry(directory: Path, number: int) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not (directory / "checkpoint" / "clicks" / "done" / f"{number:08d}").exists():
        assert time.monotonic() < deadline, (directory / "driver.log").read_text()[-3000:]
        time.sleep(0.05)


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_on_a_cluster_windows_are_what_they_are_in_local_mode(cluster: Cluster, tmp_path: Path, expected: dict[str, list[str]]) -> None:
    for part in (0, 1):
        prepare(tmp_path, part)
        ended(start(cluster, tmp_path, *(["--final"] if part else []), "--instances", "3"), tmp_path)
    assert results(tmp_path) == expected


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_a_worker_that_is_killed_loses_and_repeats_nothing(cluster: Cluster, tmp_path: Path, expected: dict[str, list[str]]) -> None:
    prepare(tmp_path, 0)
    first = start(cluster, tmp_path, "--instances", "4")
    wait_for_entry(tmp_path, 0)
    cluster.kill("worker0")
    ended(first, tmp_path)
    prepare(tmp_path, 1)
    ended(start(cluster, tmp_path, "--final", "--instances", "4"), tmp_path)
    assert results(tmp_path) == expected


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_tasks_that_fail_change_nothing(cluster: Cluster, tmp_path: Path, expected: dict[str, list[str]]) -> None:
    faults = tmp_path / "faults"
    faults.mkdir()
    (faults / "sitecustomize.py").write_text(FAILING)
    settings = [f"spark.executorEnv.PYTHONPATH={faults}", "spark.task.maxFailures=50", "spark.excludeOnFailure.enabled=false"]
    for part in (0, 1):
        prepare(tmp_path, part)
        ended(start(cluster, tmp_path, *(["--final"] if part else []), "--instances", "5", settings=settings), tmp_path)
    assert results(tmp_path) == expected


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_a_driver_killed_again_and_again_goes_on_with_other_numbers_of_instances(
    cluster: Cluster, tmp_path: Path, expected: dict[str, list[str]]
) -> None:
    prepare(tmp_path, 0)
    for entry, instances in enumerate([2, 7]):
        start(cluster, tmp_path, "--instances", str(instances))
        wait_for_entry(tmp_path, entry)
        cluster.kill("driver")
    ended(start(cluster, tmp_path, "--instances", "1"), tmp_path)
    prepare(tmp_path, 1)
    start(cluster, tmp_path, "--final", "--instances", "3")
    wait_for_entry(tmp_path, FILES // 2)
    cluster.kill("driver")
    ended(start(cluster, tmp_path, "--final", "--instances", "2"), tmp_path)
    assert results(tmp_path) == expected
