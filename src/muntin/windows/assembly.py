"""Assembly: partials and punctuations in, results of closed windows out. The papers' window-level query, for all queries at once.

In: `Partials` per grouping and a punctuation. Out: `ResultChunk`s, one query's rows in order of window end and group.
Convention: all state is the slices in hand, the last punctuation and which queries have stopped; the same steps give the same
results whatever came before was cut into. Nothing here knows whether it runs in the driver or on an executor.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from muntin.columnar import integers
from muntin.plan.fragments import Truth
from muntin.plan.shared import SharedPlan
from muntin.timeline import BEGINNING
from muntin.windows.closing import GroupingWindows, ResultChunk
from muntin.windows.due import missed
from muntin.windows.groups import codes_of
from muntin.windows.store import Partials, SliceStore

#: Cells of slices × fragments absorbed before windows are closed: bounds the memory of a batch that spans a long time.
CELLS_AT_ONCE = 4_000_000
#: Keys that are not worth counting.
FEW = 1_000


@dataclass
class QueryCounts:
    """What happened to one query so far. `late` rows missed a window that had closed; `dropped` ones missed all of theirs."""

    windows: int = 0
    results: int = 0
    late: int = 0
    dropped: int = 0
    stopped: str = ""


@dataclass
class Aggregations:
    """By the definition of on-the-fly-sharing-2006, section 3.1: rows into slices, and slices into windows."""

    partial: int = 0
    final: int = 0


@dataclass
class Assembly:
    """The state of one stream's windows. `latest` is an instant in the slice of the latest row, no edge lying between the two."""

    plan: SharedPlan
    punctuation: int = BEGINNING
    latest: int = BEGINNING
    counts: dict[str, QueryCounts] = field(default_factory=dict)
    aggregations: Aggregations = field(default_factory=Aggregations)

    def __post_init__(self) -> None:
        self.stores = [SliceStore(grouping) for grouping in self.plan.groupings]
        self.closers = [GroupingWindows(store, self.plan.in_grouping(at)) for at, store in enumerate(self.stores)]
        for plan in self.plan.queries:
            self.counts.setdefault(plan.query.name, QueryCounts())

    def step(self, partials: Sequence[Partials], punctuation: int) -> Iterator[ResultChunk]:
        """Absorb the partials of one batch, then close what the punctuation closes. Exhaust it before the next step."""
        punctuation = max(punctuation, self.punctuation)
        self.latest = max([self.latest, *(int(arrived.at.max(initial=BEGINNING)) for arrived in partials)])
        for grouping, arrived in enumerate(partials):
            self._count_late(grouping, arrived)
            yield from self._step_grouping(grouping, arrived, punctuation)
        self.punctuation = punctuation

    def _step_grouping(self, grouping: int, arrived: Partials, punctuation: int) -> Iterator[ResultChunk]:
        """In order of time, a bounded number of cells at once: windows before the next piece are already complete."""
        closer, store, closed = self.closers[grouping], self.stores[grouping], self.punctuation
        for piece, until in self._pieces(closer, arrived, punctuation):
            store.absorb(piece)
            if until > closed:
                yield from self._recorded(closer.close(after=closed, upto=until, latest=self.latest, stopped=self.stopped))
                closed = until
                store.drop_before(closer.horizon(until), until)

    def _pieces(self, closer: GroupingWindows, arrived: Partials, punctuation: int) -> Iterator[tuple[Partials, int]]:
        """Partials in order of time, without those no open window needs, each piece with the punctuation it allows."""
        starts = closer.store.slices.slice_starts(arrived.at)
        live = np.nonzero(starts >= closer.horizon(self.punctuation))[0]
        order = live[np.argsort(starts[live], kind="stable")]
        slices, firsts = np.unique(starts[order], return_index=True)
        step = max(1, CELLS_AT_ONCE // max(1, len(closer.store.fragments) + distinct_keys(arrived)))
        for at in range(step, len(slices), step):
            yield arrived.rows(order[firsts[at - step] : firsts[at]]), min(punctuation, int(slices[at]))
        rest = firsts[(len(slices) - 1) // step * step] if len(slices) else 0
        yield arrived.rows(order[rest:]), punctuation

    def _recorded(self, chunks: Iterator[ResultChunk]) -> Iterator[ResultChunk]:
        for chunk in chunks:
            counts = self.counts[chunk.query]
            counts.windows += chunk.windows
            counts.results += chunk.table.num_rows
            if chunk.error is not None:
                counts.stopped = str(chunk.error)
            self.aggregations.final += chunk.slices
            if chunk.table.num_rows or chunk.error:
                yield chunk

    def _count_late(self, grouping: int, arrived: Partials) -> None:
        """Rows that came below the last punctuation, per query that would have counted them."""
        below = np.nonzero(arrived.at < self.punctuation)[0]
        if not len(below):
            return
        store = self.stores[grouping]
        starts = store.slices.slice_starts(arrived.at[below])
        cells = integers(arrived.keys[0], null=0)[below] if store.fragments.axes else below
        for plan in self.plan.in_grouping(grouping):
            some, every = missed(starts, punctuation=self.punctuation, window=plan.query.window)
            holds = store.fragments.truths(plan.predicate, cells) == Truth.TRUE
            rows = np.where(holds, arrived.states[plan.rows][0][below], 0)
            self.counts[plan.query.name].late += int(rows[some].sum())
            self.counts[plan.query.name].dropped += int(rows[every].sum())

    @property
    def stopped(self) -> set[str]:
        return {name for name, counts in self.counts.items() if counts.stopped}

    @property
    def slices_seen(self) -> int:
        """Slices that ever held a row."""
        return sum(store.slices_seen for store in self.stores)

    @property
    def cells(self) -> int:
        """Slices × fragments in hand."""
        return sum(len(store.starts) * len(store.fragments) for store in self.stores)

    def snapshot(self) -> list[Partials]:
        """The state as partials: absorbing them into a new assembly at this punctuation gives it back."""
        return [store.cells() for store in self.stores]

    def restore(self, partials: Sequence[Partials], punctuation: int) -> None:
        for store, cells in zip(self.stores, partials, strict=True):
            store.absorb(cells)
        self.punctuation = punctuation


def distinct_keys(partials: Partials) -> int:
    """How many fragments partials can have; counted where there are many."""
    if not partials.keys or len(partials) <= FEW:
        return min(len(partials), 1 if not partials.keys else FEW)
    return int(codes_of(partials.keys).max()) + 1


def tables_by_query(chunks: Sequence[ResultChunk]) -> dict[str, pa.Table]:
    """All rows of each query in one table."""
    tables: dict[str, list[pa.Table]] = {}
    for chunk in chunks:
        tables.setdefault(chunk.query, []).append(chunk.table)
    return {query: pa.concat_tables(parts) for query, parts in tables.items()}
