"""Staged parts, published by executors once the driver has decided on their entry.

In: a `Publication`, which says which parts of an entry are to be published. Out: nothing, when all are. Convention: a task makes itself
the only one that publishes for its instance, then looks whether its part is published already, then publishes it with its mark. So a part
is published once, however often its task is repeated or copied; a copy that another one fenced waits for the other's mark.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pyarrow as pa
from pyspark.cloudpickle import dumps, loads
from pyspark.sql import SparkSession

from muntin.errors import CheckpointError, OwnershipError, Refusal, SinkError
from muntin.spark.place import Place
from muntin.spark.sinks.base import EntryId
from muntin.spark.sinks.kafka.cluster import PATIENCE_SECONDS
from muntin.spark.sinks.kafka.progress import Mark, Part
from muntin.spark.sinks.kafka.staging import staged
from muntin.spark.sinks.kafka.target import Target
from muntin.spark.sinks.kafka.transactions import Headers, Publisher

SCHEMA = "refusal binary"


def headers_of(run: str, entry: EntryId) -> Headers:
    return [("run", run.encode()), ("entry", str(entry).encode())]


@dataclass(frozen=True)
class Publication:
    """`since` is the offset of the decision: marks of its parts are behind it."""

    target: Target
    stream: str
    entry: EntryId
    parts: tuple[Part, ...]
    staging: Place
    since: int

    def is_published(self, part: Part) -> bool:
        found = self.target.progress.marks(self.since).get(self.target.holder(self.stream, part.instance).key)
        return found is not None and found.mark.entry >= self.entry

    def publish(self, part: Part) -> None:
        holder = self.target.holder(self.stream, part.instance)
        publisher = Publisher(self.target.cluster, holder.key)
        if not self.is_published(part):
            publisher.publish(
                staged(self.staging / str(self.entry) / part.name),
                headers_of(self.target.run, self.entry),
                topic_of=self.target.address.topic_of,
                progress=self.target.progress.name,
                key=holder.key,
                mark=Mark(self.entry).text(),
            )

    def see_published(self, part: Part) -> None:
        """Another copy of the task publishes the part; if it does not, Spark tries again."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not self.is_published(part):
            if time.monotonic() > deadline:
                law, way_out = "a part that another copy of a task publishes is published", "it is tried again"
                raise TimeoutError(f"{law}\n  found: {part.name} is not\n  way out: {way_out}")
            time.sleep(0.2)


def publishing(publication: Publication) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """What an executor does: a row for each part that cannot be published, however often it is tried."""

    def publish_all(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for part in (publication.parts[at] for batch in batches for at in batch.column(0).to_pylist()):
            try:
                publish(publication, part)
            except CheckpointError as refusal:
                blob: bytes = dumps(refusal)  # type: ignore[no-untyped-call]  # cloudpickle has no types
                yield pa.record_batch([pa.array([blob], type=pa.binary())], names=["refusal"])

    return publish_all


def publish(publication: Publication, part: Part) -> None:
    try:
        publication.publish(part)
    except OwnershipError:
        publication.see_published(part)


def publish_on_executors(spark: SparkSession, publication: Publication) -> None:
    """All parts are published when it returns."""
    tasks = len(publication.parts)
    try:
        refused = spark.range(0, tasks, 1, tasks).mapInArrow(publishing(publication), SCHEMA).toArrow()
    except Exception as error:
        reasons = [line.strip() for line in str(error).splitlines() if "Error" in line or line.startswith("  found:")]
        raise SinkError(
            "executors publish what they assembled",
            values=f"entry {publication.entry} of {publication.stream}: {reasons[-1] if reasons else str(error)[:300]}",
            way_out="start again: what is not published yet is published then",
        ) from error
    for blob in refused["refusal"].to_pylist():
        refusal = loads(blob)
        assert isinstance(refusal, Refusal)
        raise refusal
