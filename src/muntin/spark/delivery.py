"""Delivery: the results of an entry to the sinks, from the driver and from the executors.

In: an entry about to be taken, and sinks. Out: the entry is taken, and every sink has its results. Convention: a sink that holds the entry
already is left out. Sinks that executors can write to get results from them; for the others results come to the driver, where those of all
instances are put in order: by window end, then by the group columns that are selected.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain

import pyarrow as pa
import pyarrow.compute as pc

from muntin.plan.shared import SharedPlan
from muntin.query.model import Query
from muntin.spark.assembling import Assembling, Step
from muntin.spark.crew import Asked, Taken
from muntin.spark.onethread import one_thread
from muntin.spark.sinks.base import Sink
from muntin.spark.sinks.spread import SpreadSink, SpreadWriter
from muntin.windows.groups import sortable

Chunks = Iterable[tuple[str, pa.Table]]


def deliver(assembling: Assembling, step: Step, sinks: Sequence[Sink], stream: str, *, snapshot: bool) -> Taken | None:
    """Take an entry. What comes back is what the instances did, if there are any."""
    with one_thread():
        return delivered(assembling, step, sinks, stream, snapshot=snapshot)


def delivered(assembling: Assembling, step: Step, sinks: Sequence[Sink], stream: str, *, snapshot: bool) -> Taken | None:
    waiting = [sink for sink in sinks if not sink.holds(step.entry.id, stream)]
    for sink in waiting:
        sink.expect([one.query for one in step.plan.queries], stream)
    writers = {at: writer for at, sink in enumerate(waiting) if (writer := writer_of(sink, stream))}
    asked = Asked(tuple(writers.values()), returned=len(writers) < len(waiting), snapshot=snapshot)
    taken = assembling.take(step, asked)
    results = assembling.results(step)
    here: Chunks = list(results) if len(waiting) > 1 else results
    for at, sink in enumerate(waiting):
        if taken and isinstance(sink, SpreadSink) and at in writers:
            sink.commit(step.entry.id, here, taken.written[list(writers).index(at)], stream)
        else:
            sink.write(step.entry.id, chain(here, in_order(taken.returned, step.plan)) if taken else here, stream)
    for _ in results:  # a sink that already holds the entry did not pull them
        pass
    return taken


def writer_of(sink: Sink, stream: str) -> SpreadWriter | None:
    return sink.writer(stream) if isinstance(sink, SpreadSink) else None


def in_order(results: Sequence[tuple[str, pa.Table]], plan: SharedPlan) -> Iterator[tuple[str, pa.Table]]:
    """The results of all instances, query by query."""
    queries = {one.query.name: one.query for one in plan.queries}
    together: dict[str, list[pa.Table]] = {}
    for name, table in results:
        together.setdefault(name, []).append(table)
    for name, tables in together.items():
        yield name, merged(tables, queries[name])


def merged(tables: Sequence[pa.Table], query: Query) -> pa.Table:
    if len(tables) == 1:
        return tables[0]
    table = pa.concat_tables(tables)
    columns = ["window_end", *query.selected_groups]
    keys = pa.table({key: one for at, name in enumerate(columns) for key, one in sortable(str(at), table[name]).items()})
    return table.take(pc.sort_indices(keys, sort_keys=[(name, "ascending", "at_start") for name in keys.column_names]))
