"""Results as records of topics, without a broker: names, keys, marks, and what is refused."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import pyarrow as pa
import pytest

from muntin import TopicSink, schema
from muntin.errors import CheckpointError, MuntinError, OwnershipError, SinkError
from muntin.expression.tree import AggregateCall, GroupKey
from muntin.query.model import GroupColumn, Output, Query
from muntin.semantics import TimeWindow
from muntin.spark.place import Place
from muntin.spark.sinks.base import EntryId
from muntin.spark.sinks.choosing import letters_for, sink_for
from muntin.spark.sinks.console import ConsoleSink
from muntin.spark.sinks.files import FileSink, Layout
from muntin.spark.sinks.kafka.address import Address
from muntin.spark.sinks.kafka.cluster import Cluster
from muntin.spark.sinks.kafka.outlet import undone
from muntin.spark.sinks.kafka.progress import Holder, Mark, Part
from muntin.spark.sinks.kafka.records import PIECE, in_pieces, records_of
from muntin.spark.sinks.kafka.staging import StagingWriter, staged
from muntin.spark.sinks.text import json_lines

NOWHERE = "127.0.0.1:1"  #: nobody listens there


def query(name: str, *groups: str) -> Query:
    outputs = (*(Output(group, GroupKey(at, schema.STRING)) for at, group in enumerate(groups)),)
    keys = tuple(GroupColumn(group, GroupKey(at, schema.STRING)) for at, group in enumerate(groups))
    return Query(name, "s", TimeWindow(60, 60), (*outputs[::-1], Output("n", AggregateCall("count", (), schema.BIGINT))), group_by=keys)


TABLE = pa.table({"window_end": pa.array([5, 5, 7]), "user": ["ü", None, "b"], "city": ["x", "y", "z"], "n": [1, 2, 3]})


# -- names -------------------------------------------------------------------------------------------------------------------------


def test_an_address_has_servers_and_a_topic_for_each_query_or_for_all() -> None:
    assert Address.parse("kafka://a:9092,b:9093/all") == Address("a:9092,b:9093", "all")
    assert Address.parse("kafka://a:9092/").topic_of("big") == "muntin-big"
    assert Address.parse("kafka://a:9092/x.{query}.y").topic_of("big") == "x.big.y"
    assert str(Address.parse("kafka://a:9092/x")) == "kafka://a:9092/x"


@pytest.mark.parametrize("topic", ["a/b", "a b", "größe", ".", "..", "a?b=c", "{name}", "x" * 250])
def test_a_topic_that_kafka_does_not_take_is_refused(topic: str) -> None:
    with pytest.raises(SinkError, match="1 to 249 letters, digits, dots, underscores and hyphens"):
        TopicSink("a:9092", topic)


def test_a_topic_of_249_letters_is_taken() -> None:
    assert Address("a:9092", "x" * 249).topic_of("q") == "x" * 249


def test_a_query_whose_name_makes_no_topic_is_refused_before_a_broker_is_asked() -> None:
    sink = TopicSink(NOWHERE, "results-{query}")
    with pytest.raises(SinkError, match=r"(?s)found: 'results-größe'.*rename the query 'größe', or give a topic without \{query\}"):
        sink.open("run", [query("größe")])


def test_the_progress_topic_takes_no_results() -> None:
    with pytest.raises(SinkError, match="marks of progress have a topic of their own"):
        TopicSink(NOWHERE, "muntin-{query}").open("run", [query("progress")])


@pytest.mark.parametrize("servers", ["", ",", "a:9092,", "user:secret@a:9092"])
def test_servers_are_named_without_credentials(servers: str) -> None:
    with pytest.raises(SinkError, match="kafka://host:port/topic") as refused:
        TopicSink(servers, "all")
    assert "secret" not in str(refused.value)


def test_topics_of_different_patterns_have_different_directories() -> None:
    patterns = ["{query}", "query", "a-{query}", "a-query", "{query}{query}"]
    names = {Address("a:9092", pattern).file_name for pattern in patterns}
    assert len(names) == len(patterns)
    assert all((Place.of("d") / name).name == name for name in names)


# -- records -----------------------------------------------------------------------------------------------------------------------


def test_a_record_has_the_line_of_a_file_and_the_group_columns_as_its_key() -> None:
    grouped = query("q", "user", "city")
    assert grouped.selected_groups == ("user", "city")  # in the order of GROUP BY, whatever the select list's
    (batch,) = records_of("q", TABLE, grouped.selected_groups)
    lines = b"".join(map(bytes, json_lines(TABLE))).decode().splitlines()
    assert batch["value"].to_pylist() == lines
    assert batch["key"].to_pylist()[:2] == ['{"user": "ü", "city": "x"}', '{"user": null, "city": "y"}']
    assert batch["query"].to_pylist() == ["q"] * 3
    assert json.loads(lines[1]) == {"window_end": 5, "user": None, "city": "y", "n": 2}


def test_without_group_columns_there_is_no_key() -> None:
    (batch,) = records_of("q", TABLE, query("q").selected_groups)
    assert batch["key"].to_pylist() == [None] * 3


def test_few_records_of_many_queries_make_one_piece() -> None:
    some = [batch for number in range(10) for batch in records_of(f"q{number}", TABLE, ["user"])]
    assert [len(piece) for piece in in_pieces(iter(some))] == [30]
    large = pa.table({"window_end": pa.array(range(PIECE + 1))})
    assert [len(piece) for piece in in_pieces(records_of("q", large, []))] == [PIECE, 1]


def test_what_is_staged_is_read_as_it_was(tmp_path: Path) -> None:
    staging = Place.of(tmp_path / "staging")
    results = [("a", TABLE), ("b", TABLE.slice(0, 1)), ("a", TABLE)]
    (one,) = StagingWriter(staging, {"a": ("user",), "b": ()}).write(EntryId(3), 1, iter(results), tmp_path / "scratch")
    found = pa.Table.from_batches(staged(staging / "00000003" / one.name))
    assert one.instance == 1
    assert found["query"].to_pylist() == ["a"] * 3 + ["b"] + ["a"] * 3
    assert found["key"].to_pylist()[:4] == ['{"user": "ü"}', '{"user": null}', '{"user": "b"}', None]


def test_an_instance_without_results_stages_nothing(tmp_path: Path) -> None:
    assert StagingWriter(Place.of(tmp_path), {}).write(EntryId(3), 1, iter(()), tmp_path / "scratch") == []


def test_a_staged_file_that_is_missing_or_damaged_is_refused_by_its_name(tmp_path: Path) -> None:
    with pytest.raises(
        CheckpointError, match=r"(?s)every file of a checkpoint.*gone: the file is missing, and its records are not published"
    ):
        list(staged(Place.of(tmp_path) / "gone"))
    (tmp_path / "damaged").write_bytes(b"nothing")
    with pytest.raises(CheckpointError, match=r"damaged: it cannot be read"):
        list(staged(Place.of(tmp_path) / "damaged"))


# -- marks -------------------------------------------------------------------------------------------------------------------------


def test_a_mark_is_read_as_it_was_written() -> None:
    mark = Mark(EntryId(12, 1), (Part(0, "a-records"), Part(7, "b-records")))
    assert Mark.parse(mark.text().encode()) == mark
    assert mark.text() == '{"entry": "00000012.001", "parts": [[0, "a-records"], [7, "b-records"]]}'


def test_everybody_who_publishes_has_a_name_of_its_own() -> None:
    holders = [Holder("r", "t", "s"), Holder("r", "t", "s", 0), Holder("r", "t", "s", 1), Holder("r", "t", "u"), Holder("r", "u", "s")]
    assert len({one.key for one in holders}) == len(holders)
    assert holders[1].key == "muntin/r/t/0/s"


def test_the_parts_that_are_not_published_are_left_to_do() -> None:
    decided = Mark(EntryId(5), (Part(0, "a"), Part(1, "b"), Part(2, "c"), Part(3, "d")))
    published = {0: EntryId(4, 9), 1: EntryId(5), 2: EntryId(5, 1)}
    assert undone(decided, published) == [Part(0, "a"), Part(3, "d")]


# -- refusals ----------------------------------------------------------------------------------------------------------------------


def test_a_cluster_that_nobody_answers_for_is_told_in_bounded_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("muntin.spark.sinks.kafka.target.PATIENCE_SECONDS", 1)
    begun = time.monotonic()
    with pytest.raises(SinkError, match=r"(?s)a Kafka cluster takes the results.*127\.0\.0\.1:1.*Connection refused.*check the servers"):
        TopicSink(NOWHERE, "all").open("run", [query("q")])
    assert time.monotonic() - begun < 10


def test_without_the_package_topics_are_refused_here_and_on_executors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "confluent_kafka", None)
    with pytest.raises(SinkError, match=r"(?s)confluent-kafka.*pip install muntin\[kafka\]"):
        TopicSink("a:9092")
    with pytest.raises(SinkError, match=r"on every machine of the cluster"):
        StagingWriter(Place.of(tmp_path), {"a": ()}).write(EntryId(0), 0, iter([("a", TABLE)]), tmp_path)
    assert not any(tmp_path.iterdir())


@pytest.mark.parametrize("name", ["transactional.id", "enable.idempotence", "bootstrap.servers"])
def test_what_exactly_once_rests_on_is_not_for_users_to_set(name: str) -> None:
    with pytest.raises(SinkError, match=f"set by Muntin\n  found: {name}"):
        TopicSink("a:9092", settings={name: "x"})


def test_a_setting_that_the_client_does_not_know_is_refused() -> None:
    with pytest.raises(SinkError, match=r'No such configuration property: "sasl\.pasword"'):
        TopicSink(NOWHERE, "all", settings={"sasl.pasword": "secret"}).open("run", [query("q")])


def test_settings_are_not_shown() -> None:
    assert "secret" not in repr(Cluster("a:9092", {"sasl.password": "secret"}))


def test_a_job_that_was_fenced_is_told_who_goes_on() -> None:
    from confluent_kafka import KafkaError, KafkaException

    cluster = Cluster("a:9092")
    with pytest.raises(OwnershipError, match=r"(?s)one job at a time publishes.*leave it to the job that took over"), cluster.complaints():
        raise KafkaException(KafkaError(KafkaError._FENCED))


# -- the command line --------------------------------------------------------------------------------------------------------------


def test_out_and_format_choose_the_sink(tmp_path: Path) -> None:
    assert isinstance(sink_for(None, "jsonl", Layout.PARTS), ConsoleSink)
    assert isinstance(sink_for(str(tmp_path), "csv", Layout.PARTS), FileSink)
    topics = sink_for("kafka://a:9092,b:9092/all", "jsonl", Layout.PARTS, ["security.protocol=SSL"])
    assert isinstance(topics, TopicSink)
    assert topics.address == Address("a:9092,b:9092", "all")


@pytest.mark.parametrize(
    ("out", "format", "kafka", "told"),
    [
        ("kafka://a:9092/all", "csv", [], r"records of a topic are JSON\n  found: --format csv"),
        ("kafka://a:9092/all", "text", [], r"a format Muntin knows"),
        ("kafka://", "jsonl", [], r"kafka://host:port/topic"),
        ("kafka://a:9092/all", "jsonl", ["hunter2"], r"name=value\n  found: --kafka hun…"),
        ("out", "jsonl", ["a=b"], r"--kafka is for results in topics\n  found: --out out"),
        (None, "jsonl", ["a=b"], r"--out is not given"),
    ],
)
def test_options_that_do_not_go_together_are_refused(out: str | None, format: str, kafka: list[str], told: str) -> None:
    with pytest.raises(MuntinError, match=told):
        sink_for(out, format, Layout.PARTS, kafka)


def test_dead_letters_lie_beside_files_and_have_no_place_beside_topics() -> None:
    assert str(letters_for("out", None)) == "out/_dead_letters"
    assert str(letters_for("kafka://a:9092/all", "letters")) == "letters"
    assert letters_for("kafka://a:9092/all", None) is None
    assert letters_for(None, None) is None
