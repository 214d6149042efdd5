"""Files written aside and then put in their places, so that whoever reads a place finds a whole file or none.

In: a folder of this machine's disk for the files being written, result tables by query. Out: files where they belong, durable.
Convention: what is written aside is scratch; it becomes visible when `Place.put` makes it so, and what a crash left of it is thrown away
by the next `Aside` on the folder.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa

from muntin.spark.place import Place
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

    def publish(self, places: Mapping[str, Place], directory: Place) -> None:
        """Put the files of the queries in their places in `directory`; durable when it returns."""
        for writer in self._writers.values():
            writer.finish()
        directory.put([(self._writers[query].path, place) for query, place in places.items()])
        self.remove()

    def remove(self) -> None:
        shutil.rmtree(self.folder)
