"""Files written aside and then put in their places, so that whoever reads a place finds a whole file or none.

In: a folder of this machine's disk for the files being written, result tables by query. Out: files where they belong, durable.
Convention: what is written aside is scratch; it becomes visible when `Place.put` makes it so, and what a crash left of it is thrown away
by the next `Aside` on the folder.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa

from muntin.spark.place import Place
from muntin.spark.sinks.names import ASIDE
from muntin.spark.sinks.writers import WRITERS, Format, Writer


class Aside:
    """The files of one entry, or of one run, while they are being written."""

    def __init__(self, folder: Path, format: Format) -> None:
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        self.folder = folder
        self.format = format
        self._writers: dict[str, Writer] = {}

    @property
    def queries(self) -> list[str]:
        """The queries that have a file so far."""
        return list(self._writers)

    def begin(self, query: str, schema: pa.Schema) -> Writer:
        """The query's file; made, without rows, if it is not there yet."""
        if query not in self._writers:
            self._writers[query] = WRITERS[self.format](self.folder / f"{query}.{self.format.value}", schema)
        return self._writers[query]

    def write(self, query: str, table: pa.Table) -> None:
        self.begin(query, table.schema).write(table)

    def finish(self) -> dict[str, Path]:
        """The files of the queries, complete."""
        for writer in self._writers.values():
            writer.finish()
        return {query: writer.path for query, writer in self._writers.items()}

    def publish(self, places: Mapping[str, Place], directory: Place) -> None:
        """Put the files of the queries in their places in `directory`; durable when it returns."""
        files = self.finish()
        directory.put([(files[query], place) for query, place in places.items()])
        self.remove()

    def remove(self) -> None:
        shutil.rmtree(self.folder)


class Workshop:
    """Where a driver's files grow: beside their places if those are on this machine's disk, so that they can be renamed."""

    def __init__(self, directory: Place) -> None:
        self._directory = directory
        self._root: Path | None = None

    def aside(self, name: str, format: Format) -> Aside:
        if self._root is None:
            local = (self._directory / ASIDE).local
            self._root = local if local is not None else Path(tempfile.mkdtemp(prefix="muntin-results-"))
        folder = (Place.of(self._root) / name).local
        assert folder is not None
        return Aside(folder, format)

    def remove(self) -> None:
        if self._root is not None:
            shutil.rmtree(self._root, ignore_errors=True)
            self._root = None
