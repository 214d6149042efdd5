"""A static table that cannot be read any more: the job goes on with it as it was, and says so; a newcomer that needs one is refused."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from muntin import Engine
from muntin.errors import SourceError
from test_changes_spark import BIG, Steps, die_in_the_second_batch, engine_text
from test_streaming import Clicks, clicks, ends, engine_over, rows_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["clicks"]

WEIGHED = "SELECT sum(n * weight) AS w FROM clicks C [RANGE 10 seconds SLIDE 10 seconds], {table} N WHERE C.user = N.user"


def engine_with(spark: SparkSession, clicks: Clicks, **tables: Path) -> Engine:
    engine = Engine(spark)
    declared = "CREATE TABLE {} (user STRING, weight INT) WITH (path = '{}', format = 'csv');"
    engine.execute(engine_text(clicks) + "".join(declared.format(name, path) for name, path in tables.items()))
    return engine


@pytest.mark.parametrize("harm", [lambda path: path.write_text("u,ten\n"), Path.unlink], ids=["bad record", "no file"])
def test_a_job_goes_on_with_the_version_before_until_the_table_can_be_read_again(
    spark: SparkSession, clicks: Clicks, tmp_path: Path, harm: Any
) -> None:
    names = tmp_path / "names.csv"
    names.write_text("u,1\n")
    engine = engine_with(spark, clicks, names=names)
    engine.add(WEIGHED.format(table="names"), name="weighed")
    steps = Steps(engine, clicks, tmp_path / "out", tmp_path / "checkpoint")
    steps.feed(1, 2)
    harm(names)
    steps.feed(11, 12)
    steps.feed(13)
    (trouble,) = steps.job.progress()["clicks"].troubles
    assert "table names" in trouble
    assert {row["name"]: row["state"] for row in engine.listed()}["weighed"] == "running, with an older version of names"
    assert {row["name"]: row["state"] for row in engine.listed()}["total"] == "running"
    steps.job.stop()
    again = engine_with(spark, clicks, names=names)
    again.add(WEIGHED.format(table="names"), name="weighed")
    steps = Steps(again, clicks, tmp_path / "out", tmp_path / "checkpoint")
    steps.feed(21)
    names.write_text("u,1000\n")
    steps.feed(31)
    assert steps.job.progress()["clicks"].troubles == ()
    steps.job.stop(final=True)
    assert [row["w"] for row in rows_of(tmp_path / "out", "weighed")] == [2, 3, 1, 1000]
    assert ends(rows_of(tmp_path / "out", "by_user")) == [20, 40, 60, 80]


def test_a_query_over_a_table_that_cannot_be_read_is_refused_and_the_others_go_on(
    spark: SparkSession, clicks: Clicks, tmp_path: Path
) -> None:
    engine = engine_with(spark, clicks, absent=tmp_path / "absent.csv")
    steps = Steps(engine, clicks, tmp_path / "out", tmp_path / "checkpoint")
    steps.feed(1, 2)
    with pytest.raises(SourceError, match="table absent: the path of a source exists"):
        engine.add(WEIGHED.format(table="absent"), name="weighed")
    steps.feed(21)
    assert {row["name"] for row in engine.listed()} == {"by_user", "total"}
    steps.job.stop()


def test_a_change_after_a_crash_is_in_effect_from_the_batch_after_the_one_that_was_begun(
    spark: SparkSession, clicks: Clicks, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    die_in_the_second_batch(spark, clicks, tmp_path, monkeypatch)
    engine = engine_over(spark, clicks, slack="0 seconds")
    steps = Steps(engine, clicks, tmp_path / "out", tmp_path / "checkpoint")
    assert steps.job.jobs["clicks"].next_to_pin == 2
    engine.add(BIG, name="big")
    assert "in effect from batch 2 of clicks" in steps.job.effect
    steps.job.stop()


def test_a_query_that_has_replaced_another_waits_for_its_first_batch(spark: SparkSession, clicks: Clicks, tmp_path: Path) -> None:
    engine = engine_over(spark, clicks, slack="0 seconds")
    steps = Steps(engine, clicks, tmp_path / "out")
    steps.feed(1, 22)
    engine.replace(BIG, name="total")
    (row,) = (row for row in engine.listed() if row["name"] == "total")
    assert (row["state"], row["windows"]) == ("waiting for its first batch", "0")
    steps.feed(31)
    (row,) = (row for row in engine.listed() if row["name"] == "total")
    assert row["state"] == "running"
    steps.job.stop()
