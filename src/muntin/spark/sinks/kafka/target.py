"""What a run publishes to: a cluster, the topics of its queries, and the progress topic. It is pickled to executors.

In: names of queries. Out: topics that are there. Convention: a topic that is missing is made with the broker's defaults. The progress
topic has one partition, and is compacted: one with other settings would lose marks, and is refused.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from muntin.errors import SinkError
from muntin.spark.sinks.kafka.address import Address, check_topic
from muntin.spark.sinks.kafka.cluster import PATIENCE_SECONDS, Cluster, library
from muntin.spark.sinks.kafka.progress import CONFIG, Holder, ProgressTopic

if TYPE_CHECKING:
    from confluent_kafka.admin import AdminClient


@dataclass(frozen=True)
class Target:
    address: Address
    cluster: Cluster
    progress: ProgressTopic
    run: str

    def holder(self, stream: str, instance: int | None = None) -> Holder:
        return Holder(self.run, self.address.topic, stream, instance)

    def topics_of(self, queries: Iterable[str]) -> set[str]:
        """All legal, and none of them the progress topic."""
        topics = {self.address.topic_of(query) for query in queries}
        if check_topic(self.progress.name) in topics:
            law, way_out = "marks of progress have a topic of their own", "name another topic for the results"
            raise SinkError(law, values=self.progress.name, way_out=way_out)
        return topics

    def make_ready(self, queries: Iterable[str]) -> str:
        """See to the topics; the id of the cluster."""
        topics = self.topics_of(queries)
        with self.cluster.admin() as admin:
            found = admin.list_topics(timeout=PATIENCE_SECONDS)
            missing: dict[str, Mapping[str, str]] = {name: {} for name in topics - found.topics.keys()}
            if self.progress.name in found.topics:
                self._check_progress(admin, len(found.topics[self.progress.name].partitions))
            else:
                missing[self.progress.name] = CONFIG
            self._make(admin, missing)
            return str(found.cluster_id)

    def _make(self, admin: AdminClient, missing: Mapping[str, Mapping[str, str]]) -> None:
        new = library().admin.NewTopic
        wanted = [new(name, 1 if name == self.progress.name else -1, -1, config=dict(config)) for name, config in missing.items()]
        made: Mapping[str, Future[Any]] = admin.create_topics(wanted, request_timeout=PATIENCE_SECONDS) if wanted else {}
        for name, future in made.items():
            try:
                future.result()
            except library().KafkaException as error:
                if error.args[0].name() != "TOPIC_ALREADY_EXISTS":
                    law, way_out = "a topic is there, or can be made", "make the topic, or let this user make it"
                    raise SinkError(law, values=f"{name}: {error.args[0].str()}", way_out=way_out) from error

    def _check_progress(self, admin: AdminClient, partitions: int) -> None:
        kafka = library()
        resource = kafka.admin.ConfigResource(kafka.admin.ConfigResource.Type.TOPIC, self.progress.name)
        try:
            settings = admin.describe_configs([resource], request_timeout=PATIENCE_SECONDS)[resource].result()
        except kafka.KafkaException as error:
            if error.args[0].name() != "TOPIC_AUTHORIZATION_FAILED":  # who may not look cannot check
                raise
            settings = {}
        policy = settings["cleanup.policy"].value if settings else "compact"
        if partitions != 1 or policy != "compact":
            raise SinkError(
                "the progress topic has one partition, and keeps the newest record of every key",
                values=f"{self.progress.name}: {partitions} partitions, cleanup.policy = {policy}",
                way_out="TopicSink(…, progress=…) names another one, which is made",
            )
