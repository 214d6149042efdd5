"""What a reader of committed records finds in a topic."""

from __future__ import annotations

from dataclasses import dataclass

from confluent_kafka import Consumer, TopicPartition


@dataclass(frozen=True)
class Record:
    key: str | None
    value: str
    headers: tuple[tuple[str, str], ...]
    partition: int


def records_in(broker: str, topic: str, *, level: str = "read_committed") -> list[Record]:
    """All there are now; those of a partition in their order."""
    settings = {"bootstrap.servers": broker, "group.id": "reader", "enable.auto.commit": False, "enable.partition.eof": True}
    consumer = Consumer(settings | {"isolation.level": level, "auto.offset.reset": "earliest"})
    left = set(consumer.list_topics(topic, timeout=30).topics[topic].partitions)
    consumer.assign([TopicPartition(topic, number, 0) for number in left])
    found: list[Record] = []
    while left:
        message = consumer.poll(60)
        assert message is not None, f"nothing comes from {topic}"
        error = message.error()
        if error is not None:
            assert error.name() == "_PARTITION_EOF", error
            left.discard(message.partition())
            continue
        key, headers = message.key(), tuple((name, value.decode()) for name, value in message.headers() or ())
        found.append(Record(None if key is None else key.decode(), message.value().decode(), headers, message.partition()))
    consumer.close()
    return found
