"""Data files that no log names: of tasks that died or came late, of an attempt that does not count, of a commit that never came.

In: each entry once its commits are there, and which files count. Out: the others are gone. Convention: what instances left of an entry goes
with the next one of its stream, when late copies of tasks have ended. A run that is resumed begins with what the one before left: with its
first entry, not earlier, since a job that was overtaken may be about to name these files, and fails to once the entry has a commit.
A file goes only if it has a name of ours and the log does not have it, neither in the table nor in former versions.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from muntin.spark.place import Place
from muntin.spark.sinks.base import EntryId
from muntin.spark.sinks.datafiles import DataFile, folder_name
from muntin.spark.sinks.deltatable import ResultTable
from muntin.spark.sinks.names import OWN_NAMES
from muntin.spark.stores import side_by_side

_OURS = re.compile(r"(driver|\d{5,})-[0-9a-f]{32}\.parquet")


@dataclass(frozen=True)
class Taken:
    """An entry that was taken: the queries that instances wrote files of, and the files that count, as query and path."""

    entry: EntryId
    queries: frozenset[str]
    files: frozenset[tuple[str, str]]


class Leftovers:
    """`before` has, for a run that is resumed, the newest entries that were whole, by stream."""

    def __init__(self, directory: Place, table: Callable[[str], ResultTable], before: Mapping[str, EntryId] | None = None) -> None:
        self._directory, self._table, self._before = directory, table, before
        self._last: dict[str, Taken] = {}

    def sweep(self, entry: EntryId, stream: str, spread: Iterable[str], files: Iterable[DataFile]) -> None:
        taken = Taken(entry, frozenset(spread), frozenset((one.query, one.path) for one in files))
        if stream in self._last:
            self._remove(self._last[stream])
        elif self._before is not None:
            everything = frozenset(self._directory.folders()) - OWN_NAMES
            for one in {entry, self._before.get(stream, entry)}:
                self._remove(Taken(one, everything, taken.files))
        self._last[stream] = taken

    def close(self) -> None:
        for taken in self._last.values():
            self._remove(taken)
        self._last = {}

    def _remove(self, taken: Taken) -> None:
        side_by_side(lambda query: self._remove_of(query, taken), sorted(taken.queries))

    def _remove_of(self, query: str, taken: Taken) -> None:
        name = folder_name(taken.entry)
        folder = self._directory / query / name
        ours = {f"{name}/{one}": folder / one for one in folder.files() if _OURS.fullmatch(one)}
        unknown = [path for path in ours if (query, path) not in taken.files]
        named = self._table(query).named() if unknown else set()
        for path in unknown:
            if path not in named:
                ours[path].remove()
