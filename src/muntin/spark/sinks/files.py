"""Results as files in one directory, exactly once: a crash anywhere and a replay leave the files an undisturbed run leaves.

In: result tables. Out, by `Layout`: `DIR/<query>.<ext>`, one file per query of a run that reads all there is; or
`DIR/<query>/<entry>.<ext>`, one part per entry that has rows, or `<entry>-<instance>.<ext>`, one per instance that has some.
A timer's entry is named `<batch>_<timer>`: so the parts sort by name.
Convention: files are written aside and appear whole; then a marker `_entries/<stream>/<entry>` says that the entry is whole. An entry
without its marker is written again: the same rows of the same queries, by as many instances as there are then. Aside is `_aside/` on the
local disk, and a temporary directory of this machine for a directory on a shared store; `_hidden/<stream>/<entry>/` has what executors
write, until the driver renames it. `_muntin.json` says whose directory it is, and in the layout `WHOLE` that all of its files are of one
run.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import Enum
from pathlib import Path

import pyarrow as pa

from muntin.query.model import Query
from muntin.spark.place import Place
from muntin.spark.sinks.aside import Aside, Workshop
from muntin.spark.sinks.base import EntryId, Results
from muntin.spark.sinks.directory import OutputDirectory
from muntin.spark.sinks.names import HIDDEN, check_names
from muntin.spark.sinks.spread import FileWriter, SpreadSink, Written, sweep
from muntin.spark.sinks.writers import Format
from muntin.windows.results import result_schema


class Layout(Enum):
    """How the results of a query are spread over files."""

    WHOLE = "whole"  # one file per query, published when the run has ended
    PARTS = "parts"  # one file per query and entry, published entry by entry


class FileSink(SpreadSink):
    """Results as files. A second job that writes to the same directory is refused while the first one runs."""

    promise = "Exactly once: each entry's files appear whole, under names of their own, and a replay writes the same files again."

    def __init__(self, directory: Place | Path | str, format: Format | str, layout: Layout) -> None:
        self.directory = Place.of(directory)
        self.format = Format.named(format) if isinstance(format, str) else format
        self.layout = layout
        replaces = layout.value if layout is Layout.WHOLE else ""
        self._owned = OutputDirectory(self.directory, layout=layout.value, files=self.format.value, replaces=replaces)
        self._schemas: dict[str, pa.Schema] = {}
        self._resumed = False
        self._begun: set[str] = set()  #: streams that had an entry in this process
        self._whole: Aside | None = None
        self._workshop = Workshop(self.directory)

    def open(self, run: str, queries: Sequence[Query]) -> None:
        self._schemas = {query.name: result_schema(query) for query in queries}
        check_names(self._schemas)
        resumed = self._owned.take(run, self._schemas if self.layout is Layout.PARTS else ())
        try:
            if self.layout is Layout.WHOLE:
                self._whole = self._workshop.aside("results", self.format)
            elif resumed:
                self._resumed, self._begun = True, set()
                (self.directory / HIDDEN).remove_tree()  # nobody will ask for what tasks of the run before wrote
            else:
                self._owned.sign()
        except BaseException:
            self._owned.let_go()
            raise

    def admit(self, query: Query) -> None:
        check_names([query.name])
        self._schemas[query.name] = result_schema(query)

    def holds(self, entry: EntryId, stream: str = "") -> bool:
        """A `WHOLE` run is not replayed and holds nothing."""
        return self.layout is Layout.PARTS and self._owned.holds(entry, stream)

    def writer(self, stream: str) -> FileWriter | None:
        """Parts are written by executors; a file that holds a whole run is put in order by the driver."""
        return FileWriter(self._hidden(stream).everywhere, self.format) if self.layout is Layout.PARTS else None

    def write(self, entry: EntryId, results: Results, stream: str = "") -> None:
        self.commit(entry, results, (), stream)

    def commit(self, entry: EntryId, results: Results, written: Sequence[Written], stream: str = "") -> None:
        aside = self._whole or self._workshop.aside(stream or "results", self.format)
        for query, table in results:
            check_names([query])
            if table.num_rows:
                aside.write(query, table)
        if self.layout is Layout.PARTS:
            queries = {*aside.queries, *(one.query for one in written)}
            for query in queries:
                check_names([query])
            self._owned.check()
            self._remove_leftovers(entry, queries, stream)
            aside.publish({query: self._part(query, entry) for query in aside.queries}, self.directory)
            hidden = self._hidden(stream)
            self.directory.move([(hidden / str(entry) / one.name, self._part(one.query, entry, one.instance)) for one in written])
            self._owned.mark(entry, stream)
            if written:
                sweep(hidden, upto=entry)

    def close(self) -> None:
        if self._whole is not None:
            for query, schema in self._schemas.items():
                self._whole.begin(query, schema)
            self._owned.check()
            self._owned.unsign()
            places = {query: self.directory / f"{query}.{self.format.value}" for query in self._whole.queries}
            self._whole.publish(places, self.directory)
            self._owned.sign()
        self.abandon()

    def abandon(self) -> None:
        self._whole = None
        self._workshop.remove()
        self._owned.let_go()

    def _part(self, query: str, entry: EntryId, instance: int | None = None) -> Place:
        by = "" if instance is None else f"-{instance:05d}"
        return self.directory / query / f"{str(entry).replace('.', '_')}{by}.{self.format.value}"

    def _hidden(self, stream: str) -> Place:
        return self.directory / HIDDEN / (stream or "results")

    def _remove_leftovers(self, entry: EntryId, queries: Iterable[str], stream: str) -> None:
        """What a run that was interrupted left of the entry it was at: this one may have other instances, and other names.

        A replay has the same rows, and so the same queries, dropped ones too: what was left is in their folders. In the others an entry
        of this number is another stream's.
        """
        if self._resumed and stream not in self._begun:
            named = str(entry).replace(".", "_")
            for folder in (self.directory / query for query in queries):
                for name in folder.files():
                    if name.partition(".")[0].partition("-")[0] == named:
                        (folder / name).remove()
        self._begun.add(stream)
