"""Results as files in one directory, exactly once: a crash anywhere and a replay leave the files an undisturbed run leaves.

In: result tables. Out, by `Layout`: `DIR/<query>.<ext>`, one file per query of a run that reads all there is; or
`DIR/<query>/<entry>.<ext>`, one part per entry that has rows. A timer's part is named `<batch>_<timer>`: so the parts sort by name.
Convention: files are written aside and renamed; then a marker `_entries/<stream>/<entry>` says that the entry is whole. An entry
without its marker is written again under the same names. `_muntin.json` says whose directory it is, and in the layout `WHOLE`
that all of its files are of one run.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
from collections.abc import Sequence
from enum import Enum
from pathlib import Path

import pyarrow as pa

from muntin.errors import SinkError
from muntin.query.model import Query
from muntin.spark.sinks.aside import Aside, flush, replace_text
from muntin.spark.sinks.base import EntryId, Results, Sink
from muntin.spark.sinks.writers import Format
from muntin.windows.results import result_schema

FORMAT_VERSION = 1

#: A replay asks only for entries after the newest marker or for that one. The other few are for people who look.
KEPT_MARKERS = 4

_OWNER, _ENTRIES, _ASIDE = "_muntin.json", "_entries", "_aside"


class Layout(Enum):
    """How the results of a query are spread over files."""

    WHOLE = "whole"  # one file per query, published when the run has ended
    PARTS = "parts"  # one file per query and entry, published entry by entry


class FileSink(Sink):
    """Results as files. A second job that writes to the same directory is refused while the first one runs."""

    promise = "Exactly once: each entry's files appear whole, under names of their own, and a replay writes the same files again."

    def __init__(self, directory: Path | str, format: Format | str, layout: Layout) -> None:
        self.directory = Path(directory)
        self.format = Format.named(format) if isinstance(format, str) else format
        self.layout = layout
        self._run = ""
        self._schemas: dict[str, pa.Schema] = {}
        self._last: dict[str, EntryId] = {}
        self._whole: Aside | None = None
        self._lock: int | None = None

    def open(self, run: str, queries: Sequence[Query]) -> None:
        self._run = run
        self._schemas = {query.name: result_schema(query) for query in queries}
        check_names(self._schemas)
        self._take_directory()
        try:
            self._check_owner()
            if self.layout is Layout.WHOLE:
                self._whole = Aside(self.directory / _ASIDE, self.format)
            else:
                self._own()
        except BaseException:
            self._unlock()
            raise

    def admit(self, query: Query) -> None:
        check_names([query.name])
        self._schemas[query.name] = result_schema(query)

    def holds(self, entry: EntryId, stream: str = "") -> bool:
        """Entries come in order: an entry up to the newest marker was written. A `WHOLE` run is not replayed and holds nothing."""
        if self.layout is Layout.WHOLE:
            return False
        if stream not in self._last:
            self._last[stream] = max(self._marked(stream), default=EntryId(-1))
        return entry <= self._last[stream]

    def write(self, entry: EntryId, results: Results, stream: str = "") -> None:
        aside = self._whole or Aside(self.directory / _ASIDE / (stream or "results"), self.format)
        for query, table in results:
            check_names([query])
            if table.num_rows:
                aside.write(query, table)
        if self.layout is Layout.PARTS:
            name = f"{str(entry).replace('.', '_')}.{self.format.value}"
            aside.publish({query: self.directory / query / name for query in aside.queries})
            self._mark(entry, stream)

    def close(self) -> None:
        if self._whole is not None:
            for query, schema in self._schemas.items():
                self._whole.begin(query, schema)
            (self.directory / _OWNER).unlink(missing_ok=True)
            self._whole.publish({query: self.directory / f"{query}.{self.format.value}" for query in self._whole.queries})
            self._own()
        self.abandon()

    def abandon(self) -> None:
        self._whole = None
        if self._lock is not None:
            shutil.rmtree(self.directory / _ASIDE, ignore_errors=True)
        self._unlock()

    def _mark(self, entry: EntryId, stream: str) -> None:
        folder = self.directory / _ENTRIES / stream
        folder.mkdir(parents=True, exist_ok=True)
        (folder / str(entry)).touch()
        flush([folder / str(entry), folder, folder.parent])
        self._last[stream] = entry
        for old in sorted(self._marked(stream))[:-KEPT_MARKERS]:
            (folder / str(old)).unlink()

    def _marked(self, stream: str) -> list[EntryId]:
        folder = self.directory / _ENTRIES / stream
        return [EntryId.parse(path.name) for path in folder.iterdir() if path.is_file()] if folder.exists() else []

    def _identity(self) -> dict[str, int | str]:
        return {"format": FORMAT_VERSION, "run": self._run, "layout": self.layout.value, "files": self.format.value}

    def _own(self) -> None:
        replace_text(self.directory / _OWNER, json.dumps(self._identity()) + "\n")

    def _check_owner(self) -> None:
        """A run in parts goes on with its own directory only; a whole run replaces what a whole run left."""
        owner = self.directory / _OWNER
        if not owner.exists():
            self._check_nothing_in_the_way()
            return
        found = self._owner_in(owner)
        if self.layout is Layout.WHOLE and found.get("layout") == Layout.WHOLE.value:
            return
        differences = [f"{key} is {found.get(key)}, not {value}" for key, value in self._identity().items() if found.get(key) != value]
        if differences:
            raise self._refusal("an output directory belongs to one run", "; ".join(differences))

    def _owner_in(self, path: Path) -> dict[str, object]:
        law = f"{_OWNER} says whose an output directory is"
        try:
            found = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise self._refusal(law, f"it cannot be read ({error})") from None
        if not isinstance(found, dict):
            raise self._refusal(law, "it holds something else")
        return found

    def _check_nothing_in_the_way(self) -> None:
        for query in self._schemas if self.layout is Layout.PARTS else ():
            folder = self.directory / query
            if folder.exists() and not (folder.is_dir() and not any(folder.iterdir())):
                raise self._refusal("the parts of a query lie in a directory of their own", f"{folder.name} is there already")

    def _take_directory(self) -> None:
        try:
            self.directory.mkdir(parents=True, exist_ok=True)
            self._lock = os.open(self.directory, os.O_RDONLY)
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            self._unlock()
            if isinstance(error, BlockingIOError):
                raise self._refusal("one job writes to a directory at a time", "another one is writing to it") from None
            raise self._refusal("an output directory can be made and locked", str(error)) from None

    def _unlock(self) -> None:
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def _refusal(self, law: str, values: str) -> SinkError:
        return SinkError(law, values=f"{self.directory}: {values}", way_out="choose an empty output directory, or remove this one")


def check_names(queries: Sequence[str] | dict[str, pa.Schema]) -> None:
    """Queries have checked names. Still: no name may lead out of the directory, hide a file of ours, or be another's on some disks."""
    by_case: dict[str, str] = {}
    for query in queries:
        if not query or query.startswith(".") or set(query) & set("/\\:\0") or query in (_OWNER, _ENTRIES, _ASIDE):
            raise SinkError("a query's name can name a file", values=repr(query), way_out="use letters, digits and underscores")
        other = by_case.setdefault(query.casefold(), query)
        if other != query:
            raise SinkError("names of queries differ in more than case", values=f"{other}, {query}", way_out="rename one of them")
