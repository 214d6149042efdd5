"""On a real cluster, of one master and two workers, a pipeline gives what it gives in local mode, whatever dies on the way; and the ways
to run it there.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import pyspark
import pytest

import law_job
import muntin
import opaque
from cluster import SETTINGS, Cluster, running_cluster
from muntin import Engine
from spreading import FILES, QUERIES, halves, results, run_on, table_results

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]
PATIENCE_SECONDS = 800
HALF = FILES // 2
#: In an executor's Python: one task in ten ends its process when it opens a file of ours to write to it.
FAILING = """
import os, random, sys

chance, fates = random.SystemRandom(), {}

def fail(event, arguments):
    if event != "open" or not set(str(arguments[1] or "")) & set("wax+"):
        return
    if not any(name in str(arguments[0]) for name in ("parts", "_hidden", "-of-")):
        return
    from pyspark import TaskContext
    task = TaskContext.get()
    if task is not None and fates.setdefault(task.taskAttemptId(), chance.random() < 0.1) and chance.random() < 0.5:
        os.close(os.open(FAILED + str(task.taskAttemptId()), os.O_CREAT))
        os._exit(1)

sys.addaudithook(fail)
"""


@pytest.fixture(scope="module")
def one_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with running_cluster(tmp_path_factory.mktemp("cluster")) as found:
        yield found


@pytest.fixture
def cluster(one_cluster: Cluster) -> Iterator[Cluster]:
    """With both workers, and no driver left when a test has ended."""
    one_cluster.complete()
    yield one_cluster
    one_cluster.kill("driver")


@pytest.fixture(scope="module")
def expected(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    """In local mode, in the driver: three files, then three more after a query joined and one left."""
    directory = tmp_path_factory.mktemp("local")
    for half in (0, 1):
        engine = Engine(spark, assembly="driver")
        engine.execute(halves(directory, half))
        run_on(engine, directory, final=half == 1)
    found = results(directory)
    assert all(found[query] for query in QUERIES)
    return found


def start(
    cluster: Cluster, directory: Path, *tasks: tuple[Path, int, int], settings: Mapping[str, str] | None = None, tables: bool = False
) -> None:
    """A driver that takes halves of the input: into which directory, which one, with how many instances."""
    command = [sys.executable, str(Path(__file__).with_name("cluster_job.py")), cluster.master, str(directory)]
    command += [":".join(map(str, task)) for task in tasks]
    asked = {"SETTINGS": json.dumps(SETTINGS | dict(settings or {})), "PYSPARK_PYTHON": sys.executable, "PYTHONPATH": search_path()}
    cluster.run("driver", command, asked | ({"TABLES": "yes"} if tables else {}))


def search_path() -> str:
    return os.pathsep.join([str(Path(__file__).parent), str(Path(muntin.__file__).parents[1]), os.environ.get("PYTHONPATH", "")])


def ended(cluster: Cluster) -> None:
    driver = cluster.processes["driver"]
    driver.wait(timeout=PATIENCE_SECONDS)
    assert driver.returncode == 0, cluster.said("driver")


def wait_for_entry(cluster: Cluster, work: Path, number: int) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not (work / "checkpoint" / "clicks" / "done" / f"{number:08d}").exists():
        assert time.monotonic() < deadline, cluster.said("driver")
        assert cluster.processes["driver"].poll() is None, cluster.said("driver")
        time.sleep(0.05)


def test_on_a_cluster_windows_are_what_they_are_in_local_mode(cluster: Cluster, tmp_path: Path, expected: dict[str, list[str]]) -> None:
    start(cluster, tmp_path, (tmp_path, 0, 3), (tmp_path, 1, 3))
    ended(cluster)
    assert results(tmp_path) == expected


@pytest.mark.parametrize("seed", range(3))
def test_on_a_cluster_random_queries_of_the_law_tests_give_what_they_give_in_local_mode(
    spark: SparkSession, cluster: Cluster, tmp_path: Path, seed: int
) -> None:
    """With and without groups, with predicates, own functions among them; some leave and some join; some stop on their data."""
    stopped = law_job.run(lambda: Engine(spark, functions=[*opaque.STEADY, *opaque.FAILING], assembly="driver"), tmp_path / "local", seed)
    command = [sys.executable, law_job.__file__, cluster.master, str(tmp_path / "cluster"), str(seed), str(seed + 1)]
    settings = SETTINGS | {"spark.executorEnv.PYTHONPATH": search_path()}
    cluster.run("driver", command, {"SETTINGS": json.dumps(settings), "PYSPARK_PYTHON": sys.executable, "PYTHONPATH": search_path()})
    ended(cluster)
    expected = law_job.results(tmp_path / "local")
    assert sum(map(len, expected.values())) > 1_000
    assert law_job.alike(law_job.results(tmp_path / "cluster"), expected)
    assert json.loads((tmp_path / "cluster" / "stopped.json").read_text()) == stopped


def test_a_driver_that_is_killed_goes_on_with_any_number_of_instances(
    cluster: Cluster, tmp_path: Path, expected: dict[str, list[str]]
) -> None:
    killed = tmp_path / "killed"
    killed.mkdir()
    start(cluster, tmp_path, (killed, 0, 2), (killed, 1, 2))
    wait_for_entry(cluster, killed, HALF)
    cluster.kill("driver")
    ways = {instances: tmp_path / f"with{instances}" for instances in (1, 2, 3, 7)}
    for work in ways.values():
        shutil.copytree(killed, work)
    start(cluster, tmp_path, *((work, 1, instances) for instances, work in ways.items()))
    ended(cluster)
    for work in ways.values():
        assert results(work) == expected


def failing_tasks(directory: Path) -> dict[str, str]:
    """Settings with which tasks fail, and are started a second time while they run; `directory/failed` has the names of those that did."""
    faults, failed = directory / "faults", directory / "failed"
    for folder in (faults, failed):
        folder.mkdir()
    (faults / "sitecustomize.py").write_text(f"FAILED = {str(failed) + os.sep!r}\n{FAILING}")
    again = {"spark.speculation": "true", "spark.speculation.multiplier": "1.01", "spark.speculation.quantile": "0.2"}
    return again | {"spark.executorEnv.PYTHONPATH": str(faults), "spark.task.maxFailures": "50"}


def test_tasks_that_fail_and_second_copies_of_tasks_change_nothing(
    cluster: Cluster, tmp_path: Path, expected: dict[str, list[str]]
) -> None:
    start(cluster, tmp_path, (tmp_path, 0, 5), (tmp_path, 1, 5), settings=failing_tasks(tmp_path))
    ended(cluster)
    assert results(tmp_path) == expected
    assert any((tmp_path / "failed").iterdir())


def test_tables_that_executors_write_have_the_same_rows_whatever_tasks_fail(
    cluster: Cluster, tmp_path: Path, expected: dict[str, list[str]]
) -> None:
    start(cluster, tmp_path, (tmp_path, 0, 2), (tmp_path, 1, 3), settings=failing_tasks(tmp_path), tables=True)
    ended(cluster)
    assert table_results(tmp_path) == expected
    assert any((tmp_path / "failed").iterdir())


def test_tables_of_a_driver_that_was_killed_go_on_with_another_number_of_instances(
    cluster: Cluster, tmp_path: Path, expected: dict[str, list[str]]
) -> None:
    start(cluster, tmp_path, (tmp_path, 0, 2), (tmp_path, 1, 2), tables=True)
    wait_for_entry(cluster, tmp_path, HALF)
    cluster.kill("driver")
    start(cluster, tmp_path, (tmp_path, 1, 3), tables=True)
    ended(cluster)
    assert table_results(tmp_path) == expected


def test_a_worker_that_is_killed_loses_and_repeats_nothing(cluster: Cluster, tmp_path: Path, expected: dict[str, list[str]]) -> None:
    start(cluster, tmp_path, (tmp_path, 0, 4), (tmp_path, 1, 4))
    wait_for_entry(cluster, tmp_path, 0)
    cluster.kill("worker0")
    ended(cluster)
    assert results(tmp_path) == expected


# -- ways to run -----------------------------------------------------------------------------------------------------------------------

TINY = """
CREATE STREAM clicks (ts TIMESTAMP, user STRING) WITH (source = 'files', format = 'json', path = '{path}', time = 'ts');
CREATE QUERY q AS SELECT user, count(*) AS n FROM clicks [RANGE 10 seconds SLIDE 10 seconds] GROUP BY user;
"""
SUBMIT = Path(__file__).parents[1] / "examples" / "submit.py"


def run_tiny(
    cluster: Cluster, directory: Path, before: list[str], environment: Mapping[str, str], *options: str
) -> list[tuple[str, str, int]]:
    """Run the command `run`, as `before` brings it, with more options; the window's end, user and count of each result."""
    (directory / "clicks").mkdir()
    rows = [(1, "a"), (2, "b"), (3, "a"), (12, "a")]
    lines = [json.dumps({"ts": f"2024-01-01T00:00:{second:02d}Z", "user": user}) for second, user in rows]
    (directory / "clicks" / "0.json").write_text("\n".join(lines))
    (directory / "pipeline.sql").write_text(TINY.format(path=directory / "clicks"))
    places = ["--out", str(directory / "out"), "--checkpoint", str(directory / "checkpoint")]
    run = ["run", str(directory / "pipeline.sql"), "--once", "--final", *places, "--assembly", "executors", *options]
    cluster.run("driver", [*before, *run], {"PYSPARK_PYTHON": sys.executable} | environment)
    ended(cluster)
    found = [json.loads(line) for part in (directory / "out" / "q").glob("*.jsonl") for line in part.read_text().splitlines()]
    return sorted((row["window_end"][17:19], row["user"], row["n"]) for row in found)


def settings_of(settings: Mapping[str, str]) -> list[str]:
    return [text for name, value in settings.items() for text in ("--conf", f"{name}={value}")]


RESULTS = [("10", "a", 2), ("10", "b", 1), ("20", "a", 1)]


def test_the_command_line_runs_a_pipeline_on_a_cluster(cluster: Cluster, tmp_path: Path) -> None:
    options = ["--master", cluster.master, *settings_of(SETTINGS)]
    assert run_tiny(cluster, tmp_path, [sys.executable, "-m", "muntin.cli"], {"PYTHONPATH": search_path()}, *options) == RESULTS


def test_the_same_pipeline_runs_under_spark_submit(cluster: Cluster, tmp_path: Path) -> None:
    shipped = shutil.make_archive(str(tmp_path / "muntin"), "zip", Path(muntin.__file__).parents[1], "muntin")
    submit = [str(Path(pyspark.__file__).parent / "bin" / "spark-submit"), "--master", cluster.master]
    command = [*submit, *settings_of(SETTINGS), "--py-files", shipped, str(SUBMIT)]
    assert run_tiny(cluster, tmp_path, command, {"PYTHONPATH": "", "PYSPARK_DRIVER_PYTHON": sys.executable}) == RESULTS
