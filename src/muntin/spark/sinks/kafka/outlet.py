"""One stream's way to its topics: records of entries, each exactly once.

In: the records that the driver has of an entry, and the names of those that executors staged. Out: all of them in their topics.
Convention: 1. instances stage; 2. the driver decides: one transaction with its own records and a mark that lists the staged parts;
3. executors publish the parts, each in a transaction with a mark of its own; 4. what was staged is removed. An outlet that is opened
fences the one before it, and finishes the entry that was decided and not published to its end.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import pyarrow as pa
from pyspark.sql import SparkSession

from muntin.spark.place import Place
from muntin.spark.sinks.base import EntryId
from muntin.spark.sinks.kafka.progress import Found, Mark, Part
from muntin.spark.sinks.kafka.publishing import Publication, headers_of, publish_on_executors
from muntin.spark.sinks.kafka.target import Target
from muntin.spark.sinks.kafka.transactions import Publisher
from muntin.spark.sinks.spread import Written, sweep


class Outlet:
    """`staging` is the directory of the stream's staged parts; None where driver and executors share none, and nothing is staged."""

    def __init__(self, target: Target, stream: str, spark: SparkSession | None, staging: Place | None) -> None:
        self.target, self.stream, self.staging = target, stream, staging
        self._spark = spark
        self._holder = target.holder(stream)
        self._publisher = Publisher(target.cluster, self._holder.key)
        self.last = self._finished()

    def commit(self, entry: EntryId, records: Iterator[pa.RecordBatch], written: Sequence[Written]) -> None:
        mark = Mark(entry, tuple(Part(one.instance, one.name) for one in written))
        offset = self._publisher.publish(
            records,
            headers_of(self.target.run, entry),
            topic_of=self.target.address.topic_of,
            progress=self.target.progress.name,
            key=self._holder.key,
            mark=mark.text(),
        )
        self._publish(mark, offset)
        if self.staging and written:
            sweep(self.staging, upto=entry)
        self.last = entry

    def _finished(self) -> EntryId:
        """The entry decided last, after what is left of it was published. What was staged for one that was not decided is of no use."""
        marks = self.target.progress.marks()
        decided = marks.get(self._holder.key)
        if decided:
            self._publish(replace(decided.mark, parts=tuple(undone(decided.mark, self._published(marks)))), decided.offset)
        if self.staging:
            self.staging.remove_tree()
        return decided.mark.entry if decided else EntryId(-1)

    def _published(self, marks: Mapping[str, Found]) -> dict[int, EntryId]:
        """By instance, the entry it published last."""
        decided = marks[self._holder.key].mark
        keys = {part.instance: self.target.holder(self.stream, part.instance).key for part in decided.parts}
        return {instance: marks[key].mark.entry for instance, key in keys.items() if key in marks}

    def _publish(self, mark: Mark, offset: int) -> None:
        if mark.parts:
            assert self._spark is not None
            assert self.staging is not None
            publish_on_executors(self._spark, Publication(self.target, self.stream, mark.entry, mark.parts, self.staging, offset))


def undone(decided: Mark, published: Mapping[int, EntryId]) -> list[Part]:
    """The parts of a decision that are not published yet."""
    return [part for part in decided.parts if published.get(part.instance, EntryId(-1)) < decided.entry]
