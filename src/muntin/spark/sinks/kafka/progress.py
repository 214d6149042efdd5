"""The progress topic: which entries are decided, and which of their parts are published.

In: marks, written in the transaction of the records they speak of. Out: the newest mark of every holder. Shape of a record: the key
names the holder, `muntin/<run>/<topic>/<instance, or driver>/<stream>`; the value is JSON, `{"entry": "00000012", "parts": [[0, "name"]]}`.
Convention: one partition, compacted: the newest record of a key stays. The mark of the driver is the decision on an entry, and lists the
parts that executors publish; that of an instance says that its part of the entry is published.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from muntin.errors import SinkError
from muntin.spark.sinks.base import EntryId
from muntin.spark.sinks.kafka.cluster import PATIENCE_SECONDS, TRANSACTION_SECONDS, Cluster, library

if TYPE_CHECKING:
    from confluent_kafka import Message
    from confluent_kafka.admin import AdminClient

PROGRESS = "muntin-progress"
_OURS = "muntin/"

#: Small segments: what is compacted away is not read at the next start.
CONFIG = {"cleanup.policy": "compact", "segment.bytes": str(1 << 20), "min.cleanable.dirty.ratio": "0.1"}


@dataclass(frozen=True)
class Holder:
    """Who publishes: the driver, or an instance. Its key is its transactional id as well."""

    run: str
    topic: str
    stream: str
    instance: int | None = None

    @property
    def key(self) -> str:
        return f"{_OURS}{self.run}/{self.topic}/{'driver' if self.instance is None else self.instance}/{self.stream}"


@dataclass(frozen=True)
class Part:
    """Records of an entry that an instance staged, in a file of this name."""

    instance: int
    name: str


@dataclass(frozen=True)
class Mark:
    entry: EntryId
    parts: tuple[Part, ...] = ()

    def text(self) -> str:
        return json.dumps({"entry": str(self.entry), "parts": [[one.instance, one.name] for one in self.parts]})

    @classmethod
    def parse(cls, text: bytes) -> Mark:
        found = json.loads(text)
        return cls(EntryId.parse(found["entry"]), tuple(Part(instance, name) for instance, name in found["parts"]))


@dataclass(frozen=True)
class Found:
    """A mark and its offset: what was published of the entry is marked behind it."""

    mark: Mark
    offset: int


@dataclass(frozen=True)
class ProgressTopic:
    cluster: Cluster
    name: str = PROGRESS

    def marks(self, since: int = 0) -> dict[str, Found]:
        """The newest marks by key, of all that was written before now.

        Transactions that are open now are waited for: they may hold back what was committed after they began. Those that a crash left
        open are aborted by the broker in the end.
        """
        with self.cluster.admin() as admin:
            self._wait(admin, self._end(admin, committed=False))
        return dict(self._committed(since))

    def _wait(self, admin: AdminClient, end: int) -> None:
        """Until all that was written before `end` is committed or aborted."""
        deadline = time.monotonic() + TRANSACTION_SECONDS + PATIENCE_SECONDS
        while self._end(admin, committed=True) < end:
            if time.monotonic() > deadline:
                law = "what was committed to the progress topic can be read"
                way_out = "look for a producer that holds a transaction open (kafka-transactions.sh)"
                raise SinkError(law, values=f"{self.name}: an open transaction holds back its end", way_out=way_out)
            time.sleep(0.05)

    def _end(self, admin: AdminClient, *, committed: bool) -> int:
        kafka = library()
        level = kafka.IsolationLevel.READ_COMMITTED if committed else kafka.IsolationLevel.READ_UNCOMMITTED
        partition = kafka.TopicPartition(self.name, 0)
        latest = {partition: kafka.admin.OffsetSpec.latest()}
        return int(admin.list_offsets(latest, isolation_level=level, request_timeout=PATIENCE_SECONDS)[partition].result().offset)

    def _committed(self, since: int) -> Iterator[tuple[str, Found]]:
        consumer = self.cluster.consumer()
        try:
            with self.cluster.complaints():
                consumer.assign([library().TopicPartition(self.name, 0, since)])
                while (message := consumer.poll(PATIENCE_SECONDS)) is not None:
                    error = message.error()
                    if error is None:
                        yield from found_in(message)
                    elif error.name() == "_PARTITION_EOF":
                        return
                    else:
                        raise library().KafkaException(error)
        finally:
            consumer.close()
        law, way_out = "the progress topic is read to its end", "check the cluster and start again"
        raise SinkError(law, values=f"{self.name}: nothing came for {PATIENCE_SECONDS} s", way_out=way_out)


def found_in(message: Message) -> Iterator[tuple[str, Found]]:
    """The key and the mark of a record; nothing, if it is not one of ours."""
    key, value, offset = message.key(), message.value(), message.offset()
    if key and key.startswith(_OURS.encode()) and value is not None and offset is not None:
        yield key.decode(), Found(Mark.parse(value), offset)
