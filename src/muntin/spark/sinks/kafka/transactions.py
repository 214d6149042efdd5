"""One transaction an entry: all of its records and the mark that they are there, or nothing.

In: batches of records. Out: the offset of the mark. Convention: whoever makes a `Publisher` under a transactional id fences all others
under it: what they have not committed is aborted, and their next step fails. The mark goes last and the commit follows at once, since an
open transaction holds back the readers of what it wrote to, and everybody reads the progress topic.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import Any

import pyarrow as pa

from muntin.spark.sinks.kafka.cluster import PATIENCE_SECONDS, TRANSACTION_SECONDS, Cluster, library

Headers = Sequence[tuple[str, bytes]]


class Publisher:
    def __init__(self, cluster: Cluster, transactional_id: str) -> None:
        self.cluster = cluster
        self._producer = cluster.producer(transactional_id)
        with cluster.complaints():
            self._producer.init_transactions(PATIENCE_SECONDS)

    def publish(
        self,
        batches: Iterable[pa.RecordBatch],
        headers: Headers,
        *,
        topic_of: Callable[[str], str],
        progress: str,
        key: str,
        mark: str,
    ) -> int:
        """Publish records, each to the topic of its query, and a mark in the progress topic; both are there when it returns."""
        with self.cluster.complaints():
            self._producer.begin_transaction()
            try:
                for batch in batches:
                    self._send(batch, headers, topic_of)
                offset = self._send_mark(progress, key, mark)
                self._commit()
            except BaseException:
                with suppress(library().KafkaException):  # a crash would leave the same to the broker, or to the next one of this id
                    self._producer.abort_transaction(PATIENCE_SECONDS)
                raise
        return offset[0]

    def _send(self, batch: pa.RecordBatch, headers: Headers, topic_of: Callable[[str], str]) -> None:
        queries, keys, values = (column.to_pylist() for column in batch.columns)
        places = {query: (topic_of(query), [("query", query.encode()), *headers]) for query in set(queries)}
        for query, key, value in zip(queries, keys, values, strict=True):
            topic, told = places[query]
            self._produce(topic, value, key=key, headers=told)
        self._producer.poll(0)

    def _send_mark(self, progress: str, key: str, mark: str) -> list[int]:
        """Its offset, once it is committed."""
        offset: list[int] = []

        def delivered(error: Any, message: Any) -> None:
            if error is None:
                offset.append(message.offset())

        self._produce(progress, mark, key=key, partition=0, on_delivery=delivered)
        return offset

    def _produce(self, topic: str, value: str, **options: Any) -> None:
        while True:
            try:
                self._producer.produce(topic, value, **options)
            except BufferError:  # the broker is slower than we are
                self._producer.poll(1)
            else:
                return

    def _commit(self) -> None:
        """A commit that failed for a passing reason is asked for again: whether it took effect is not known before."""
        for attempt in (1, 2, 3):
            try:
                self._producer.commit_transaction(TRANSACTION_SECONDS)
            except library().KafkaException as error:
                if attempt == 3 or not error.args[0].retriable():
                    raise
            else:
                return
