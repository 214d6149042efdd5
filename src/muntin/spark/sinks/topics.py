"""Results as records of Kafka topics, exactly once: readers of committed records see those of an undisturbed run.

In: result tables. Out: a record a row in the query's topic: value and key as `kafka.records` has them, headers `query`, `run`, `entry`.
Convention: an entry is a transaction of the driver's, and one of each instance's; `kafka.outlet` has the order of things. What executors
assembled is staged in the checkpoint and published from there by executors. Without a checkpoint nothing says after a restart what was
published before, and results of executors come through the driver.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from threading import Lock
from typing import TYPE_CHECKING

from muntin.query.model import Query
from muntin.spark.place import Place
from muntin.spark.sinks.base import EntryId, Results
from muntin.spark.sinks.kafka.address import DEFAULT_TOPIC, Address
from muntin.spark.sinks.kafka.cluster import Cluster, check_settings, library
from muntin.spark.sinks.kafka.outlet import Outlet
from muntin.spark.sinks.kafka.progress import PROGRESS, ProgressTopic
from muntin.spark.sinks.kafka.records import all_records
from muntin.spark.sinks.kafka.staging import StagingWriter
from muntin.spark.sinks.kafka.target import Target
from muntin.spark.sinks.spread import SpreadSink, Written

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Groups = Mapping[str, Sequence[str]]


class TopicSink(SpreadSink):
    """Results as records. `servers` are `host:port`, with commas in between; `{query}` in `topic` stands for the query's name.

    `settings` are properties of librdkafka, for security and the like. `progress` names the topic that says what is published.
    """

    promise = "Exactly once for readers of committed records, if the job has a checkpoint; at least once without."

    def __init__(
        self, servers: str, topic: str = DEFAULT_TOPIC, *, settings: Mapping[str, str] | None = None, progress: str = PROGRESS
    ) -> None:
        library()
        check_settings(settings or {})
        self.address = Address(servers, topic)
        self._progress = ProgressTopic(Cluster(servers, dict(settings or {})), progress)
        self._spark: SparkSession | None = None
        self._directory: Place | None = None
        self._staging: Place | None = None
        self._target: Target | None = None
        self._known: Groups = {}
        self._expected: dict[str, Groups] = {}
        self._outlets: dict[str, Outlet] = {}
        self._lock = Lock()

    def equip(self, spark: SparkSession, directory: Place | None) -> None:
        self._spark, self._directory = spark, directory

    def open(self, run: str, queries: Sequence[Query]) -> None:
        self._target = Target(self.address, self._progress.cluster, self._progress, run)
        self._known, self._expected, self._outlets = groups_of(queries), {}, {}
        cluster = self._target.make_ready(self._known)
        # Two clusters may have topics of one name.
        self._staging = (self._directory / cluster / self.address.file_name).everywhere if self._directory else None

    def admit(self, query: Query) -> None:
        self._opened.make_ready([query.name])
        self._known = {**self._known, **groups_of([query])}

    def expect(self, queries: Sequence[Query], stream: str = "") -> None:
        self._expected[stream] = groups_of(queries)

    def holds(self, entry: EntryId, stream: str = "") -> bool:
        return entry <= self._outlet(stream).last

    def writer(self, stream: str) -> StagingWriter | None:
        staging = self._outlet(stream).staging
        return StagingWriter(staging, self._groups(stream)) if staging else None

    def write(self, entry: EntryId, results: Results, stream: str = "") -> None:
        self.commit(entry, results, (), stream)

    def commit(self, entry: EntryId, results: Results, written: Sequence[Written], stream: str = "") -> None:
        self._outlet(stream).commit(entry, all_records(iter(results), self._groups(stream)), written)

    def close(self) -> None:
        self._outlets = {}

    @property
    def _opened(self) -> Target:
        assert self._target is not None, "the sink is open"
        return self._target

    def _groups(self, stream: str) -> Groups:
        return self._expected.get(stream, self._known)

    def _outlet(self, stream: str) -> Outlet:
        with self._lock:
            if stream not in self._outlets:
                staging = self._staging / (stream or "results") if self._staging else None
                self._outlets[stream] = Outlet(self._opened, stream, self._spark, staging)
            return self._outlets[stream]


def groups_of(queries: Iterable[Query]) -> Groups:
    return {query.name: query.selected_groups for query in queries}
