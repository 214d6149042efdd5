"""A Kafka cluster: clients for it, and what went wrong with it in words.

In: servers, and settings of librdkafka. Out: producers, consumers and admin clients of confluent-kafka, which is imported when the first
one is made. Convention: it is pickled to executors, and clients are made where they are used. What fails is a `SinkError` within
`PATIENCE_SECONDS`, or an `OwnershipError` where another job publishes under the same transactional id.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import ModuleType
from typing import TYPE_CHECKING, Any

from muntin.errors import OwnershipError, Refusal, SinkError

if TYPE_CHECKING:
    from confluent_kafka import Consumer, Producer
    from confluent_kafka.admin import AdminClient

#: How long one request to the cluster may take.
PATIENCE_SECONDS = 30

#: How long a transaction may be open before the broker aborts it. One that a crash left open holds back readers as long.
TRANSACTION_SECONDS = 120

#: What exactly-once delivery rests on.
_OWN = frozenset({"bootstrap.servers", "transactional.id", "enable.idempotence", "isolation.level", "enable.partition.eof"})

#: What other clients do: the same key goes to the same partition. Connections that fail are told with the error, not logged one by one.
_DEFAULTS = {"partitioner": "murmur2_random", "transaction.timeout.ms": TRANSACTION_SECONDS * 1000, "log_level": 2}
_PRODUCERS = frozenset({"partitioner", "transaction.timeout.ms"})

_FENCED = frozenset({"_FENCED", "PRODUCER_FENCED", "INVALID_PRODUCER_EPOCH"})


def library() -> ModuleType:
    """confluent-kafka, or a refusal that says how to get it."""
    try:
        import confluent_kafka
        import confluent_kafka.admin
    except ImportError as error:
        law, way_out = "topics are written with the package confluent-kafka", "pip install muntin[kafka], on every machine of the cluster"
        raise SinkError(law, values=f"it cannot be imported ({error})", way_out=way_out) from None
    return confluent_kafka


def check_settings(settings: Mapping[str, str]) -> None:
    own = sorted(_OWN & settings.keys())
    if own:
        law, way_out = "what exactly-once delivery rests on is set by Muntin", "leave it out; the servers are part of the address"
        raise SinkError(law, values=", ".join(own), way_out=way_out)


@dataclass(frozen=True)
class Cluster:
    """`settings` may hold credentials and are not shown."""

    servers: str
    settings: Mapping[str, str] = field(default_factory=dict, repr=False)

    def producer(self, transactional_id: str) -> Producer:
        with self.complaints():
            made: Producer = library().Producer(self._settings({"transactional.id": transactional_id}))
            return made

    def consumer(self) -> Consumer:
        """One that reads what is committed, from where it is told to; it is in no group, though librdkafka wants the name of one.

        It does not wait for more at the end of what is there: a half second, if not told otherwise.
        """
        reading = {"isolation.level": "read_committed", "enable.partition.eof": True, "auto.offset.reset": "earliest"}
        alone = {"group.id": "muntin", "enable.auto.commit": False, "fetch.wait.max.ms": 10}
        with self.complaints():
            made: Consumer = library().Consumer(alone | self._settings(reading, without=_PRODUCERS))
            return made

    @contextmanager
    def admin(self) -> Iterator[AdminClient]:
        """Its complaints say why servers could not be reached."""
        reasons: list[str] = []
        settings = self._settings({"error_cb": lambda error: reasons.append(error.str())}, without=_PRODUCERS)
        client: AdminClient | None = None
        with self.complaints(reasons):
            try:
                client = library().admin.AdminClient(settings)
                yield client
            finally:
                if client is not None:
                    client.poll(0)

    def _settings(self, own: Mapping[str, Any], without: Collection[str] = ()) -> dict[str, Any]:
        defaults = {name: value for name, value in _DEFAULTS.items() if name not in without}
        return {"bootstrap.servers": self.servers} | defaults | dict(self.settings) | dict(own)

    @contextmanager
    def complaints(self, reasons: list[str] | None = None) -> Iterator[None]:
        try:
            yield
        except library().KafkaException as error:
            raise self.refusal(error, (reasons or [""])[-1]) from error

    def refusal(self, error: Any, reason: str = "") -> Refusal:
        cause = error.args[0]
        if cause.name() in _FENCED:
            return OwnershipError(
                "one job at a time publishes the results of a run",
                values=f"{self.servers}: {cause.str()}",
                way_out="leave it to the job that took over; if none did, a transaction took longer than transaction.timeout.ms: raise it",
            )
        found = f"{self.servers}: {cause.str()}" + (f" ({reason})" if reason and reason != cause.str() else "")
        way_out = "check the servers, the settings (--kafka name=value) and what the cluster allows; what was committed before stays"
        return SinkError("a Kafka cluster takes the results", values=found, way_out=way_out)
