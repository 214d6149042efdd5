"""Results as Delta tables in one directory, exactly once: a crash anywhere and a replay leave the rows an undisturbed run leaves.

In: result tables. Out: `DIR/<query>/`, one table per query. By `Layout`: `PARTS`, a commit per entry that has rows; `WHOLE`, one commit
at the end of a run that reads all there is, in the place of what the table had.
Convention: data files are nothing to a reader before a commit names them. A commit carries the entry as a transaction id, so a replay
leaves out the tables that have it; then a marker says that the entry is whole. What no log names is removed later (`tableleftovers`).
`_muntin.json` says whose directory it is; in the layout `WHOLE` it names no run while tables are being replaced.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from operator import attrgetter
from pathlib import Path

import pyarrow as pa

from muntin.query.model import Query
from muntin.spark.place import Place
from muntin.spark.sinks.aside import Aside, Workshop
from muntin.spark.sinks.base import EntryId, Results
from muntin.spark.sinks.datafiles import DataFile, DataWriter, WrittenData, place_of, put
from muntin.spark.sinks.deltatable import CommitId, ResultTable, check_installed
from muntin.spark.sinks.directory import OutputDirectory
from muntin.spark.sinks.files import Layout
from muntin.spark.sinks.names import HIDDEN, check_names
from muntin.spark.sinks.spread import SpreadSink, Written, sweep
from muntin.spark.sinks.tablecolumns import check_columns, check_fits, together
from muntin.spark.sinks.tableleftovers import Leftovers
from muntin.spark.sinks.tablestore import table_uri
from muntin.spark.sinks.writers import Format
from muntin.spark.stores import side_by_side
from muntin.windows.results import result_schema

#: An entry as one number that ascends: its batch times this, and its timer.
MOST_TIMERS = 1 << 31


class TableSink(SpreadSink):
    """Results as Delta tables. A second job that writes to the same directory is refused while the first one runs.

    `storage_options` go to delta-rs, which opens stores by itself; what a URI of S3 says is known to it.
    """

    promise = "Exactly once: an entry's rows are one commit to each query's table, and a replay leaves out the tables that have it."

    def __init__(
        self, directory: Place | Path | str, layout: Layout = Layout.PARTS, *, storage_options: Mapping[str, str] | None = None
    ) -> None:
        check_installed()
        self.directory = Place.of(directory)
        table_uri(self.directory)  # a place that no table can be at is refused here
        self.layout = layout
        replaces = layout.value if layout is Layout.WHOLE else ""
        self._owned = OutputDirectory(self.directory, layout=layout.value, files="delta", replaces=replaces)
        self._workshop = Workshop(self.directory)
        self._options = dict(storage_options or {})
        self._run = ""
        self._schemas: dict[str, pa.Schema] = {}
        self._tables: dict[str, ResultTable] = {}
        self._whole: list[DataFile] = []  #: for the commit at the end
        self._leftovers = Leftovers(self.directory, self._table)

    def open(self, run: str, queries: Sequence[Query]) -> None:
        self._run, self._schemas, self._tables, self._whole = run, {}, {}, []
        names = [query.name for query in queries]
        check_names(names)
        resumed = self._owned.take(run, names)
        try:
            side_by_side(self.admit, queries)
            if resumed:
                (self.directory / HIDDEN).remove_tree()  # nobody will ask for what tasks of the run before wrote
            else:
                self._owned.sign(whole=self.layout is Layout.PARTS)
            self._leftovers = Leftovers(self.directory, self._table, self._owned.newest() if resumed else None)
        except BaseException:
            self._owned.let_go()
            raise

    def admit(self, query: Query) -> None:
        """New columns come to a table with the first rows that have them; those it has must be there, and of their types.

        So must those of a query that had the name before in this run: a batch in hand may be about to make its table.
        """
        check_names([query.name])
        schema = result_schema(query)
        check_columns(query.name, schema)
        known = self._table(query.name).columns()
        if self.layout is Layout.PARTS:
            known = together(query.name, known, self._schemas.get(query.name, known))
            check_fits(query.name, known, schema)
            schema = together(query.name, known, schema)
        self._schemas[query.name] = schema

    def holds(self, entry: EntryId, stream: str = "") -> bool:
        """A `WHOLE` run is not replayed and holds nothing."""
        return self.layout is Layout.PARTS and self._owned.holds(entry, stream)

    def writer(self, stream: str) -> DataWriter:
        return DataWriter(self.directory.everywhere, self._hidden(stream).everywhere)

    def write(self, entry: EntryId, results: Results, stream: str = "") -> None:
        self.commit(entry, results, (), stream)

    def commit(self, entry: EntryId, results: Results, written: Sequence[Written], stream: str = "") -> None:
        aside = self._workshop.aside(stream or "results", Format.PARQUET)
        for query, table in results:
            if table.num_rows:
                check_names([query])
                aside.write(query, table)
        spread = [one.data for one in written if isinstance(one, WrittenData)]
        self._owned.check()
        if self.layout is Layout.WHOLE:
            self._whole += [*put(aside, aside.queries, self.directory, entry, by="driver"), *spread]
        else:
            self._commit(entry, aside, spread, stream)
        if written:
            sweep(self._hidden(stream), upto=entry)

    def _commit(self, entry: EntryId, aside: Aside, spread: Sequence[DataFile], stream: str) -> None:
        """To the tables that have no commit of this entry yet: all of them, unless it is taken again."""
        commit = CommitId(f"muntin {self._run} {stream}", entry.batch * MOST_TIMERS + entry.timer)
        queries = {*aside.queries, *(one.query for one in spread)}
        has: dict[str, bool] = {}
        side_by_side(lambda query: has.update({query: self._table(query).has(commit)}), sorted(queries))
        files = put(aside, [query for query in aside.queries if not has[query]], self.directory, entry, by="driver")
        files += [one for one in spread if not has[one.query]]
        side_by_side(lambda some: self._table(some[0].query).append(some, commit), by_query(files))
        self._owned.mark(entry, stream)
        self._leftovers.sweep(entry, stream, {one.query for one in spread}, files)

    def close(self) -> None:
        if self.layout is Layout.WHOLE:
            self._replace_all()
        self._leftovers.close()
        self.abandon()

    def _replace_all(self) -> None:
        files, self._whole = self._whole, []
        self._owned.check()
        self._owned.sign(whole=False)
        of_query = {some[0].query: some for some in by_query(files)}
        tables = [(query, of_query.get(query, [])) for query in self._schemas]
        side_by_side(lambda one: self._table(one[0]).replace(one[1], self._schemas[one[0]]), tables)
        self._owned.sign()
        self._leftovers.sweep(EntryId(0), "", self._schemas, files)

    def abandon(self) -> None:
        for one in self._whole:
            place_of(one, self.directory).remove()
        self._whole = []
        self._workshop.remove()
        self._owned.let_go()

    def _table(self, query: str) -> ResultTable:
        return self._tables.setdefault(query, ResultTable(self.directory / query, self._options))

    def _hidden(self, stream: str) -> Place:
        return self.directory / HIDDEN / (stream or "results")


def by_query(files: Iterable[DataFile]) -> list[list[DataFile]]:
    query = attrgetter("query")
    return [list(some) for _, some in groupby(sorted(files, key=query), key=query)]
