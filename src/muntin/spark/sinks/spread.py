"""Results that executors write themselves, and the driver makes visible.

In: on an executor, the results of one instance; in the driver, what all instances wrote. Out: nothing to see before the driver's commit.
Convention: what an executor writes has a name that no other copy of its task uses, in a directory of the entry's. The driver is told the
names of those that count; the rest is swept away with the directory. So failed tasks, second copies of a task and tasks that come late
change nothing.
"""

from __future__ import annotations

import uuid
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import pyarrow as pa

from muntin.spark.place import Place
from muntin.spark.sinks.aside import Aside
from muntin.spark.sinks.base import EntryId, Results, Sink
from muntin.spark.sinks.writers import Format


@dataclass(frozen=True)
class Written:
    """What an instance wrote of a query's results, under a name that only the driver is told."""

    query: str
    instance: int
    name: str


class SpreadWriter(Protocol):
    """A sink's hand on an executor; it is pickled to get there."""

    def write(self, entry: EntryId, instance: int, results: Iterator[tuple[str, pa.Table]], scratch: Path) -> Sequence[Written]:
        """Write an instance's results of an entry; `scratch` is a directory of the machine's disk that no other task uses now."""


class SpreadSink(Sink):
    """A sink that executors can write to."""

    @abstractmethod
    def writer(self, stream: str) -> SpreadWriter | None:
        """The hand to send to the executors; None if results have to come through the driver."""

    @abstractmethod
    def commit(self, entry: EntryId, results: Results, written: Sequence[Written], stream: str = "") -> None:
        """As `write`, together with what the executors wrote of the same entry."""


@dataclass(frozen=True)
class FileWriter:
    """Files of results, written whole into a directory where nobody looks for them: `hidden/<entry>/`."""

    hidden: Place
    format: Format

    def write(self, entry: EntryId, instance: int, results: Iterator[tuple[str, pa.Table]], scratch: Path) -> list[Written]:
        token, folder = uuid.uuid4().hex, self.hidden / str(entry)
        aside = grown(results, folder, token, scratch, self.format)
        written = [Written(query, instance, f"{token}-{query}") for query in aside.queries]
        aside.publish({one.query: folder / one.name for one in written}, folder)
        return written


def grown(results: Iterator[tuple[str, pa.Table]], hidden: Place, token: str, scratch: Path, format: Format) -> Aside:
    """An instance's files, not yet in their places: on the disk in `hidden`, to be renamed; else in the scratch, where the next task
    clears what one that died left.
    """
    aside = Aside(hidden.local / f".{token}" if hidden.local is not None else scratch / "aside", format)
    for query, table in results:
        aside.write(query, table)
    return aside


def sweep(hidden: Place, *, upto: EntryId) -> None:
    """Remove what tasks left of entries that are whole. A copy of a task that still writes there fails, and nobody waits for it; what
    it leaves all the same goes with the next entry.
    """
    for name in hidden.folders():
        if EntryId.parse(name) <= upto:
            (hidden / name).remove_tree()
