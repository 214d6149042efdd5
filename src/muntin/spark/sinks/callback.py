"""Results handed to a function of the user's.

In: result tables. Out: `f(entry, query, table)` is called for each chunk, in the thread of the job.
Convention: an exception of the function fails the entry; the run stops, and the entry is delivered again, whole, when it is resumed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pyarrow as pa

from muntin.query.model import Query
from muntin.spark.sinks.base import EntryId, Results, Sink

Callback = Callable[[EntryId, str, pa.Table], object]


class CallbackSink(Sink):
    """Calls a function. Remember the entry with what you store, and a repeated one can be told from a new one."""

    promise = "At least once: an entry that was interrupted is delivered again from its first chunk, with the same content."

    def __init__(self, function: Callback) -> None:
        self._function = function
        self._run = ""
        self._last: dict[str, EntryId] = {}

    def open(self, run: str, queries: Sequence[Query]) -> None:
        """A new run is delivered from its first entry on, whatever was delivered of another."""
        if run != self._run:
            self._last = {}
        self._run = run

    def holds(self, entry: EntryId, stream: str = "") -> bool:
        """Only this process knows what was delivered: after a restart, the entry that was under way comes again."""
        return entry <= self._last.get(stream, EntryId(-1))

    def write(self, entry: EntryId, results: Results, stream: str = "") -> None:
        for query, table in results:
            self._function(entry, query, table)
        self._last[stream] = entry

    def close(self) -> None:
        """Nothing to do."""
