"""Files of a table's rows, written by the driver and by executors, that nobody reads before the table's log names them.

In: result tables by query. Out: `DIR/<query>/<entry>/<writer>-<token>.parquet`, and of each file what the log has to say of it.
Convention: no two tasks use the same token. A folder for each entry: what tasks that died left of one is found by listing a few files,
however many the table has. Executors need pyarrow for this, and nothing of Delta's.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from muntin.expression.casts import FIRST_INSTANT, LAST_INSTANT
from muntin.spark.place import Place
from muntin.spark.sinks.aside import Aside
from muntin.spark.sinks.base import EntryId
from muntin.spark.sinks.spread import Written, grown
from muntin.spark.sinks.writers import Format
from muntin.timeline import iso_text

#: The columns whose least and greatest values the log has, so that readers skip files: the first two.
BOUNDS = 2


@dataclass(frozen=True)
class DataFile:
    """A file in the folder of a query's table: its `path` there, and what readers are told of it."""

    query: str
    path: str
    size: int
    schema: pa.Schema
    stats: str


@dataclass(frozen=True)
class WrittenData(Written):
    """A data file that an instance wrote."""

    data: DataFile


@dataclass(frozen=True)
class DataWriter:
    """Data files in the tables' folders of `directory`; on the disk they grow in `hidden/<entry>/`."""

    directory: Place
    hidden: Place

    def write(self, entry: EntryId, instance: int, results: Iterator[tuple[str, pa.Table]], scratch: Path) -> list[WrittenData]:
        aside = grown(results, self.hidden / str(entry), uuid.uuid4().hex, scratch, Format.PARQUET)
        found = put(aside, aside.queries, self.directory, entry, by=f"{instance:05d}")
        return [WrittenData(one.query, instance, one.path, one) for one in found]


def put(aside: Aside, queries: Iterable[str], directory: Place, entry: EntryId, *, by: str) -> list[DataFile]:
    """Put the files of some queries into the folders of their tables; those of the others are thrown away."""
    files, token = aside.finish(), uuid.uuid4().hex
    found = [data_file(query, f"{folder_name(entry)}/{by}-{token}.parquet", files[query]) for query in queries]
    aside.publish({one.query: place_of(one, directory) for one in found}, directory)
    return found


def place_of(file: DataFile, directory: Place) -> Place:
    folder, _, name = file.path.partition("/")
    return directory / file.query / folder / name


def folder_name(entry: EntryId) -> str:
    return str(entry).replace(".", "_")


def data_file(query: str, path: str, source: Path) -> DataFile:
    footer = pq.read_metadata(source)
    return DataFile(query, path, source.stat().st_size, footer.schema.to_arrow_schema(), json.dumps(stats_of(footer)))


def stats_of(footer: pq.FileMetaData) -> dict[str, Any]:
    """The number of rows, and the least and greatest bounds of windows, as Delta's log has them.

    A bound that has no plain spelling is left out, and readers do not skip the file by it: decimals, years beyond 9999.
    """
    stats: dict[str, Any] = {"numRecords": footer.num_rows, "minValues": {}, "maxValues": {}, "nullCount": {}}
    for at, field in enumerate(list(footer.schema.to_arrow_schema())[:BOUNDS]):
        groups = [footer.row_group(number).column(at).statistics for number in range(footer.num_row_groups)]
        told = [one for one in groups if one.has_min_max]
        stats["nullCount"][field.name] = sum(one.null_count for one in groups)
        ends = {"minValues": [one.min_raw for one in told], "maxValues": [one.max_raw for one in told]}
        for end, choose in (("minValues", min), ("maxValues", max)):
            value = spelled(choose(ends[end]), field.type) if told else None
            if value is not None:
                stats[end][field.name] = value
    return stats


def spelled(raw: Any, type: pa.DataType) -> Any:
    if pa.types.is_timestamp(type):
        return iso_text(raw) if FIRST_INSTANT <= raw <= LAST_INSTANT else None
    return raw if pa.types.is_integer(type) or pa.types.is_floating(type) else None
