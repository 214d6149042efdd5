"""The newest window of each query, on the terminal.

In: result tables. Out: one small table per query, redrawn in place on a terminal; printed once per entry elsewhere.
Convention: a look at a running job, not an output to keep: only the last window, a few rows of it and a few queries are shown, and
the title says how many there are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
from rich import box
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from muntin.query.model import Query
from muntin.spark.sinks.base import EntryId, Results, Sink
from muntin.spark.sinks.spelling import spelled


@dataclass(frozen=True)
class Newest:
    """The rows of a query's newest window that are shown, and how many there are."""

    rows: pa.Table
    count: int

    @property
    def end(self) -> object:
        return self.rows["window_end"][-1]


class ConsoleSink(Sink):
    """Shows up to `queries` queries, the ones heard of last, and up to `rows` rows of each."""

    promise = "None: what scrolled away is gone, and a replayed entry is shown again."

    def __init__(self, console: Console | None = None, *, rows: int = 8, queries: int = 6) -> None:
        self._console = console or Console()
        self._rows = rows
        self._queries = queries
        self._newest: dict[str, Newest] = {}
        self._live: Live | None = None

    def open(self, run: str, queries: Sequence[Query]) -> None:
        if self._console.is_terminal:
            self._live = Live(Text("no results yet", style="dim"), console=self._console, auto_refresh=False)
            self._live.start()

    def holds(self, entry: EntryId, stream: str = "") -> bool:
        return False

    def write(self, entry: EntryId, results: Results, stream: str = "") -> None:
        heard: dict[str, Newest] = {}
        for query, table in results:
            if table.num_rows:
                heard[query] = self._after(heard.get(query), table)
        if not heard:
            return
        self._newest = heard | {query: newest for query, newest in self._newest.items() if query not in heard}
        if self._live:
            self._live.update(self._drawn(self._newest), refresh=True)
        else:
            self._console.print(self._drawn(heard))

    def close(self) -> None:
        if self._live:
            self._live.stop()
            self._live = None

    def _after(self, newest: Newest | None, table: pa.Table) -> Newest:
        """What is shown of a query once `table` has come: chunks come in order of window end, so the last row is in the newest window."""
        end = table["window_end"][-1]
        rows = table.filter(pc.equal(table["window_end"], end))
        if newest is None or newest.end != end:
            return Newest(rows.slice(0, self._rows), rows.num_rows)
        return Newest(pa.concat_tables([newest.rows, rows]).slice(0, self._rows), newest.count + rows.num_rows)

    def _drawn(self, queries: dict[str, Newest]) -> RenderableType:
        shown = [drawn(query, newest) for query, newest in list(queries.items())[: self._queries]]
        hidden = len(queries) - len(shown)
        return Group(*shown, Text(f"and {hidden} more", style="dim")) if hidden > 0 else Group(*shown)


def drawn(query: str, newest: Newest) -> RenderableType:
    """One query's newest window as a table under its name; numbers stand to the right."""
    texts = {name: spelled(newest.rows[name].combine_chunks()) for name in newest.rows.column_names}
    start, end = (texts[bound][0].as_py() for bound in ("window_start", "window_end"))
    shown, count = newest.rows.num_rows, newest.count
    title = Text.assemble(
        (query, "bold"), f"  {readable(start)} to {readable(end)}", (f"  {shown:,} of {count:,}" if shown < count else "", "dim")
    )
    table = Table(box=box.SIMPLE_HEAD, show_edge=False)
    for field in newest.rows.schema:
        if field.name not in ("window_start", "window_end"):
            number = pa.types.is_integer(field.type) or pa.types.is_floating(field.type) or pa.types.is_decimal(field.type)
            table.add_column(Text(field.name), justify="right" if number else "left")
    columns = [texts[name].to_pylist() for name in newest.rows.column_names[2:]]
    for values in zip(*columns, strict=True):
        table.add_row(*(Text("NULL", style="dim") if value is None else Text(value) for value in values))
    return Group(title, table, "")


def readable(instant: str) -> str:
    """`2004-12-01 12:05:00` for people; the fraction only where there is one."""
    return instant.replace("T", " ").removesuffix("Z").removesuffix(".000000")
