"""Every type of window and every way to make punctuations on Spark: files in, batch by batch, stopped and resumed = the reference."""

from __future__ import annotations

import json
import os
import random
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from muntin import CallbackSink, Engine, MemorySink, Pace, Trigger
from muntin.errors import Refusal
from muntin.query.model import Query
from muntin.spark import slicelog
from muntin.timeline import SECOND, instant_of
from python_engine import Batch, PythonEngine
from test_laws import same
from traffic import clock_time, reading

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NOW = Trigger(Pace.AVAILABLE_NOW)
CREATE = """CREATE STREAM traffic (ts TIMESTAMP, seg_id STRING, speed DOUBLE, mile DECIMAL(8,2), vehicles INT, complete BOOLEAN)
  WITH (source = 'files', path = '{path}', format = '{format}', time = 'ts', max_files_per_trigger = '1', {options});"""
VALUES = "count(*) AS n, sum(vehicles) AS v, max(speed) AS fastest, avg(mile) AS mile"
WINDOWS = [
    "RANGE 7 seconds SLIDE 3 seconds",
    "RANGE UNBOUNDED SLIDE 5 seconds",
    "RANGE UNBOUNDED SLIDE 3 seconds LANDMARK 12 seconds OFFSET 1 second",
    "RANGE 2.5 SLIDE 0.75 WATTR mile",
    "RANGE 1.5 SLIDE 0.25 WATTR speed",
    "RANGE UNBOUNDED SLIDE 1 WATTR vehicles",
    "RANGE 3 seconds SLIDE 2 seconds WATTR arrival_ts",
    "RANGE 6 rows SLIDE 4 rows WATTR row_num",
    "RANGE UNBOUNDED SLIDE 3 rows LANDMARK 6 rows WATTR row_num",
    "RANGE 5 seconds RATTR ts SLIDE 1 row SATTR row_num",
    "RANGE 9 seconds RATTR ts SLIDE 3 rows SATTR row_num",
    "RANGE 4 seconds RATTR ts SLIDE 2 rows SATTR rank(ts)",
    "RANGE 4 seconds RATTR ts SLIDE 1 row SATTR row_num PATTR seg_id",
    "RANGE 1.5 RATTR mile SLIDE 1 row SATTR row_num",
    "RANGE 5 rows SLIDE 2 rows WATTR row_num PATTR seg_id",
    "RANGE UNBOUNDED SLIDE 2 rows LANDMARK 6 rows PATTR seg_id, vehicles",
    "RANGE 9 seconds RATTR ts SLIDE 3 rows SATTR row_num PATTR seg_id",
]
SELECTS = [f"SELECT {VALUES} FROM traffic [{{}}] WHERE vehicles <> 2", f"SELECT seg_id, {VALUES} FROM traffic [{{}}] GROUP BY seg_id"]
TEXTS = {f"q{at}": SELECTS[at % 2].format(window) for at, window in enumerate(WINDOWS)}


class Traffic:
    """A directory of JSON files, a micro-batch each, and a clock that tells a time for each of them: a second more, unless it is set."""

    def __init__(self, directory: Path) -> None:
        self.directory, self.batches = directory, list[Batch]()
        self.clock: Callable[[int], int] = lambda batch: (batch + 1) * SECOND
        directory.mkdir()

    def add(self, *rows: dict[str, Any]) -> None:
        number = len(self.batches)
        path = self.directory / f"{9 - number}.json"  # the order of names is not that of arrival
        path.write_text("".join(json.dumps(row, default=spelled) + "\n" for row in rows))
        os.utime(path, (1_700_000_000 + number,) * 2)
        self.batches.append(Batch(rows, self.clock(number)))

    def engine(self, spark: SparkSession, options: str, *, assembly: str = "driver", instances: int = 1, **texts: str) -> Engine:
        engine = Engine(spark, assembly=assembly, instances=instances)
        engine.execute(CREATE.format(path=self.directory, format="json", options=options))
        for name, text in texts.items():
            engine.add(text, name=name)
        started = engine._job

        def with_clock(*arguments: Any) -> Any:
            job = started(*arguments)
            job.clock = lambda: self.clock(job.last.batch + 1)
            return job

        engine._job = with_clock  # type: ignore[method-assign]
        return engine

    def check(self, engine: Engine, memory: MemorySink) -> None:
        """What came out is what the reference says of the batches under the stream's own punctuations."""
        queries: tuple[Query, ...] = engine.queries
        expected = PythonEngine(engine.streams["traffic"], queries).run(self.batches)
        for query in queries:
            ours, truth = memory.table(query.name).to_pylist(), expected.truth(query)
            assert truth, query
            assert same(ours, truth), f"{query}\nours  {ours}\ntruth {truth}"


def spelled(value: Any) -> Any:
    return value.isoformat() if isinstance(value, datetime) else str(value)


def some_rows(count: int, *, seed: int = 5, disorder: int = 4) -> list[dict[str, Any]]:
    chance = random.Random(seed)
    return [
        reading(
            (at - chance.randint(0, disorder)) * SECOND,
            chance.choice(["a", "b", None]),
            vehicles=chance.randint(0, 3),
            speed=chance.randint(-40, 40) / 8,
            mile=Decimal(chance.randint(-500, 500)).scaleb(-2),
        )
        for at in range(count)
    ]


@pytest.fixture
def traffic(tmp_path: Path) -> Traffic:
    return Traffic(tmp_path / "traffic")


def test_every_window_type_streamed_stopped_and_resumed_gives_the_reference_result(
    spark: SparkSession, traffic: Traffic, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(slicelog, "MOST_ENTRIES", 2)  # so that a snapshot is restored
    rows, memory = some_rows(50), MemorySink()
    options = "slack = '2 seconds', slack_of = 'mile 2.5, speed 1'"
    for last, part in ((False, (rows[:9], rows[9:30])), (True, (rows[30:],))):
        for batch in part:
            traffic.add(*batch)
        engine = traffic.engine(spark, options, **TEXTS)
        engine.start(memory, checkpoint=tmp_path / "checkpoint", trigger=NOW).wait(final=last)
    traffic.check(engine, memory)


def test_bounded_runs_number_rows_as_streams_do_and_equal_them(spark: SparkSession, traffic: Traffic) -> None:
    rows = some_rows(30, disorder=0)
    for at in range(0, 30, 6):
        traffic.add(*rows[at : at + 6])
    window = "RANGE 8 rows SLIDE 3 rows WATTR row_num"
    engine = traffic.engine(spark, "slack = '0 seconds'", q=f"SELECT {VALUES} FROM traffic [{window}] WHERE vehicles <> 2")
    engine.run(memory := MemorySink())
    traffic.check(engine, memory)


@pytest.mark.parametrize(
    "options",
    [
        "slack_rows = '7'",
        "substreams = 'seg_id', slack = '1 second'",
        "substreams = 'seg_id, vehicles', slack = '5 seconds', idle_after = '2 seconds', slack_rows = '20'",
    ],
)
def test_punctuations_are_those_of_the_declared_disorder(spark: SparkSession, traffic: Traffic, options: str) -> None:
    rows = some_rows(40)
    for at in range(0, 40, 10):
        traffic.add(*rows[at : at + 10])
    memory = MemorySink()
    engine = traffic.engine(spark, options, q=TEXTS["q1"])
    job = engine.start(memory, trigger=NOW)
    job.wait(final=True)
    traffic.check(engine, memory)


def test_a_row_without_a_place_on_an_attribute_is_a_dead_letter_there_and_counts_elsewhere(
    spark: SparkSession, traffic: Traffic, tmp_path: Path
) -> None:
    traffic.add(reading(SECOND, mile=Decimal("0.5")), reading(2 * SECOND, mile=None), reading(3 * SECOND, mile=Decimal("1.5")))
    engine = traffic.engine(
        spark, "slack = '0 seconds'", time="SELECT count(*) AS n FROM traffic [RANGE 9 seconds SLIDE 9 seconds]",
        mile="SELECT count(*) AS n FROM traffic [RANGE 9 SLIDE 9 WATTR mile]",
    )  # fmt: skip
    results = engine.run(dead_letters=tmp_path / "letters")
    assert [results[name].to_pylist()[0]["n"] for name in ("time", "mile")] == [3, 2]
    letters = [json.loads(line) for part in (tmp_path / "letters").rglob("*.json") for line in part.read_text().splitlines()]
    assert [letter["reason"] for letter in letters] == ["no mile to place it by"]
    assert "_muntin_arrived" not in letters[0]


def test_slide_by_tuple_over_ordered_input_is_sparks_range_between_and_row_windows_are_rows_between(
    spark: SparkSession, traffic: Traffic
) -> None:
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    rows = some_rows(60, disorder=0)
    traffic.add(*rows[:25])
    traffic.add(*rows[25:])
    values = "count(*) AS n, sum(vehicles) AS v, max(speed) AS fastest, variance(speed) AS spread, avg(mile) AS mile, min(seg_id) AS least"
    engine = traffic.engine(
        spark, "slack = '0 seconds'",
        tuples=f"SELECT {values} FROM traffic [RANGE 7 seconds RATTR ts SLIDE 1 row SATTR row_num]",
        rows=f"SELECT {values} FROM traffic [RANGE 5 rows SLIDE 1 row WATTR row_num]",
    )  # fmt: skip
    results = engine.run()
    frame = spark.createDataFrame(
        [(at, row["ts"], row["vehicles"], row["speed"], row["mile"], row["seg_id"]) for at, row in enumerate(rows)],
        "row BIGINT, ts TIMESTAMP, vehicles INT, speed DOUBLE, mile DECIMAL(8,2), seg_id STRING",
    ).withColumn("micros", F.unix_micros("ts"))
    seven = Window.orderBy("micros").rangeBetween(-7 * SECOND + 1, 0)
    five = Window.orderBy("row").rowsBetween(-4, 0)
    columns = [F.count("*"), F.sum("vehicles"), F.max("speed"), F.variance("speed"), F.avg("mile"), F.min("seg_id")]
    for name, over, end in (("tuples", seven, "ts"), ("rows", five, F.col("row") + 1)):
        expected = frame.select(end, *(column.over(over) for column in columns)).distinct().collect()
        ours = results[name].to_pylist()[: len(expected)]
        names = ("window_end", "n", "v", "fastest", "spread", "mile", "least")
        truth = [dict(zip(names, one, strict=True)) for one in sorted(expected, key=lambda one: one[0])]
        for row in truth:
            if name == "tuples":
                row["window_end"] = row["window_end"].replace(tzinfo=UTC)
            row["spread"] = row["spread"] if row["n"] > 1 else None
        assert same([{key: row[key] for key in names} for row in ours], truth)


def marker(at: int, seg_id: str | None) -> dict[str, Any]:
    return reading(at * SECOND, seg_id) | {"complete": True}


def test_markers_in_the_stream_close_windows_and_count_in_none(spark: SparkSession, traffic: Traffic) -> None:
    """Nothing closes before both segments are marked; a marker without a segment is about all."""
    traffic.add(reading(SECOND, "a"), reading(2 * SECOND, "b"), marker(20, "a"))
    traffic.add(reading(3 * SECOND, "b"), marker(11, "b"))
    traffic.add(reading(12 * SECOND, "b"), marker(30, None))
    closed: list[tuple[int, Any]] = []
    engine = traffic.engine(
        spark, "markers = 'complete', substreams = 'seg_id'",
        q="SELECT count(*) AS n FROM traffic [RANGE 10 seconds SLIDE 10 seconds]",
    )  # fmt: skip
    memory = MemorySink()
    job = engine.start(memory, trigger=NOW, on_progress=lambda one: closed.append((one.entries, one.windows_closed)))
    job.wait()
    assert closed == [(1, 0), (2, 1), (3, 2)]
    assert [row["n"] for row in memory.table("q").to_pylist()] == [3, 1]


def test_the_running_example_punctuation_p1_closes_extent_10_of_segment_s6_and_no_other(spark: SparkSession, traffic: Traffic) -> None:
    """window-id-2005, section 2: extents are numbered from 12:00, t1 is in 10 to 14, p1 promises nothing of s6 below 12:11."""
    window = "RANGE 5 minutes SLIDE 1 minute"
    traffic.add(
        reading(clock_time("12:10:30"), "s6", speed=55.0), reading(clock_time("12:10:10"), "s6", speed=61.0),
        reading(clock_time("12:08:00"), "s7", speed=40.0), reading(clock_time("12:11"), "s6") | {"complete": True},
    )  # fmt: skip
    engine, memory = traffic.engine(
        spark, "markers = 'complete', substreams = 'seg_id'",
        q=f"SELECT seg_id, avg(speed) AS speed, count(*) AS n FROM traffic [{window}] GROUP BY seg_id",
    ), MemorySink()  # fmt: skip
    job = engine.start(memory, trigger=NOW)
    job.wait()
    (row,) = memory.table("q").to_pylist()
    assert (row["seg_id"], row["speed"], row["n"]) == ("s6", 58.0, 2)
    assert instant_of(row["window_end"]) == clock_time("12:11")


def test_late_rows_are_counted_and_written_with_the_punctuation_they_missed(spark: SparkSession, traffic: Traffic, tmp_path: Path) -> None:
    traffic.add(reading(SECOND), reading(30 * SECOND))
    traffic.add(reading(12 * SECOND, vehicles=7), reading(40 * SECOND))
    texts = {
        name: f"SELECT count(*) AS n FROM traffic [RANGE 30 seconds SLIDE 10 seconds] LATE {name}" for name in ("generous", "consistent")
    }
    windows = {
        "corrected": "[RANGE 30 seconds SLIDE 10 seconds] LATE REEMIT FOR '5 seconds'",
        "daily": "[RANGE UNBOUNDED SLIDE 10 seconds LANDMARK 20 seconds]",
        "tuples": "[RANGE 9 seconds RATTR ts SLIDE 1 row SATTR row_num]",
        "none": "[RANGE 1 minute SLIDE 1 minute]",
    }
    others = {name: f"SELECT count(*) AS n FROM traffic {window}" for name, window in windows.items()}
    engine, memory = traffic.engine(spark, "slack = '0 seconds'", **texts, **others), MemorySink()
    job = engine.start(memory, trigger=NOW, late_rows=tmp_path / "late")
    job.wait(final=True)
    late = [json.loads(line) for part in (tmp_path / "late").rglob("*.json") for line in part.read_text().splitlines()]
    assert [(row["vehicles"], row["late_on"], row["punctuation"]) for row in late] == [(7, "ts", "1970-01-01T00:00:30.000Z")]
    assert {tuple(one["queries"]): (one["first_end"][17:19], one["last_end"][17:19]) for one in late[0]["missed"]} == {
        ("consistent", "generous"): ("20", "30"),
        ("corrected",): ("20", "20"),
        ("daily",): ("20", "20"),
        ("tuples",): ("12", "20"),
    }
    running = job.jobs["traffic"]
    assert [(running.assembly.lives[name].late, running.assembly.lives[name].dropped) for name in texts] == [(1, 0), (1, 1)]
    assert (running.progress().disorder.broken, running.progress().disorder.rows_late) == (1, 1)
    traffic.check(engine, memory)


def test_a_heartbeat_closes_windows_of_a_source_that_has_gone_silent(spark: SparkSession, tmp_path: Path) -> None:
    directory = tmp_path / "live"
    directory.mkdir()
    now = datetime.now(UTC)
    (directory / "0.json").write_text("".join(json.dumps({"ts": (now + timedelta(milliseconds=at)).isoformat()}) + "\n" for at in range(5)))
    engine, memory = Engine(spark), MemorySink()
    engine.execute(CREATE.format(path=directory, format="json", options="slack = '1 hour', heartbeat = '1 second'"))
    engine.add("SELECT count(*) AS n FROM traffic [RANGE 1 second SLIDE 1 second]", name="q")
    job = engine.start(memory, checkpoint=tmp_path / "checkpoint")
    deadline = time.monotonic() + 60
    while sum(row["n"] for row in memory.table("q").to_pylist()) < 5 and time.monotonic() < deadline:
        job.wait(0.2)
    job.stop()
    assert sum(row["n"] for row in memory.table("q").to_pylist()) == 5
    resumed = Engine(spark)
    resumed.execute(CREATE.format(path=directory, format="json", options="slack = '1 hour', heartbeat = '1 second'"))
    resumed.add("SELECT count(*) AS n FROM traffic [RANGE 1 second SLIDE 1 second]", name="q")
    again = resumed.start(memory, checkpoint=tmp_path / "checkpoint", trigger=NOW)
    again.wait(final=True)
    assert sum(row["n"] for row in memory.table("q").to_pylist()) == 5


def test_a_query_that_counts_rows_joins_only_where_they_are_numbered(spark: SparkSession, traffic: Traffic) -> None:
    traffic.add(reading(SECOND))
    engine = traffic.engine(spark, "slack = '0 seconds'", q="SELECT count(*) AS n FROM traffic [RANGE 9 seconds SLIDE 9 seconds]")
    job = engine.start(MemorySink())
    try:
        with pytest.raises(Refusal, match="numbered from the start"):
            engine.add("SELECT count(*) AS n FROM traffic [RANGE 9 rows SLIDE 9 rows]", name="rows")
    finally:
        job.stop()


def test_group_by_divides_each_window_and_pattr_gives_each_segment_windows_of_its_own(spark: SparkSession, traffic: Traffic) -> None:
    """The example of docs/windows.md: Q2 and Q4 of the paper over the same six rows, in batches of four and two."""
    rows = [reading(at * SECOND, seg) for at, seg in enumerate("aabaab")]
    traffic.add(*rows[:4])
    traffic.add(*rows[4:])
    window = "RANGE 4 rows SLIDE 2 rows WATTR row_num"
    engine, memory = traffic.engine(
        spark, "slack = '0 seconds'",
        q2=f"SELECT seg_id, count(*) AS n FROM traffic [{window}] GROUP BY seg_id",
        q4=f"SELECT seg_id, count(*) AS n FROM traffic [{window} PATTR seg_id]",
    ), MemorySink()  # fmt: skip
    engine.start(memory, trigger=NOW).wait()

    def found(name: str) -> list[tuple[int, str, int]]:
        return [(row["window_end"], row["seg_id"], row["n"]) for row in memory.table(name).to_pylist()]

    assert found("q2") == [(2, "a", 2), (4, "a", 3), (4, "b", 1), (6, "a", 2), (6, "b", 2)]
    assert sorted(found("q4")) == [(2, "a", 2), (2, "b", 2), (4, "a", 4)]


def test_rows_of_partitions_are_counted_from_the_first_row_on_or_not_at_all(spark: SparkSession, traffic: Traffic, tmp_path: Path) -> None:
    traffic.add(reading(SECOND))
    rows = "SELECT count(*) AS n FROM traffic [RANGE 9 rows SLIDE 9 rows]"
    traffic.engine(spark, "slack = '0 seconds'", q=rows).start(MemorySink(), checkpoint=tmp_path / "checkpoint", trigger=NOW).wait()
    engine = traffic.engine(
        spark, "slack = '0 seconds'", q=rows, late="SELECT count(*) AS n FROM traffic [RANGE 2 rows SLIDE 2 rows PATTR seg_id]"
    )
    with pytest.raises(Refusal, match="late counts row_num by seg_id, and 1 rows came while no query did"):
        engine.start(MemorySink(), checkpoint=tmp_path / "checkpoint", trigger=NOW)


def test_a_query_that_counts_rows_of_partitions_waits_for_the_batch_in_hand(spark: SparkSession, traffic: Traffic) -> None:
    """Whether it may join hangs on that batch: the first rows of the stream are in it, and nobody counts them."""
    reached, let_go = threading.Event(), threading.Event()

    def hold(*_: object) -> None:
        reached.set()
        assert let_go.wait(60)

    rows = "SELECT count(*) AS n FROM traffic [RANGE 1 rows SLIDE 1 rows]"
    engine = traffic.engine(spark, "slack = '0 seconds'", q=rows)
    job = engine.start(CallbackSink(hold))
    try:
        traffic.add(reading(SECOND))
        assert reached.wait(60)
        threading.Timer(0.5, let_go.set).start()
        with pytest.raises(Refusal, match="late counts row_num by seg_id, and 1 rows came while no query did"):
            engine.add("SELECT count(*) AS n FROM traffic [RANGE 2 rows SLIDE 2 rows PATTR seg_id]", name="late")
        assert let_go.is_set()
    finally:
        let_go.set()
        job.stop()


def test_dead_letters_have_numbers_in_their_partition_too(spark: SparkSession, traffic: Traffic) -> None:
    traffic.add(reading(SECOND, "a"), {"seg_id": "a"}, reading(2 * SECOND, "b"), reading(3 * SECOND, "a"))
    engine = traffic.engine(
        spark, "slack = '0 seconds'", q="SELECT seg_id, count(*) AS n FROM traffic [RANGE 2 rows SLIDE 2 rows PATTR seg_id]"
    )
    found = [(row["window_end"], row["seg_id"], row["n"]) for row in engine.run()["q"].to_pylist()]
    assert found == [(2, "a", 1), (2, "b", 1), (4, "a", 1)]


def test_each_folder_of_files_is_in_order_by_itself(spark: SparkSession, tmp_path: Path) -> None:
    """East has come to 50 s and west to 25 s, a file of each in every batch."""
    for at, (folder, seconds) in enumerate([("east", [1, 30]), ("west", [2, 12]), ("east", [40, 50]), ("west", [15, 25])]):
        path = tmp_path / "traffic" / folder / f"{at}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(json.dumps(reading(one * SECOND), default=spelled) + "\n" for one in seconds))
        os.utime(path, (1_700_000_000 + at,) * 2)
    engine, memory = Engine(spark), MemorySink()
    declared = CREATE.format(path=tmp_path / "traffic/*", format="json", options="substreams = 'source_folder', slack = '0 seconds'")
    engine.execute(declared.replace("max_files_per_trigger = '1'", "max_files_per_trigger = '2'"))
    engine.add("SELECT count(*) AS n FROM traffic [RANGE 10 seconds SLIDE 10 seconds]", name="q")
    job = engine.start(memory, trigger=NOW)
    job.wait()
    assert [row["n"] for row in memory.table("q").to_pylist()] == [2, 2]
    assert job.jobs["traffic"].progress().disorder.rows_late == 0


def test_the_papers_examples_extents_0_to_3_are_partial_t1_is_in_10_to_14_and_figure_4_in_any_order(
    spark: SparkSession, traffic: Traffic
) -> None:
    """window-id-2005: Query 1 (sections 2 and 3.3), and the arrival of t1 to t5, the last of which is out of order (Figure 4)."""
    minutes = [reading(at * 60 * SECOND + 30 * SECOND, "s6") for at in range(11)]  # the last is t1, at 10:30 of the stream
    traffic.add(*minutes)
    for second in (10, 15, 18, 22, 12):
        traffic.add(reading(3_600 * SECOND + second * SECOND, "figure 4"))
    query_1 = "SELECT count(*) AS n FROM traffic [RANGE 5 minutes SLIDE 1 minute WATTR ts] WHERE seg_id = 's6'"
    engine = traffic.engine(
        spark, "slack = '15 seconds'",
        query_1=query_1,
        t1=f"{query_1} AND minute(ts) = 10",
        figure_4="SELECT count(*) AS n FROM traffic [RANGE 10 seconds RATTR ts SLIDE 1 row SATTR row_num] WHERE seg_id = 'figure 4'",
    )  # fmt: skip
    memory = MemorySink()
    engine.start(memory, trigger=NOW).wait(final=True)
    extents = [(instant_of(row["window_end"]) // (60 * SECOND) - 1, row["n"]) for row in memory.table("query_1").to_pylist()]
    assert extents[:6] == [(0, 1), (1, 2), (2, 3), (3, 4), (4, 5), (5, 5)]
    assert [instant_of(row["window_end"]) // (60 * SECOND) - 1 for row in memory.table("t1").to_pylist()] == [10, 11, 12, 13, 14]
    found = [(instant_of(row["window_end"]) // SECOND - 3_600, row["n"]) for row in memory.table("figure_4").to_pylist()]
    assert found == [(10, 1), (12, 2), (15, 3), (18, 4), (22, 3)]
