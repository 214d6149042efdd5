"""Files written aside and then put in their places, so that whoever reads a place finds a whole file or none.

In: a folder for the files being written, result tables by query. Out: files renamed to where they belong, flushed to disk.
Convention: the order is write, flush the files, rename them, flush the directories; after a crash at any point every place holds
its former file or the new one, and what is left aside is thrown away by the next `Aside` on the folder.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa

from muntin.spark.sinks.writers import WRITERS, Format, Writer

#: Files are flushed side by side: a disk takes many flushes in the time of one.
FLUSHES_AT_A_TIME = 8


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

    def publish(self, places: Mapping[str, Path]) -> None:
        """Rename the files of the queries to their places; durable when it returns."""
        for writer in self._writers.values():
            writer.finish()
        flush(writer.path for writer in self._writers.values())
        for query, place in places.items():
            place.parent.mkdir(exist_ok=True)
            self._writers[query].path.replace(place)
        folders = {place.parent for place in places.values()}
        flush(folders | {folder.parent for folder in folders})
        self.remove()

    def remove(self) -> None:
        shutil.rmtree(self.folder)


def replace_text(path: Path, text: str) -> None:
    """Write a small file so that it is there whole or as it was."""
    aside = path.with_name(f"{path.name}.aside")
    aside.write_text(text)
    flush([aside])
    aside.replace(path)
    flush([path.parent])


def flush(paths: Iterable[Path]) -> None:
    """Returns when the files and directories are on disk."""
    with ThreadPoolExecutor(FLUSHES_AT_A_TIME) as pool:
        list(pool.map(_flush_one, paths))


def _flush_one(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
