"""The engine on Structured Streaming: growing directories, slack, late rows, dead letters, stops and resumes."""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from muntin import CallbackSink, Engine, FileSink, Layout, MemorySink, Pace, RunningJob, Trigger
from muntin.errors import CheckpointError, MuntinError, SinkError
from muntin.spark.sinks.base import EntryId, Results
from muntin.spark.sinks.spread import Written

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

START = datetime(2024, 1, 1, tzinfo=UTC)
NOW = Trigger(Pace.AVAILABLE_NOW)

PIPELINE = """
CREATE STREAM clicks (ts TIMESTAMP, user STRING, n BIGINT)
  WITH (source = 'files', format = 'json', path = '{path}', time = 'ts', slack = '{slack}', max_files_per_trigger = '1');
CREATE QUERY by_user AS
  SELECT user, count(*) AS clicks, sum(n) AS n, max(n) AS top FROM clicks [RANGE 60 seconds SLIDE 20 seconds] GROUP BY user;
CREATE QUERY total AS SELECT sum(n * 1.5) AS n, avg(n) AS mean FROM clicks [RANGE 25 seconds SLIDE 10 seconds];
"""


class Clicks:
    """A directory of JSON files, one micro-batch each."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        directory.mkdir()
        self.files = 0

    def add(self, *rows: dict[str, Any] | str) -> None:
        lines = [row if isinstance(row, str) else json.dumps(row) for row in rows]
        aside = self.directory / f".{self.files}"
        aside.write_text("\n".join(lines) + "\n")
        os.utime(aside, (1_700_000_000 + self.files,) * 2)  # Spark takes files in order of this time
        aside.rename(self.directory / f"{self.files:04d}.json")
        self.files += 1

    def add_seconds(self, *seconds: float) -> None:
        self.add(*(click(second) for second in seconds))


def click(second: float, user: str = "u", n: int = 1) -> dict[str, Any]:
    return {"ts": (START + timedelta(seconds=second)).isoformat(), "user": user, "n": n}


@pytest.fixture
def clicks(tmp_path: Path) -> Clicks:
    return Clicks(tmp_path / "clicks")


def engine_over(spark: SparkSession, clicks: Clicks, *, slack: str = "5 seconds") -> Engine:
    engine = Engine(spark)
    engine.execute(PIPELINE.format(path=clicks.directory, slack=slack))
    return engine


def rows_of(directory: Path, query: str) -> list[dict[str, Any]]:
    parts = sorted((directory / query).glob("*.jsonl"))
    return [json.loads(line) for part in parts for line in part.read_text().splitlines()]


def ends(rows: list[dict[str, Any]]) -> list[float]:
    return [(datetime.fromisoformat(row["window_end"]) - START).total_seconds() for row in rows]


def run_now(engine: Engine, out: Path, checkpoint: Path | None, *, final: bool = False, **options: Any) -> Any:
    job = engine.start(FileSink(out, "jsonl", Layout.PARTS), checkpoint=checkpoint, trigger=NOW, **options)
    job.wait(final=final)
    return job


def test_slack_holds_windows_open_and_final_closes_them(spark: SparkSession, clicks: Clicks, tmp_path: Path) -> None:
    clicks.add_seconds(1, 2, 28)
    clicks.add_seconds(26, 41)  # punctuation 23 before, 36 after: 26 is in time
    out = tmp_path / "out"
    run_now(engine_over(spark, clicks), out, tmp_path / "checkpoint")
    assert ends(rows_of(out, "total")) == [10, 20, 30]
    run_now(engine_over(spark, clicks), out, tmp_path / "checkpoint", final=True)
    assert ends(rows_of(out, "total")) == [10, 20, 30, 40, 50, 60]
    assert [row["n"] for row in rows_of(out, "total")] == ["3.0", "3.0", "3.0", "3.0", "4.5", "1.5"]


def test_a_late_row_still_counts_in_open_windows_and_is_counted(spark: SparkSession, clicks: Clicks, tmp_path: Path) -> None:
    clicks.add_seconds(1, 44)  # punctuation 39: windows of by_user ending at 20 are closed
    clicks.add_seconds(15)
    job = run_now(engine_over(spark, clicks), tmp_path / "out", None, final=True)
    rows = rows_of(tmp_path / "out", "by_user")
    assert {end: row["clicks"] for end, row in zip(ends(rows), rows, strict=True)} == {20: 1, 40: 2, 60: 3, 80: 1, 100: 1}
    counts = job.jobs["clicks"].assembly.lives
    assert (counts["by_user"].late, counts["by_user"].dropped) == (1, 0)
    assert (counts["total"].late, counts["total"].dropped) == (1, 0)


def test_a_row_from_2099_and_one_without_time_go_to_the_dead_letters_and_disturb_nothing(
    spark: SparkSession, clicks: Clicks, tmp_path: Path
) -> None:
    good = [click(1), click(12), click(41)]
    clicks.add(good[0], {"user": "u", "n": 1}, good[1], {"ts": "2099-01-01T00:00:00Z", "user": "u", "n": 1}, '{"ts": "2024-01-', good[2])
    out, letters = tmp_path / "out", tmp_path / "letters"
    job = run_now(engine_over(spark, clicks), out, tmp_path / "checkpoint", final=True, dead_letters=letters)
    assert job.jobs["clicks"].totals.dead == 3
    assert ends(rows_of(out, "total")) == [10, 20, 30, 50, 60]
    dead = [json.loads(line) for part in sorted(letters.rglob("*.json")) for line in part.read_text().splitlines()]
    assert sorted(row["reason"] for row in dead) == ["no time", "time too far ahead", "unparsable"]


def test_stopping_and_resuming_gives_what_an_undisturbed_run_gives(spark: SparkSession, clicks: Clicks, tmp_path: Path) -> None:
    for at in range(6):
        clicks.add(*(click(at * 7 + step * 1.3, user="ab"[step % 2], n=step) for step in range(5)))
        run_now(engine_over(spark, clicks), tmp_path / "resumed", tmp_path / "checkpoint", final=at == 5)
    run_now(engine_over(spark, clicks), tmp_path / "whole", tmp_path / "other", final=True)
    for query in ("by_user", "total"):
        assert rows_of(tmp_path / "resumed", query) == rows_of(tmp_path / "whole", query)


def test_two_jobs_on_one_checkpoint_are_refused(spark: SparkSession, clicks: Clicks, tmp_path: Path) -> None:
    clicks.add_seconds(1)
    first = engine_over(spark, clicks).start(MemorySink(), checkpoint=tmp_path / "checkpoint")
    try:
        with pytest.raises(CheckpointError, match="used by one job at a time"):
            engine_over(spark, clicks).start(MemorySink(), checkpoint=tmp_path / "checkpoint")
    finally:
        first.stop()


def test_a_deleted_spark_checkpoint_beside_a_kept_log_is_refused(spark: SparkSession, clicks: Clicks, tmp_path: Path) -> None:
    clicks.add_seconds(1, 50)
    run_now(engine_over(spark, clicks), tmp_path / "out", tmp_path / "checkpoint")
    (tmp_path / "checkpoint/clicks/spark").rename(tmp_path / "gone")
    with pytest.raises(CheckpointError, match="goes on with the Spark checkpoint"):
        run_now(engine_over(spark, clicks), tmp_path / "out", tmp_path / "checkpoint")


def test_a_deleted_log_beside_a_kept_spark_checkpoint_is_refused(spark: SparkSession, clicks: Clicks, tmp_path: Path) -> None:
    clicks.add_seconds(1, 50)
    run_now(engine_over(spark, clicks), tmp_path / "out", tmp_path / "checkpoint")
    for name in ("pins", "log", "done"):
        (tmp_path / "checkpoint/clicks" / name).rename(tmp_path / name)
    clicks.add_seconds(60)
    with pytest.raises(CheckpointError, match="every batch that Spark has committed"):
        run_now(engine_over(spark, clicks), tmp_path / "out", tmp_path / "checkpoint")


@pytest.mark.parametrize("folder", ["log", "done"])
@pytest.mark.parametrize("harm", ["delete", "truncate", "flip"])
def test_a_damaged_or_missing_file_is_a_clear_error(spark: SparkSession, clicks: Clicks, tmp_path: Path, folder: str, harm: str) -> None:
    for at in range(3):
        clicks.add_seconds(at * 30 + 1)
    run_now(engine_over(spark, clicks), tmp_path / "out", tmp_path / "checkpoint")
    path = sorted((tmp_path / "checkpoint/clicks" / folder).iterdir())[1 if folder == "log" else 2 if harm != "delete" else 1]
    content = path.read_bytes()
    if harm == "delete":
        path.unlink()
    elif harm == "truncate":
        path.write_bytes(content[:-3])
    else:
        path.write_bytes(content[:20] + bytes([content[20] ^ 1]) + content[21:])
    with pytest.raises(CheckpointError, match="there and unharmed"):
        run_now(engine_over(spark, clicks), tmp_path / "out", tmp_path / "checkpoint")


def test_a_changed_stream_on_an_old_checkpoint_is_refused(spark: SparkSession, clicks: Clicks, tmp_path: Path) -> None:
    clicks.add_seconds(1)
    run_now(engine_over(spark, clicks), tmp_path / "out", tmp_path / "checkpoint")
    with pytest.raises(CheckpointError, match="goes on with the stream and the strategy that began it"):
        run_now(engine_over(spark, clicks, slack="7 seconds"), tmp_path / "out", tmp_path / "checkpoint")


def test_a_sink_of_another_run_is_refused(spark: SparkSession, clicks: Clicks, tmp_path: Path) -> None:
    clicks.add_seconds(1, 50)
    run_now(engine_over(spark, clicks), tmp_path / "out", tmp_path / "checkpoint")
    with pytest.raises(SinkError):
        run_now(engine_over(spark, clicks), tmp_path / "out", tmp_path / "other")


def test_a_query_whose_data_goes_wrong_stops_alone(spark: SparkSession, clicks: Clicks, tmp_path: Path) -> None:
    clicks.add(click(1, n=3), click(12, n=0), click(31, n=5), click(60, n=1))
    engine = engine_over(spark, clicks)
    engine.add("SELECT sum(10 / n) AS q FROM clicks [RANGE 10 seconds SLIDE 10 seconds]", name="ratio")
    engine.add("SELECT sum(n * 4611686018427387904) AS q FROM clicks [RANGE 10 seconds SLIDE 10 seconds]", name="huge")
    job = run_now(engine, tmp_path / "out", None, final=True)
    assert ends(rows_of(tmp_path / "out", "ratio")) == [10]
    assert ends(rows_of(tmp_path / "out", "huge")) == []
    assert ends(rows_of(tmp_path / "out", "total")) == [10, 20, 30, 40, 50, 70, 80]
    assert set(job.stopped) == {"ratio", "huge"}
    assert "division by zero" in job.stopped["ratio"]


def test_after_many_batches_a_restart_reads_what_the_windows_need(
    spark: SparkSession, clicks: Clicks, tmp_path: Path, monkeypatch: Any
) -> None:
    monkeypatch.setattr("muntin.spark.slicelog.MOST_ENTRIES", 5)
    for at in range(17):
        clicks.add_seconds(at * 10 + 1)
    run_now(engine_over(spark, clicks), tmp_path / "out", tmp_path / "checkpoint")
    folder = tmp_path / "checkpoint/clicks"
    assert len(list((folder / "snapshots").iterdir())) == 1
    assert len(list((folder / "log").iterdir())) <= 5
    assert len(list((folder / "pins").iterdir())) <= 6
    run_now(engine_over(spark, clicks), tmp_path / "out", tmp_path / "checkpoint", final=True)
    run_now(engine_over(spark, clicks), tmp_path / "whole", tmp_path / "other", final=True)
    assert rows_of(tmp_path / "out", "by_user") == rows_of(tmp_path / "whole", "by_user")


def test_a_streaming_dataframe_of_the_users_own_works_like_a_declared_stream(spark: SparkSession, clicks: Clicks, tmp_path: Path) -> None:
    clicks.add_seconds(1, 2, 28)
    clicks.add_seconds(26, 41)
    schema = "ts TIMESTAMP, user STRING, n BIGINT"
    frame = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).json(str(clicks.directory)).where("n > 0")
    engine, memory = Engine(spark), MemorySink()
    engine.stream("clicks", frame, time="ts", slack="5 seconds")
    engine.add("SELECT count(*) AS c FROM clicks [RANGE 10 seconds SLIDE 10 seconds]", name="c")
    job = engine.start(memory, trigger=NOW)
    job.wait()
    assert [row["c"] for row in memory.table("c").to_pylist()] == [2, 2]
    with pytest.raises(MuntinError, match="run\\(\\) takes static"):
        engine.run()


def test_a_callback_gets_every_entry_with_its_id(spark: SparkSession, clicks: Clicks) -> None:
    clicks.add_seconds(1, 12)
    clicks.add_seconds(25, 47)
    seen: list[tuple[str, str, int]] = []
    sink = CallbackSink(lambda entry, query, table: seen.append((str(entry), query, table.num_rows)))
    job = engine_over(spark, clicks, slack="0 seconds").start(sink, trigger=NOW)
    job.wait()
    assert sorted(seen) == [("00000000", "total", 1), ("00000001", "by_user", 2), ("00000001", "total", 3)]


def test_an_empty_batch_closes_nothing(spark: SparkSession, clicks: Clicks, tmp_path: Path) -> None:
    clicks.add_seconds(1, 12)
    clicks.add()
    clicks.add_seconds(13, 14, 40)
    run_now(engine_over(spark, clicks, slack="0 seconds"), tmp_path / "out", tmp_path / "checkpoint", final=True)
    rows = rows_of(tmp_path / "out", "total")
    assert ends(rows) == [10, 20, 30, 50, 60]
    assert [row["n"] for row in rows] == ["1.5", "6.0", "4.5", "1.5", "1.5"]


def test_the_order_of_queries_in_the_file_does_not_matter_to_a_checkpoint(spark: SparkSession, clicks: Clicks, tmp_path: Path) -> None:
    clicks.add(click(1, n=5), click(2, n=7))
    window = "[RANGE 10 seconds SLIDE 10 seconds]"
    texts = {"s": f"SELECT sum(n) AS a FROM clicks {window}", "m": f"SELECT max(n) AS a FROM clicks {window}"}
    for order in (("s", "m"), ("m", "s")):
        engine = Engine(spark)
        engine.execute(PIPELINE.format(path=clicks.directory, slack="0 seconds").split("CREATE QUERY")[0])
        for name in order:
            engine.add(texts[name], name=name)
        run_now(engine, tmp_path / "out", tmp_path / "checkpoint", final=order[0] == "m")
    assert [rows_of(tmp_path / "out", name)[0]["a"] for name in ("s", "m")] == [12, 7]


def test_a_spark_checkpoint_that_fell_behind_the_log_is_refused(spark: SparkSession, clicks: Clicks, tmp_path: Path) -> None:
    for at in range(3):
        clicks.add_seconds(at * 30 + 1)
    run_now(engine_over(spark, clicks), tmp_path / "out", tmp_path / "checkpoint")
    for folder in ("offsets", "commits"):
        for name in ("1", "2"):
            for path in (tmp_path / "checkpoint/clicks/spark" / folder).glob(f"*{name}*"):
                path.unlink()
    clicks.add_seconds(100)
    with pytest.raises(CheckpointError, match="follow each other"):
        run_now(engine_over(spark, clicks), tmp_path / "out", tmp_path / "checkpoint")


class FailsBehind(FileSink):
    """Fails on an entry, but not before Spark has committed its batch."""

    failing_on, seen = EntryId(1), False

    def commit(self, entry: EntryId, results: Results, written: Sequence[Written], stream: str = "") -> None:
        if entry == self.failing_on and not FailsBehind.seen:
            commits, deadline = self.directory.local.parent / "checkpoint/clicks/spark/commits", time.monotonic() + 60
            while not (commits / str(entry.batch)).exists():
                assert time.monotonic() < deadline, "Spark waits for the results"
                time.sleep(0.02)
            FailsBehind.seen = True
            raise OSError("the disk is gone")
        super().commit(entry, results, written, stream)


def test_a_batch_that_spark_committed_before_its_results_were_written_is_finished_by_the_next_run(
    spark: SparkSession, clicks: Clicks, tmp_path: Path
) -> None:
    for at in range(4):
        clicks.add_seconds(20 * at + 1, 20 * at + 12)
    undisturbed = engine_over(spark, clicks)
    run_now(undisturbed, tmp_path / "truth", tmp_path / "elsewhere", final=True)
    sink = FailsBehind(tmp_path / "out", "jsonl", Layout.PARTS)
    job = engine_over(spark, clicks).start(sink, checkpoint=tmp_path / "checkpoint", trigger=NOW)
    with pytest.raises(OSError, match="the disk is gone"):
        job.wait()
    assert FailsBehind.seen
    assert not list((tmp_path / "out").glob("*/00000001*"))
    run_now(engine_over(spark, clicks), tmp_path / "out", tmp_path / "checkpoint", final=True)
    for query in ("by_user", "total"):
        assert rows_of(tmp_path / "out", query) == rows_of(tmp_path / "truth", query)


def test_a_batch_that_is_finished_by_the_next_run_keeps_the_version_it_was_pinned_to(
    spark: SparkSession, clicks: Clicks, tmp_path: Path
) -> None:
    clicks.add_seconds(1, 12)

    class FailsAtFirst(FailsBehind):
        failing_on = EntryId(0)

    FailsBehind.seen = False
    job = engine_over(spark, clicks).start(FailsAtFirst(tmp_path / "out", "jsonl", Layout.PARTS), checkpoint=tmp_path / "checkpoint")
    with pytest.raises(OSError, match="the disk is gone"):
        job.wait()
    edited = engine_over(spark, clicks)
    edited.drop("total")
    again = run_now(edited, tmp_path / "out", tmp_path / "checkpoint", final=True)
    assert (again.jobs["clicks"].oldest, edited.registry.version) == (1, 2)


class Held:
    """A callback that keeps a batch in hand, behind Spark's back, until it is let go; then it fails, if it shall."""

    def __init__(self, *, fails: bool = False) -> None:
        self.reached, self.let_go, self.fails = threading.Event(), threading.Event(), fails
        self.calls = 0

    def __call__(self, *_: object) -> None:
        self.calls += 1
        self.reached.set()
        assert self.let_go.wait(60)
        if self.fails:
            raise OSError("the disk is gone")


@pytest.mark.parametrize("fails", [False, True])
def test_a_batch_that_is_behind_spark_when_the_time_to_wait_is_up_is_waited_for_by_the_next_call(
    spark: SparkSession, clicks: Clicks, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fails: bool
) -> None:
    clicks.add_seconds(1, 12, 41, 70)
    held, look = Held(fails=fails), RunningJob._raise_failure

    def slow_look(job: RunningJob) -> None:
        look(job)
        while any(query.isActive for query in job.queries.values()):
            time.sleep(0.02)

    job = engine_over(spark, clicks).start(CallbackSink(held), checkpoint=tmp_path / "checkpoint", trigger=NOW)
    assert held.reached.wait(60)
    monkeypatch.setattr(RunningJob, "_raise_failure", slow_look)
    assert not job.wait(0.0, final=True), "Spark's query ends while it is looked for failures"
    assert job.active, "something is left of the last batch"
    held.let_go.set()
    if fails:
        with pytest.raises(OSError, match="the disk is gone"):
            job.wait(final=True)
    else:
        assert job.wait(final=True)
        assert str(job.jobs["clicks"].last) == "00000000.001"
    assert not job.active


def test_a_start_that_fails_half_way_leaves_nothing_running(
    spark: SparkSession, clicks: Clicks, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clicks.add_seconds(1, 12, 41, 70)
    (tmp_path / "others").mkdir()
    source = f"source = 'files', format = 'json', path = '{tmp_path / 'others'}', time = 'ts'"
    window = "SELECT count(*) AS c FROM others [RANGE 10 seconds SLIDE 10 seconds]"
    engine, held = engine_over(spark, clicks), Held()
    engine.execute(f"CREATE STREAM others (ts TIMESTAMP, n BIGINT) WITH ({source}); CREATE QUERY o AS {window};")
    frame = engine._frame

    def frame_or_failure(name: str, *, bounded: bool) -> Any:
        if name == "others":
            assert held.reached.wait(60)
            threading.Timer(0.5, held.let_go.set).start()
            raise OSError("the second source is not there")
        return frame(name, bounded=bounded)

    monkeypatch.setattr(engine, "_frame", frame_or_failure)
    with pytest.raises(OSError, match="the second source is not there"):
        engine.start(CallbackSink(held), checkpoint=tmp_path / "checkpoint")
    assert held.let_go.is_set()
    assert not [thread.name for thread in threading.enumerate() if thread.name == "muntin finishes a batch"]
    calls = held.calls
    time.sleep(0.5)
    assert held.calls == calls
