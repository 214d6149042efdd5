"""Topics of a real broker: whatever dies on the way, readers of committed records find the results of an undisturbed run."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

import pytest

from cluster import SETTINGS, running_cluster
from kafka_broker import kafka_broker
from kafka_reader import Record, records_in
from muntin import Engine
from spreading import FILES, PIPELINE, QUERIES, results, rounded, run_on, write_file

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]
JOB = Path(__file__).parent / "topic_job.py"
ALL = [name for name in QUERIES if name != "late"]


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with kafka_broker(tmp_path_factory.mktemp("kafka") / "broker", partitions=3) as address:
        yield address


@pytest.fixture
def topic() -> str:
    """Of this test alone."""
    return f"results-{uuid4().hex[:8]}-{{query}}"


@pytest.fixture(scope="module")
def expected(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    """The lines of the files that an undisturbed run in the driver leaves."""
    directory = tmp_path_factory.mktemp("undisturbed")
    engine = Engine(spark, assembly="driver")
    engine.execute(pipeline(directory))
    run_on(engine, directory, final=True)
    found = {name: rows for name, rows in results(directory).items() if name in ALL}
    assert all(found.values())
    return found


def pipeline(directory: Path) -> str:
    for number in range(FILES):
        write_file(directory / "clicks", number)
    return PIPELINE.format(path=directory / "clicks")


def run(address: str, directory: Path, assembly: str, instances: int, moment: str, **more: str) -> int:
    """The exit code of a job, once its JVM is gone as well."""
    command = [sys.executable, str(JOB), address, str(directory), assembly, str(instances), moment]
    process = subprocess.Popen(command, start_new_session=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=os.environ | more)
    _, complaint = process.communicate(timeout=400)
    with suppress(ProcessLookupError):
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            os.killpg(process.pid, 0)
            time.sleep(0.1)
    assert process.returncode in (0, -signal.SIGKILL), complaint.decode()[-5000:]
    return process.returncode


def published(broker: str, topic: str) -> dict[str, list[Record]]:
    return {query: records_in(broker, topic.format(query=query)) for query in ALL}


def check(found: dict[str, list[Record]], expected: dict[str, list[str]]) -> None:
    for query, records in found.items():
        assert sorted(rounded(one.value) for one in records) == expected[query], query
        assert_in_order(records)
    assert {dict(one.headers)["query"] for records in found.values() for one in records} == set(ALL)
    assert len({dict(one.headers)["run"] for records in found.values() for one in records}) == 1


def assert_in_order(records: list[Record]) -> None:
    """Records of a key are in one partition, in the order of their entries."""
    for key in {one.key for one in records if one.key is not None}:
        of_key = [one for one in records if one.key == key]
        assert len({one.partition for one in of_key}) == 1
        entries = [dict(one.headers)["entry"] for one in of_key]
        assert entries == sorted(entries)


def check_survives(broker: str, topic: str, directory: Path, expected: dict[str, list[str]], *runs: tuple[str, int, str]) -> None:
    """Each run is killed at its moment and the next one goes on; the last one is left alone."""
    pipeline(directory)
    for assembly, instances, moment in runs:
        assert run(f"{broker}/{topic}", directory, assembly, instances, moment) == (
            0 if moment.startswith(("never", "tasks")) else -signal.SIGKILL
        )
    check(published(broker, topic), expected)
    assert not [path for path in (directory / "checkpoint" / "sinks").rglob("*") if path.is_file()]


def test_killed_around_its_commits_a_driver_publishes_every_record_once(
    broker: str, topic: str, tmp_path: Path, expected: dict[str, list[str]]
) -> None:
    moments = ["driver:before:2", "driver:after:1", "driver:before:1", "driver:after:3"]
    check_survives(broker, topic, tmp_path, expected, *(("driver", 1, moment) for moment in moments), ("driver", 1, "never:never:0"))
    uncommitted = records_in(broker, topic.format(query="by_tuple"), level="read_uncommitted")
    assert len(uncommitted) > len(expected["by_tuple"])


def test_killed_while_executors_publish_a_run_goes_on_with_other_instances(
    broker: str, topic: str, tmp_path: Path, expected: dict[str, list[str]]
) -> None:
    check_survives(
        broker,
        topic,
        tmp_path,
        expected,
        ("executors", 2, "driver:after:2"),
        ("executors", 3, "task:before:2"),
        ("executors", 2, "task:after:2"),
        ("executors", 1, "driver:before:1"),
        ("executors", 3, "never:never:0"),
    )


def test_tasks_that_die_before_and_after_their_commit_publish_every_record_once(
    broker: str, topic: str, tmp_path: Path, expected: dict[str, list[str]]
) -> None:
    check_survives(broker, topic, tmp_path, expected, ("executors", 2, "tasks:always:0"))
    deaths = {path.name.rpartition("-")[2] for path in (tmp_path / "deaths").iterdir()}
    assert deaths == {"before", "after"}


def test_the_command_line_publishes_to_topics(broker: str, topic: str, tmp_path: Path, expected: dict[str, list[str]]) -> None:
    (tmp_path / "pipeline.sql").write_text(pipeline(tmp_path))
    options = ["--once", "--final", "--checkpoint", str(tmp_path / "state"), "--out", f"kafka://{broker}/{topic}"]
    command = [sys.executable, "-m", "muntin.cli", "run", str(tmp_path / "pipeline.sql"), *options, "--kafka", "compression.type=lz4"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 1, done.stderr  # one query stops on its data
    check(published(broker, topic), expected)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["clicks", "pipeline.sql", "state"]


def test_executors_of_a_cluster_publish_what_they_assembled_though_tasks_die(
    broker: str, topic: str, tmp_path: Path, expected: dict[str, list[str]]
) -> None:
    pipeline(tmp_path)
    (tmp_path / "cluster").mkdir()
    with running_cluster(tmp_path / "cluster") as cluster:
        settings = json.dumps(SETTINGS | {"spark.master": cluster.master})
        assert run(f"{broker}/{topic}", tmp_path, "executors", 3, "tasks:always:0", SETTINGS=settings) == 0
    check(published(broker, topic), expected)
    assert {path.name.rpartition("-")[2] for path in (tmp_path / "deaths").iterdir()} == {"before", "after"}
