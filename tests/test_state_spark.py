"""A whole job, Spark included, whose state, results, dead letters and copies of tables are on a file system that the cluster shares.

Spark and pyarrow must reach the same files: here a directory that Spark knows as `file:` and pyarrow as a file system with rename.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest

from muntin import Engine, FileSink, Layout, MemorySink, Pace, Trigger
from muntin.errors import CheckpointError, StoreError
from muntin.spark import claims
from muntin.spark.claims import OWNERS, unlocked
from muntin.spark.ownership import is_owned
from storage import address, place_at
from test_streaming import Clicks, click, ends, rows_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PIPELINE = """
CREATE STREAM clicks (ts TIMESTAMP, user STRING, n BIGINT)
  WITH (source = 'files', format = 'json', path = '{path}', time = 'ts', slack = '5 seconds', max_files_per_trigger = '1');
CREATE TABLE users (user STRING, weight BIGINT) WITH (path = '{users}', format = 'csv');
CREATE QUERY weighed AS
  SELECT sum(C.n * U.weight) AS n FROM clicks C [RANGE 20 seconds SLIDE 10 seconds], users U WHERE C.user = U.user;
CREATE QUERY total AS SELECT count(*) AS n FROM clicks [RANGE 10 seconds SLIDE 10 seconds];
"""


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(claims, "SETTLE_SECONDS", 0.0)
    monkeypatch.setattr("muntin.spark.slicelog.MOST_ENTRIES", 3)


def engine_over(spark: SparkSession, clicks: Clicks, users: Path) -> Engine:
    engine = Engine(spark)
    engine.execute(PIPELINE.format(path=clicks.directory, users=users))
    return engine


def run_now(engine: Engine, home: str, *, final: bool) -> Any:
    place = place_at(home)
    sink = FileSink(place / "out", "jsonl", Layout.PARTS)
    now = Trigger(Pace.AVAILABLE_NOW)
    job = engine.start(sink, checkpoint=place / "checkpoint", trigger=now, dead_letters=place / "letters")
    job.wait(final=final)
    return job


def test_a_job_with_its_state_on_a_shared_file_system_stops_and_resumes(spark: SparkSession, tmp_path: Path) -> None:
    clicks, users = Clicks(tmp_path / "clicks"), tmp_path / "users.csv"
    users.write_text("u,2\nv,3\n")
    for at in range(5):
        clicks.add(*(click(at * 9 + step * 2.5, user="uv"[step % 2], n=step) for step in range(4)), {"user": "u", "n": 1})
        for kind in ("disk", "moving"):
            run_now(engine_over(spark, clicks, users), f"{kind}:{tmp_path / kind}", final=at == 4)
    for query in ("weighed", "total"):
        assert rows_of(tmp_path / "moving/out", query) == rows_of(tmp_path / "disk/out", query)
    assert ends(rows_of(tmp_path / "moving/out", "total")) == [10, 20, 30, 40, 50]
    letters = [json.loads(line) for part in (tmp_path / "moving/letters").rglob("*.json") for line in part.read_text().splitlines()]
    assert [letter["reason"] for letter in letters] == ["no time"] * 5
    state = tmp_path / "moving/checkpoint/clicks"
    assert len(list((state / "snapshots").iterdir())) == 1
    assert [(copy / "_muntin").exists() for copy in (state / "tables").iterdir()] == [True]
    assert not (state / "lock").exists()


def test_a_second_job_is_refused_and_a_job_that_was_unlocked_fails_at_its_next_batch(spark: SparkSession, tmp_path: Path) -> None:
    clicks, users = Clicks(tmp_path / "clicks"), tmp_path / "users.csv"
    users.write_text("u,2\n")
    clicks.add(click(1))
    place = place_at(f"moving:{tmp_path / 'home'}")
    job = engine_over(spark, clicks, users).start(MemorySink(), checkpoint=place)
    with pytest.raises(CheckpointError, match=r"used by one job at a time\n.*last heard of \d+ s ago\n.*muntin unlock"):
        engine_over(spark, clicks, users).start(MemorySink(), checkpoint=place)
    assert len(unlocked(place)) == 1
    clicks.add(click(2))
    with pytest.raises(Exception, match="taken over by another job, or unlocked"):
        job.wait(120)
    assert (place / "clicks" / OWNERS).files()[-1].startswith("00000002-")


def test_a_store_that_spark_has_no_connector_for_is_refused_with_what_is_missing(
    spark: SparkSession, tmp_path: Path, endpoint: str
) -> None:
    clicks, users = Clicks(tmp_path / "clicks"), tmp_path / "users.csv"
    users.write_text("u,2\n")
    clicks.add(click(1))
    place = place_at(address("objects", uuid4().hex, directory=tmp_path, endpoint=endpoint))
    with pytest.raises(
        StoreError, match=r"(?s)Spark reaches the checkpoint too.*s3a://state/.*hadoop\.fs\.s3a.*not found.*spark\.jars\.packages"
    ):
        engine_over(spark, clicks, users).start(MemorySink(), checkpoint=place)
    assert not is_owned(place / "clicks")


@pytest.mark.parametrize("format", ["jsonl", "parquet"])
def test_the_results_of_a_bounded_run_go_to_an_object_store(spark: SparkSession, tmp_path: Path, endpoint: str, format: str) -> None:
    clicks, users = Clicks(tmp_path / "clicks"), tmp_path / "users.csv"
    users.write_text("u,2\nv,3\n")
    clicks.add(*(click(at, user="uv"[at % 2], n=at) for at in range(30)))
    out = place_at(address("objects", uuid4().hex, directory=tmp_path, endpoint=endpoint))
    engine = engine_over(spark, clicks, users)
    engine.run(FileSink(out, format, Layout.WHOLE))
    engine.run(FileSink(tmp_path / "out", format, Layout.WHOLE))
    assert out.files() == ["_muntin.json", f"total.{format}", f"weighed.{format}"]
    for name in ("total", "weighed"):
        assert bytes((out / f"{name}.{format}").read()) == (tmp_path / "out" / f"{name}.{format}").read_bytes()
