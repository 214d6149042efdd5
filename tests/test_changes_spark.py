"""Queries come and go on a running job: from the next batch on, pinned to it, through restarts and edited pipelines."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from muntin import CallbackSink, Engine, FileSink, Layout, RunningJob, TableSink, Trigger
from muntin.errors import MuntinError, Refusal, SinkError
from muntin.spark.sinks.base import Sink
from muntin.spark.slicelog import SliceLog
from test_streaming import START, Clicks, clicks, ends, engine_over, rows_of, run_now

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["clicks"]

BIG = "SELECT count(*) AS c FROM clicks [RANGE 20 seconds SLIDE 10 seconds] WHERE n > 0"


def taken(job: RunningJob, entries: int) -> None:
    """Wait until the job has finished so many entries."""
    deadline = time.monotonic() + 60
    while job.jobs["clicks"].totals.entries < entries:
        assert time.monotonic() < deadline, "the job does not go on"
        job.wait(0.05)
    with job.jobs["clicks"].gate:  # they are counted before their results are written
        pass


class Steps:
    """A job that is fed one file at a time."""

    def __init__(self, engine: Engine, clicks: Clicks, out: Path | Sink, checkpoint: Path | None = None) -> None:
        self.clicks = clicks
        sink = out if isinstance(out, Sink) else FileSink(out, "jsonl", Layout.PARTS)
        self.job = engine.start(sink, checkpoint=checkpoint, trigger=Trigger())
        self.before = clicks.files - self.job.jobs["clicks"].totals.entries

    def feed(self, *seconds: float) -> None:
        self.clicks.add_seconds(*seconds)
        taken(self.job, self.clicks.files - self.before)


@pytest.fixture
def stepping(spark: SparkSession, clicks: Clicks, tmp_path: Path) -> Callable[..., tuple[Engine, Steps]]:
    def start(engine: Engine | None = None) -> tuple[Engine, Steps]:
        engine = engine or engine_over(spark, clicks, slack="0 seconds")
        return engine, Steps(engine, clicks, tmp_path / "out", tmp_path / "checkpoint")

    return start


def test_a_query_joins_with_the_next_batch_and_its_first_window_starts_after_every_row_before_it(
    stepping: Callable[..., tuple[Engine, Steps]], tmp_path: Path
) -> None:
    engine, steps = stepping()
    steps.feed(1, 12, 25)
    engine.add(BIG, name="big")
    steps.feed(31, 47)
    steps.feed(72)
    steps.job.stop(final=True)
    assert ends(rows_of(tmp_path / "out", "big")) == [50, 60, 80, 90]
    assert [row["c"] for row in rows_of(tmp_path / "out", "big")] == [2, 1, 1, 1]


def test_a_dropped_query_emits_nothing_more_and_the_others_go_on(stepping: Callable[..., tuple[Engine, Steps]], tmp_path: Path) -> None:
    engine, steps = stepping()
    steps.feed(1, 22)
    engine.drop("total")
    steps.feed(41, 65)
    steps.job.stop(final=True)
    assert ends(rows_of(tmp_path / "out", "total")) == [10, 20]
    assert ends(rows_of(tmp_path / "out", "by_user")) == [20, 40, 60, 80, 100, 120]
    assert "total" not in {row["name"] for row in engine.listed()}


def test_a_replaced_query_begins_anew(stepping: Callable[..., tuple[Engine, Steps]], tmp_path: Path) -> None:
    engine, steps = stepping()
    steps.feed(1, 22)
    engine.replace("SELECT count(*) AS c FROM clicks [RANGE 10 seconds SLIDE 10 seconds]", name="total")
    steps.feed(31, 45)
    steps.job.stop(final=True)
    rows = rows_of(tmp_path / "out", "total")
    assert ends(rows) == [10, 20, 40, 50]
    assert [row.get("c") for row in rows] == [None, None, 1, 1]


def test_a_bad_query_is_refused_and_leaves_the_running_ones_untouched(
    stepping: Callable[..., tuple[Engine, Steps]], tmp_path: Path
) -> None:
    engine, steps = stepping()
    steps.feed(1, 22)
    version = engine.registry.version
    for sql, law in (
        ("SELECT nothing FROM clicks [RANGE 1 minute SLIDE 1 minute]", "column"),
        (BIG.replace("clicks", "elsewhere"), "stream"),
    ):
        with pytest.raises(MuntinError, match=law):
            engine.add(sql, name="bad")
    with pytest.raises(Refusal, match="only a registered query can be dropped"):
        engine.drop("bad")
    assert engine.registry.version == version
    steps.feed(41, 65)
    steps.job.stop(final=True)
    assert ends(rows_of(tmp_path / "out", "by_user")) == [20, 40, 60, 80, 100, 120]


def test_a_query_that_does_not_fit_its_table_is_refused_and_the_job_goes_on(spark: SparkSession, clicks: Clicks, tmp_path: Path) -> None:
    engine = engine_over(spark, clicks, slack="0 seconds")
    steps = Steps(engine, clicks, TableSink(tmp_path / "out"), tmp_path / "checkpoint")
    steps.feed(1, 22)
    version = engine.registry.version
    with pytest.raises(SinkError, match="a table's columns stay as they are; new ones may come to them"):
        engine.replace("SELECT count(*) AS c FROM clicks [RANGE 10 seconds SLIDE 10 seconds]", name="total")
    assert engine.registry.version == version
    wider = "SELECT sum(n * 1.5) AS n, count(*) AS c, avg(n) AS mean FROM clicks [RANGE 10 seconds SLIDE 10 seconds]"
    engine.replace(wider, name="total")
    steps.feed(31, 45)
    steps.job.stop(final=True)
    read = DeltaTable(tmp_path / "out" / "total").to_pyarrow_table().sort_by("window_end")
    assert [end.second for end in read["window_end"].to_pylist()] == [10, 20, 40, 50]
    assert read["c"].to_pylist() == [None, None, 1, 1]


class HeldBatch:
    """A sink's callback that keeps the first batch with results in hand until it is let go."""

    def __init__(self) -> None:
        self.reached, self.let_go = threading.Event(), threading.Event()
        self.rows: list[tuple[str, float, int]] = []

    def __call__(self, _: object, query: str, table: pa.Table) -> None:
        self.reached.set()
        assert self.let_go.wait(60)
        key = "c" if "c" in table.column_names else table.column_names[-1]
        self.rows += [(query, (row["window_end"] - START).total_seconds(), row[key]) for row in table.to_pylist()]

    def of(self, query: str) -> list[tuple[float, int]]:
        return [(end, value) for name, end, value in self.rows if name == query]


def test_a_change_waits_for_no_batch_and_is_in_effect_after_the_one_in_hand(spark: SparkSession, clicks: Clicks, tmp_path: Path) -> None:
    """Batch 1 is in hand, with its results half written, while one query joins, one leaves and one is replaced."""
    engine, held = engine_over(spark, clicks, slack="0 seconds"), HeldBatch()
    steps = Steps(engine, clicks, CallbackSink(held), tmp_path / "checkpoint")
    steps.feed(1)
    clicks.add_seconds(12, 25)
    assert held.reached.wait(60)
    engine.add(BIG, name="big")
    assert "in effect from batch 2 of clicks" in steps.job.effect
    engine.drop("by_user")
    engine.replace("SELECT count(*) AS c FROM clicks [RANGE 10 seconds SLIDE 10 seconds]", name="total")
    assert "in effect from batch 2 of clicks" in steps.job.effect
    assert not held.let_go.is_set()
    assert {row["name"] for row in engine.listed()} == {"big", "total"}
    held.let_go.set()
    taken(steps.job, 2)
    steps.feed(31, 47)
    steps.feed(72)
    steps.job.stop(final=True)
    assert held.of("big") == [(50, 2), (60, 1), (80, 1), (90, 1)], "its first window starts after 25, the last row before it joined"
    assert [end for end, _ in held.of("by_user")] == [20], "those that batch 1 closed, and none after it"
    assert [end for end, _ in held.of("total")] == [10, 20, 40, 50, 80]


def test_changes_that_are_asked_for_at_the_same_time_are_made_one_after_the_other(
    stepping: Callable[..., tuple[Engine, Steps]], spark: SparkSession, clicks: Clicks, tmp_path: Path
) -> None:
    engine, steps = stepping()
    steps.feed(1)
    before = engine.registry.version
    together = threading.Barrier(8)

    def visit(who: int) -> None:
        together.wait()
        for at in range(5):
            engine.add(BIG, name=f"visitor_{who}_{at}")
            if at % 2:
                engine.drop(f"visitor_{who}_{at - 1}")

    threads = [threading.Thread(target=visit, args=(who,)) for who in range(8)]
    for thread in threads:
        thread.start()
    steps.feed(12)
    for thread in threads:
        thread.join()
    stay = {f"visitor_{who}_{at}" for who in range(8) for at in (1, 3, 4)}
    assert engine.registry.version == before + 8 * 7
    assert {query.name for query in engine.queries} == {"by_user", "total", *stay}
    steps.feed(47)
    steps.feed(72)
    steps.job.stop()
    again = engine_over(spark, clicks, slack="0 seconds")
    run_now(again, tmp_path / "out", tmp_path / "checkpoint", final=True)
    assert {query.name for query in again.queries} == {"by_user", "total", *stay}
    last = {name: rows_of(tmp_path / "out", name)[-1] for name in stay}
    assert [(row["window_end"], row["c"]) for row in last.values()] == [("2024-01-01T00:01:30.000000Z", 1)] * len(stay)


def test_every_query_may_go_and_the_job_stays(stepping: Callable[..., tuple[Engine, Steps]], tmp_path: Path) -> None:
    engine, steps = stepping()
    steps.feed(1)
    engine.drop("total")
    engine.drop("by_user")
    steps.feed(22)
    engine.add(BIG, name="big")
    steps.feed(31, 47)
    steps.job.stop(final=True)
    assert ends(rows_of(tmp_path / "out", "big")) == [50, 60]


def test_queries_added_by_command_survive_a_restart_and_an_edited_pipeline_is_a_difference(
    spark: SparkSession, clicks: Clicks, stepping: Callable[..., tuple[Engine, Steps]], tmp_path: Path
) -> None:
    engine, steps = stepping()
    steps.feed(1, 22)
    engine.add(BIG, name="big")
    steps.feed(31)
    steps.job.stop()
    edited = Engine(spark)
    edited.execute(engine_text(clicks).replace("CREATE QUERY total", "CREATE QUERY fresh"))
    edited, steps = stepping(edited)
    assert {(row["name"], row["origin"]) for row in edited.listed()} == {("by_user", "pipeline"), ("fresh", "pipeline"), ("big", "command")}
    steps.feed(47, 65)
    steps.job.stop(final=True)
    out = tmp_path / "out"
    assert ends(rows_of(out, "by_user")) == [20, 40, 60, 80, 100, 120]
    assert ends(rows_of(out, "total")) == [10, 20, 30]
    assert ends(rows_of(out, "big")) == [50, 60, 70, 80]
    assert ends(rows_of(out, "fresh")) == [60, 70, 80, 90]


def test_a_query_of_the_pipeline_that_a_command_dropped_stays_away_after_a_restart(
    spark: SparkSession, clicks: Clicks, stepping: Callable[..., tuple[Engine, Steps]], tmp_path: Path
) -> None:
    engine, steps = stepping()
    steps.feed(1, 22)
    engine.drop("total")
    engine.replace(BIG, name="by_user")
    steps.job.stop()
    again, steps = stepping(engine_over(spark, clicks, slack="0 seconds"))
    assert [(row["name"], row["origin"]) for row in again.listed()] == [("by_user", "command")]
    steps.feed(31, 45)
    steps.job.stop(final=True)
    assert ends(rows_of(tmp_path / "out", "total")) == [10, 20]
    assert [row["c"] for row in rows_of(tmp_path / "out", "by_user") if "c" in row] == [2, 1]


def engine_text(clicks: Clicks) -> str:
    from test_streaming import PIPELINE

    return PIPELINE.format(path=clicks.directory, slack="0 seconds")


def die_in_the_second_batch(spark: SparkSession, clicks: Clicks, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is pinned, and not in the log."""
    clicks.add_seconds(1, 22)
    run_now(engine_over(spark, clicks, slack="0 seconds"), tmp_path / "out", tmp_path / "checkpoint")

    def die(*_: Any) -> None:
        raise RuntimeError("the disk is full")

    clicks.add_seconds(41, 65)
    with monkeypatch.context() as broken:
        broken.setattr(SliceLog, "append", die)
        with pytest.raises(RuntimeError, match="the disk is full"):
            run_now(engine_over(spark, clicks, slack="0 seconds"), tmp_path / "out", tmp_path / "checkpoint")


def test_a_batch_that_was_begun_is_finished_with_the_queries_it_began_with(
    spark: SparkSession, clicks: Clicks, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    die_in_the_second_batch(spark, clicks, tmp_path, monkeypatch)
    changed = Engine(spark)
    changed.execute(engine_text(clicks).replace("CREATE QUERY total", "CREATE QUERY fresh"))
    clicks.add_seconds(72, 91)
    run_now(changed, tmp_path / "out", tmp_path / "checkpoint", final=True)
    assert ends(rows_of(tmp_path / "out", "total")) == [10, 20, 30, 40, 50, 60], "its windows closed with the batch it was pinned to"
    assert ends(rows_of(tmp_path / "out", "fresh")) == [100, 110], "it joined after the row at 65"


def test_a_reloaded_table_is_picked_up_between_batches(spark: SparkSession, clicks: Clicks, tmp_path: Path) -> None:
    names = tmp_path / "names.csv"
    names.write_text("u,1\n")
    engine = Engine(spark)
    engine.execute(
        engine_text(clicks) + f"CREATE TABLE names (user STRING, weight INT) WITH (path = '{names}', format = 'csv');"
        "CREATE QUERY weighed AS SELECT sum(n * weight) AS w"
        "  FROM clicks C [RANGE 10 seconds SLIDE 10 seconds], names N WHERE C.user = N.user;"
    )
    steps = Steps(engine, clicks, tmp_path / "out", tmp_path / "checkpoint")
    steps.feed(1, 2)
    names.write_text("u,10\nu,100\n")
    steps.feed(11, 12)
    steps.job.stop(final=True)
    assert [row["w"] for row in rows_of(tmp_path / "out", "weighed")] == [2, 220]
    assert [row["clicks"] for row in rows_of(tmp_path / "out", "by_user")] == [4, 4, 4], "who does not join sees each row once"


def test_versions_that_no_restart_needs_are_forgotten_under_many_changes(
    stepping: Callable[..., tuple[Engine, Steps]], spark: SparkSession, clicks: Clicks, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Kept are those since the snapshot before last, six to a batch and two batches to a snapshot, and the chain they are read from."""
    monkeypatch.setattr("muntin.spark.registrylog.LONGEST_CHAIN", 4)
    monkeypatch.setattr("muntin.spark.slicelog.MOST_ENTRIES", 2)
    engine, steps = stepping()
    kept = []
    for at in range(24):
        engine.add(BIG, name=f"q{at}")
        if at:
            engine.drop(f"q{at - 1}")
        if at % 3 == 2:
            steps.feed(at * 10 + 1)
        kept.append(len(list((tmp_path / "checkpoint/registry").glob("0*"))))
    steps.job.stop()
    assert engine.registry.version > 40
    assert max(kept) <= 2 * 6 + 4
    clicks.add_seconds(241)
    again = engine_over(spark, clicks, slack="0 seconds")
    run_now(again, tmp_path / "out", tmp_path / "checkpoint", final=True)
    assert {query.name for query in again.queries} == {"by_user", "total", "q23"}
    assert ends(rows_of(tmp_path / "out", "q23"))[-1] == 260
