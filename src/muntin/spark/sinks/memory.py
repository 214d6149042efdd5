"""Results kept in the process, as Arrow tables by query.

In: result tables. Out: `tables()` and `table(query)`, whole entries only. Convention: safe to read while a job writes.
Not supported: forgetting. The tables grow with the results; a job that runs for ever belongs in files or in a callback.
"""

from __future__ import annotations

from collections.abc import Sequence
from threading import Lock

import pyarrow as pa

from muntin.errors import SinkError
from muntin.query.model import Query
from muntin.spark.sinks.base import EntryId, Results, Sink
from muntin.windows.results import result_schema


class MemorySink(Sink):
    """Every result of the run so far."""

    promise = "Each entry once while the process lives; nothing is left after it."

    def __init__(self) -> None:
        self._run = ""
        self._schemas: dict[str, pa.Schema] = {}
        self._chunks: dict[str, list[pa.Table]] = {}
        self._last: dict[str, EntryId] = {}
        self._lock = Lock()

    def open(self, run: str, queries: Sequence[Query]) -> None:
        """A new run starts with empty tables; the same run, opened again, goes on with its own."""
        if run != self._run:
            self._chunks, self._last = {}, {}
        self._run = run
        self._schemas = {query.name: result_schema(query) for query in queries}

    def admit(self, query: Query) -> None:
        with self._lock:
            self._schemas[query.name] = result_schema(query)

    def holds(self, entry: EntryId, stream: str = "") -> bool:
        return entry <= self._last.get(stream, EntryId(-1))

    def write(self, entry: EntryId, results: Results, stream: str = "") -> None:
        taken = list(results)  # before any is shown: a reader never sees half an entry
        with self._lock:
            for query, table in taken:
                self._chunks.setdefault(query, []).append(table)
            self._last[stream] = entry

    def close(self) -> None:
        """Nothing to do: the tables stay readable."""

    def tables(self) -> dict[str, pa.Table]:
        """The results of every query the run was opened with, or that sent some."""
        with self._lock:
            names = [*self._schemas, *(query for query in self._chunks if query not in self._schemas)]
        return {query: self.table(query) for query in names}

    def table(self, query: str) -> pa.Table:
        """The results of one query, oldest first; an empty table if there are none yet."""
        if query not in self._chunks and query not in self._schemas:
            known = ", ".join(self._schemas) or "none"
            raise SinkError("results are kept by the name of their query", values=query, way_out=f"ask for one of: {known}")
        with self._lock:
            chunks = self._chunks.get(query, [])
            if len(chunks) > 1:  # joined once, not at every reading
                chunks[:] = [pa.concat_tables(chunks, promote_options="permissive")]  # a replaced query may select other things
            return chunks[0] if chunks else self._schemas[query].empty_table()
