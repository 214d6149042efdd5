"""Records that instances stage on executors, until the driver has decided on the entry.

In: on an executor, the results of one instance; later, the name of a staged file. Out: one file an instance and entry, its records in
their order. Convention: nothing is published from a task that takes an entry: tasks are repeated, copied, and told to take an entry
again. Files are Parquet, since they compress well and are read a piece at a time.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from muntin.spark.durable import damaged
from muntin.spark.place import Place
from muntin.spark.sinks.base import EntryId
from muntin.spark.sinks.kafka.cluster import library
from muntin.spark.sinks.kafka.records import PIECE, all_records, in_pieces
from muntin.spark.sinks.spread import FileWriter, Written
from muntin.spark.sinks.writers import Format

#: All queries of an instance are in one file, so that a decision names a file an instance and no more.
RECORDS = "records"


@dataclass(frozen=True)
class StagingWriter:
    """`groups` are the group columns that each query selects."""

    staging: Place
    groups: Mapping[str, Sequence[str]]

    def write(self, entry: EntryId, instance: int, results: Iterator[tuple[str, pa.Table]], scratch: Path) -> list[Written]:
        library()  # an executor that could not publish refuses before anything is decided
        pieces = ((RECORDS, piece) for piece in in_pieces(all_records(results, self.groups)))
        return FileWriter(self.staging, Format.PARQUET).write(entry, instance, pieces, scratch)


def staged(place: Place) -> Iterator[pa.RecordBatch]:
    """The records of a staged file."""
    try:
        content = place.read()
    except FileNotFoundError:
        raise damaged(place, "the file is missing, and its records are not published yet") from None
    try:
        yield from pq.ParquetFile(pa.BufferReader(pa.py_buffer(content))).iter_batches(batch_size=PIECE)
    except pa.ArrowException as error:
        raise damaged(place, f"it cannot be read ({error})") from None
