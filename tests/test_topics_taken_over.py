"""Several who publish the same results to a real broker: one does, and the others know."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

import pyarrow as pa
import pytest

from kafka_broker import kafka_broker
from kafka_reader import records_in
from muntin import TopicSink, schema
from muntin.errors import CheckpointError, OwnershipError, SinkError
from muntin.expression.tree import AggregateCall, GroupKey
from muntin.query.model import Output, Query
from muntin.semantics import TimeWindow
from muntin.spark.place import Place
from muntin.spark.sinks.base import EntryId
from muntin.spark.sinks.kafka.progress import Mark, Part
from muntin.spark.sinks.kafka.publishing import Publication, publish
from muntin.spark.sinks.kafka.transactions import Publisher
from muntin.spark.sinks.spread import Written

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]
QUERY = Query(
    "q", "s", TimeWindow(60, 60), (Output("k", GroupKey(0, schema.STRING)), Output("n", AggregateCall("count", (), schema.BIGINT)))
)


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with kafka_broker(tmp_path_factory.mktemp("kafka") / "broker", partitions=3) as address:
        yield address


@pytest.fixture
def topic() -> str:
    return f"results-{uuid4().hex[:8]}"


def table(*numbers: int) -> pa.Table:
    return pa.table({"window_end": pa.array(numbers), "k": [f"k{number}" for number in numbers], "n": pa.array(numbers)})


def opened(broker: str, topic: str, spark: SparkSession | None = None, directory: Path | None = None) -> TopicSink:
    sink = TopicSink(broker, topic)
    if spark and directory:
        sink.equip(spark, Place.of(directory) / "sinks")
    sink.open("run", [QUERY])
    return sink


def numbers_in(broker: str, topic: str) -> list[str]:
    return sorted(record.key or "" for record in records_in(broker, topic))


def test_a_job_that_was_taken_over_publishes_nothing_more_and_says_so(broker: str, topic: str) -> None:
    first = opened(broker, topic)
    first.write(EntryId(0), [("q", table(1))], "s")
    second = opened(broker, topic)
    assert [second.holds(EntryId(0, timer), "s") for timer in (0, 1)] == [True, False]
    with pytest.raises(OwnershipError, match="one job at a time publishes the results of a run"):
        first.write(EntryId(0, 1), [("q", table(2))], "s")
    second.write(EntryId(0, 1), [("q", table(3))], "s")
    assert numbers_in(broker, topic) == ['{"k": "k1"}', '{"k": "k3"}']


def test_an_entry_that_fails_on_its_way_leaves_nothing_to_readers_and_is_written_again(broker: str, topic: str) -> None:
    def failing() -> Iterator[tuple[str, pa.Table]]:
        yield "q", table(1)
        raise ZeroDivisionError

    sink = opened(broker, topic)
    with pytest.raises(ZeroDivisionError):
        sink.write(EntryId(0), failing(), "s")
    assert not sink.holds(EntryId(0), "s")
    sink.write(EntryId(0), [("q", table(1, 2))], "s")
    assert numbers_in(broker, topic) == ['{"k": "k1"}', '{"k": "k2"}']


def test_two_streams_publish_at_the_same_time(broker: str, topic: str) -> None:
    sink = opened(broker, topic)

    def write(stream: str) -> None:
        for number in range(5):
            assert not sink.holds(EntryId(number), stream)
            sink.write(EntryId(number), [("q", table(number))], stream)

    with ThreadPoolExecutor(2) as both:
        list(both.map(write, ["s", "t"]))
    assert len(numbers_in(broker, topic)) == 10
    again = opened(broker, topic)
    assert all(again.holds(EntryId(4), stream) and not again.holds(EntryId(5), stream) for stream in ("s", "t"))


def staged_part(sink: TopicSink, entry: EntryId, scratch: Path) -> Written:
    writer = sink.writer("s")
    assert writer is not None
    (written,) = writer.write(entry, 0, iter([("q", table(1, 2, 3))]), scratch)
    return written


def test_copies_of_a_task_publish_a_part_once_and_all_succeed(broker: str, topic: str, spark: SparkSession, tmp_path: Path) -> None:
    sink = opened(broker, topic, spark, tmp_path)
    written = staged_part(sink, EntryId(0), tmp_path / "scratch")
    outlet = sink._outlet("s")
    assert outlet.staging is not None
    part = Part(0, written.name)
    publication = Publication(outlet.target, "s", EntryId(0), (part,), outlet.staging, 0)
    with ThreadPoolExecutor(3) as copies:
        list(copies.map(lambda _: publish(publication, part), range(3)))
    assert len(records_in(broker, topic)) == 3


def test_a_decided_part_whose_file_is_gone_is_an_error_and_never_a_gap(
    broker: str, topic: str, spark: SparkSession, tmp_path: Path
) -> None:
    sink = opened(broker, topic, spark, tmp_path)
    with pytest.raises(CheckpointError, match=r"(?s)gone: the file is missing, and its records are not published yet"):
        sink.commit(EntryId(0), [], [Written("records", 0, "gone")], "s")
    again = opened(broker, topic, spark, tmp_path)
    with pytest.raises(CheckpointError, match=r"(?s)gone: the file is missing"):
        again.holds(EntryId(0), "s")


def test_what_was_decided_is_published_at_the_next_start(broker: str, topic: str, spark: SparkSession, tmp_path: Path) -> None:
    sink = opened(broker, topic, spark, tmp_path)
    written = staged_part(sink, EntryId(0), tmp_path / "scratch")
    target = sink._outlet("s").target
    key = target.holder("s").key
    mark = Mark(EntryId(0), (Part(0, written.name),)).text()
    Publisher(target.cluster, key).publish([], [], topic_of=str, progress=target.progress.name, key=key, mark=mark)
    assert records_in(broker, topic) == []
    again = opened(broker, topic, spark, tmp_path)
    assert again.holds(EntryId(0), "s")
    assert len(records_in(broker, topic)) == 3
    assert not [path for path in (tmp_path / "sinks").rglob("*") if path.is_file()]


def test_without_a_checkpoint_results_come_through_the_driver(broker: str, topic: str) -> None:
    assert opened(broker, topic).writer("s") is None


def test_a_progress_topic_that_forgets_is_refused(broker: str, topic: str) -> None:
    opened(broker, topic)  # makes the topic, with several partitions, and no compaction
    with pytest.raises(SinkError, match=f"one partition.*\n  found: {topic}: 3 partitions, cleanup.policy = delete"):
        TopicSink(broker, "other", progress=topic).open("run", [QUERY])


def test_topics_that_are_missing_are_made_when_queries_join(broker: str, topic: str) -> None:
    sink = opened(broker, f"{topic}-{{query}}")
    sink.admit(Query("late", "s", TimeWindow(60, 60), QUERY.outputs))
    sink.write(EntryId(0), [("late", table(1))], "s")
    assert numbers_in(broker, f"{topic}-late") == ['{"k": "k1"}']
    assert records_in(broker, f"{topic}-q") == []
