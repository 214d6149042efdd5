"""Results as records of a topic: a key and a value, both JSON, beside the name of the query.

In: a result table and the group columns among its columns. Out: Arrow batches of records. Shape: query, key (NULL without group
columns), value. Convention: a value is a line of a .jsonl file without the line feed; a key has the group columns alone, so that the
results of a group have one key, and stay in their order in one partition.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import pyarrow as pa

from muntin.spark.sinks.text import json_objects

RECORDS = pa.schema([("query", pa.string()), ("key", pa.string()), ("value", pa.string())])

#: How many records are worth a piece of a file. One query often has a few in an entry, and a thousand queries have many.
PIECE = 1 << 15


def records_of(query: str, table: pa.Table, groups: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """The records of one query, a batch at a time."""
    keys = json_objects(table.select(list(groups))) if groups else None
    for values in json_objects(table):
        key = next(keys) if keys else pa.nulls(len(values), pa.string())
        yield pa.RecordBatch.from_arrays([pa.repeat(query, len(values)), key, values], schema=RECORDS)


def all_records(results: Iterator[tuple[str, pa.Table]], groups: Mapping[str, Sequence[str]]) -> Iterator[pa.RecordBatch]:
    for query, table in results:
        yield from records_of(query, table, groups[query])


def in_pieces(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.Table]:
    """Tables of at least a piece each, but for the last one."""
    waiting: list[pa.RecordBatch] = []
    for batch in batches:
        waiting.append(batch)
        if sum(map(len, waiting)) >= PIECE:
            yield pa.Table.from_batches(waiting)
            waiting = []
    if waiting:
        yield pa.Table.from_batches(waiting)
