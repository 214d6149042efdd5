"""What goes wrong with a stream, through the engine on Spark: each has a stated behaviour and a count that shows it (docs/windows.md)."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from muntin import Engine, MemorySink
from muntin.disorder import Counts
from muntin.timeline import DAY, MINUTE, SECOND, instant_of
from test_windows_spark import CREATE, NOW, Traffic, marker
from traffic import reading

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

BY_SEGMENT = "SELECT seg_id, count(*) AS n FROM traffic [RANGE 10 seconds SLIDE 10 seconds] GROUP BY seg_id"
ALL = "SELECT count(*) AS n FROM traffic [RANGE 10 seconds SLIDE 10 seconds]"


@pytest.fixture
def traffic(tmp_path: Path) -> Traffic:
    return Traffic(tmp_path / "traffic")


def streamed(spark: SparkSession, traffic: Traffic, options: str, late: Path | None = None, **texts: str) -> tuple[MemorySink, Counts]:
    engine, memory = traffic.engine(spark, options, **texts), MemorySink()
    job = engine.start(memory, trigger=NOW, late_rows=late)
    job.wait()
    return memory, job.jobs["traffic"].progress().disorder


def ends(memory: MemorySink, name: str) -> list[tuple[int, Any]]:
    return [(instant_of(row["window_end"]) // SECOND, row["n"]) for row in memory.table(name).to_pylist()]


def test_a_stalled_sub_stream_holds_the_others_back_until_it_is_idle_and_is_late_when_it_returns(
    spark: SparkSession, traffic: Traffic, tmp_path: Path
) -> None:
    """The clock ticks once a batch. Segment b is silent after the first: on the third tick more than a second has gone by."""
    traffic.add(reading(1 * SECOND, "a"), reading(2 * SECOND, "b"))
    traffic.add(reading(12 * SECOND, "a"))
    traffic.add(reading(33 * SECOND, "a"))
    traffic.add(reading(5 * SECOND, "b"), reading(34 * SECOND, "a"))
    memory, counts = streamed(
        spark, traffic, "substreams = 'seg_id', slack = '0 seconds', idle_after = '1 second'", tmp_path / "late", q=ALL
    )
    assert ends(memory, "q") == [(10, 2), (20, 1)]
    assert (counts.stalled, counts.broken, counts.rows_late) == (1, 1, 1)
    late = [json.loads(line) for part in (tmp_path / "late").rglob("*.json") for line in part.read_text().splitlines()]
    assert [(row["ts"], row["seg_id"], row["punctuation"]) for row in late] == [
        ("1970-01-01T00:00:05.000Z", "b", "1970-01-01T00:00:33.000Z")
    ]  # fmt: skip


def test_a_row_below_the_marker_of_its_own_segment_breaks_its_promise_and_no_other(
    spark: SparkSession, traffic: Traffic, tmp_path: Path
) -> None:
    """Segment a is marked up to 20 s. A row of a at 15 s is late; one of b at 5 s is not, since nothing was promised of b."""
    traffic.add(reading(1 * SECOND, "a"), reading(3 * SECOND, "b"), marker(20, "a"))
    traffic.add(reading(15 * SECOND, "a"), reading(5 * SECOND, "b"), marker(20, "b"))
    memory, counts = streamed(spark, traffic, "substreams = 'seg_id', markers = 'complete'", tmp_path / "late", q=BY_SEGMENT)
    found = [(row["seg_id"], instant_of(row["window_end"]) // SECOND, row["n"]) for row in memory.table("q").to_pylist()]
    assert found == [("a", 10, 1), ("b", 10, 2)]
    assert (counts.broken, counts.rows_late) == (1, 1)
    late = [json.loads(line) for part in (tmp_path / "late").rglob("*.json") for line in part.read_text().splitlines()]
    assert [(row["seg_id"], row["punctuation"]) for row in late] == [("a", "1970-01-01T00:00:20.000Z")]


def test_a_clock_that_leaps_is_followed_by_five_minutes_a_batch_and_one_that_goes_back_stands_still(
    spark: SparkSession, traffic: Traffic
) -> None:
    """By the heartbeat rows come at most 10 s after their time. The clock leaps by a day, then goes back by two."""
    clocks = [100 * SECOND, 101 * SECOND, DAY, -DAY]
    traffic.clock = lambda batch: clocks[min(batch, 3)]
    traffic.add(reading(95 * SECOND))
    traffic.add(reading(96 * SECOND), reading(6 * MINUTE))
    traffic.add(reading(8 * MINUTE))
    traffic.add(reading(9 * MINUTE))
    memory, counts = streamed(spark, traffic, "slack = '1 hour', heartbeat = '10 seconds'", q=ALL)
    # Believed to be 101 s + 5 min = 401 s: complete below 391 s, where a day ahead would have closed everything.
    assert ends(memory, "q") == [(100, 2), (370, 1)]
    assert (counts.clock_jumps, counts.rows_late) == (2, 0)


def test_an_idle_source_stands_still_and_timers_count_it_where_a_clock_could_move_it(spark: SparkSession, tmp_path: Path) -> None:
    """Nothing comes after the first file: with a heartbeat of an hour no window closes, and each timer counts that nothing came."""
    directory = tmp_path / "traffic"
    directory.mkdir()
    (directory / "0.json").write_text(json.dumps({"ts": "1970-01-01T00:00:01Z"}) + "\n")
    engine, memory = Engine(spark), MemorySink()
    engine.execute(CREATE.format(path=directory, format="json", options=f"slack = '1 hour', heartbeat = '{100 * 365} days'"))
    engine.add(ALL, name="q")
    job = engine.start(memory)
    deadline = time.monotonic() + 60
    while job.jobs["traffic"].progress().disorder.idle < 2 and time.monotonic() < deadline:
        job.wait(0.2)
    idle = job.jobs["traffic"].progress().disorder.idle
    job.stop()
    assert idle >= 2
    assert memory.table("q").num_rows == 0
