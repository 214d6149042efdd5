"""Which sink a user's `--out` and `--format` ask for.

In: the options of `muntin run`. Out: a sink, and the place of the dead letters. Convention: `kafka://` names topics, anything else a
directory, of files or of tables; without `--out` results are shown on the console.
"""

from __future__ import annotations

from collections.abc import Sequence

from muntin.errors import Refusal
from muntin.spark.place import Place
from muntin.spark.sinks.base import Sink
from muntin.spark.sinks.console import ConsoleSink
from muntin.spark.sinks.files import FileSink, Layout
from muntin.spark.sinks.kafka.address import SCHEME, Address
from muntin.spark.sinks.tables import TableSink
from muntin.spark.sinks.topics import TopicSink
from muntin.spark.sinks.writers import Format

#: The format of tables.
DELTA = "delta"


def sink_for(out: str | None, format: str, layout: Layout, kafka: Sequence[str] = ()) -> Sink:
    """`kafka` are settings of the client, `name=value`."""
    if out and out.startswith(SCHEME):
        return topics_at(out, format, kafka)
    if kafka:
        raise Refusal("--kafka is for results in topics", values=f"--out {out or 'is not given'}", way_out="--out kafka://host:port/topic")
    if not out:
        return ConsoleSink()
    return TableSink(Place.of(out), layout) if format.lower() == DELTA else FileSink(Place.of(out), format, layout)


def topics_at(out: str, format: str, kafka: Sequence[str]) -> TopicSink:
    if format.lower() == DELTA or Format.named(format) is not Format.JSONL:
        raise Refusal(
            "records of a topic are JSON", values=f"--format {format}", way_out="leave out --format, or give a directory to --out"
        )
    address = Address.parse(out)
    return TopicSink(address.servers, address.topic, settings=dict(map(setting, kafka)))


def setting(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not name or not equals:  # not shown as a whole: it may be a password
        law, way_out = "a setting of the Kafka client is name=value", "--kafka security.protocol=SASL_SSL"
        raise Refusal(law, values=f"--kafka {name[:3]}…", way_out=way_out)
    return name, value


def letters_for(out: str | None, dead_letters: str | None) -> Place | None:
    """Beside the results, if those are files and nothing else is asked for."""
    if dead_letters:
        return Place.of(dead_letters)
    return Place.of(out) / "_dead_letters" if out and not out.startswith(SCHEME) else None
