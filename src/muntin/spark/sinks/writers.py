"""One file of results being written: JSON lines, CSV or Parquet, a table at a time.

In: a path that does not exist yet and the schema of the first table. Out: the file, once `finish` was called.
Convention: no file is held open between two tables, so any number of queries can be written side by side whatever the limit of
open files; nothing is kept in memory but what Parquet needs for its footer.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from enum import Enum
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from muntin.choice import named
from muntin.errors import SinkError
from muntin.spark.sinks.text import csv_header, csv_lines, json_lines


class Format(Enum):
    """The value is the name users write and the extension of the files."""

    JSONL = "jsonl"
    CSV = "csv"
    PARQUET = "parquet"

    @classmethod
    def named(cls, name: str) -> Format:
        return named(cls, name, "results are written in a format Muntin knows", error=SinkError)


class Writer(ABC):
    """A file that grows table by table."""

    def __init__(self, path: Path, schema: pa.Schema) -> None:
        self.path = path
        self.schema = schema

    @abstractmethod
    def write(self, table: pa.Table) -> None: ...

    @abstractmethod
    def finish(self) -> None:
        """Write what the format has after its last row."""


class JsonWriter(Writer):
    def __init__(self, path: Path, schema: pa.Schema) -> None:
        super().__init__(path, schema)
        path.touch()

    def write(self, table: pa.Table) -> None:
        with self.path.open("ab") as file:
            file.writelines(json_lines(table))

    def finish(self) -> None:
        pass


class CsvWriter(Writer):
    def __init__(self, path: Path, schema: pa.Schema) -> None:
        super().__init__(path, schema)
        path.write_bytes(csv_header(schema))

    def write(self, table: pa.Table) -> None:
        with self.path.open("ab") as file:
            file.writelines(csv_lines(table))

    def finish(self) -> None:
        pass


class ParquetWriter(Writer):
    """Each table becomes at least one row group.

    Whole numbers and times are written as differences: bounds of windows ascend and counts move in small steps, so a million rows of
    slide-by-tuple windows took a quarter of the time and a fifth of the space that dictionaries take.
    """

    def __init__(self, path: Path, schema: pa.Schema) -> None:
        super().__init__(path, schema)
        whole = {field.name: "DELTA_BINARY_PACKED" for field in schema if is_whole(field.type)}
        others = [field.name for field in schema if field.name not in whole]
        self._writer = pq.ParquetWriter(Appended(path), schema, compression="zstd", use_dictionary=others, column_encoding=whole)

    def write(self, table: pa.Table) -> None:
        self._writer.write_table(table)

    def finish(self) -> None:
        self._writer.close()


def is_whole(type: pa.DataType) -> bool:
    """Whether Parquet holds the type as an INT32 or INT64."""
    return bool(pa.types.is_integer(type) or pa.types.is_temporal(type))


class Appended:
    """A binary file for Arrow to write to that is open only while bytes are being appended."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._size = 0
        self.closed = False
        path.touch()

    def write(self, data: bytes) -> int:
        with self._path.open("ab") as file:
            file.write(data)
        self._size += len(data)
        return len(data)

    def tell(self) -> int:
        return self._size

    def flush(self) -> None:
        pass

    def close(self) -> None:
        self.closed = True


WRITERS: dict[Format, type[Writer]] = {Format.JSONL: JsonWriter, Format.CSV: CsvWriter, Format.PARQUET: ParquetWriter}
