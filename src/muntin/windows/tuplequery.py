"""The slide-by-tuple windows of one query: its groups and partitions, its rows of a batch, its results.

In: `Partials` whose shards are ticks, how far the stream and its sub-streams are. Out: `ResultChunk`s in order of window end and group.
Convention: a group is a series of the core; without PATTR all are of one partition. A tuple that fails WHERE still ends a window. So
does one on which an expression fails; the first window that holds it stops the query. Partitions close by themselves if the columns that
divide the stream into sub-streams are among those of PATTR: any tuple of a partition makes a window for all its groups.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from muntin.aggregates.base import Array
from muntin.columnar import arrow_type
from muntin.expression.tree import Column
from muntin.plan.shared import Grouping, QueryPlan, marks_of
from muntin.query.model import Lateness
from muntin.semantics import TupleSlide
from muntin.timeline import BEGINNING
from muntin.windows.bypartition import PartitionWindows
from muntin.windows.bytuple import Ends, TupleWindows
from muntin.windows.closing import ResultChunk
from muntin.windows.groups import GroupIndex
from muntin.windows.life import QueryLife
from muntin.windows.seriesresults import TOLD, SeriesResults, with_told
from muntin.windows.shards import Partials
from muntin.windows.substreams import Closed, Substreams
from muntin.windows.tuplerows import TupleRows, chosen


class TupleQuery:
    """`windows` is the core: of the whole stream's punctuation, or of each partition's own."""

    def __init__(self, plan: QueryPlan, substreams: Substreams) -> None:
        assert isinstance(plan.query.window, TupleSlide)
        self.plan, self.window = plan, plan.query.window
        keys = plan.family.keys
        self.groups = GroupIndex(tuple(arrow_type(key.type) for key in keys))
        self.of_partition = [at for at, key in enumerate(keys) if isinstance(key, Column) and key.name in self.window.pattr]
        self.partition_keys = [keys[at] for at in self.of_partition]
        self.partitions = GroupIndex(tuple(self.groups.types[at] for at in self.of_partition))
        self._select = SeriesResults(plan, self.groups)
        columns = [TOLD, *plan.columns]
        partials, lanes = (
            [column.partial for column in columns],
            [column.partial.lanes(*(arg.type for arg in column.args)) for column in columns],
        )
        self.windows: TupleWindows | PartitionWindows
        if substreams.divide(self.partition_keys):
            self.windows = PartitionWindows(self.window, partials, lanes)
        else:
            self.windows = TupleWindows(self.window, partials, lanes, empty=plan.query.emit_empty)
        self._numbered = 0
        self.series([], 0)

    # -- rows in ----------------------------------------------------------------------------------------------------------------

    def rows(self, partials: Partials, grouping: Grouping) -> TupleRows:
        """What a batch has for the query, by tick and group."""
        sources = [grouping.source(column, self.plan.query.where) for column in self.plan.columns]
        marks = grouping.position(marks_of(self.plan.query))
        assert marks is not None
        states = tuple(partials.states[at] for at in sources if at is not None)
        series = self.series(partials.keys, len(partials))
        return TupleRows(series, partials.at, partials.states[marks][0], with_told(self.plan, states))

    def series(self, keys: Sequence[pa.Array], rows: int) -> Array:
        """The number of each row's group; a group that is new becomes a series of its partition."""
        numbers = self.groups.numbers(keys, rows)
        new = len(self.groups) - self._numbered
        if new:
            columns = [self.groups.columns()[at].slice(self._numbered) for at in self.of_partition]
            self.windows.add_series(self.partitions.numbers(columns, new))
            self._numbered = len(self.groups)
        return numbers

    def reached(self, punctuation: int, substreams: Substreams) -> Array:
        """How far each partition is."""
        return substreams.by_group(self.partition_keys, self.partitions, punctuation)

    def absorb(self, rows: TupleRows, life: QueryLife, punctuation: int, substreams: Substreams) -> None:
        """Take what counts of a batch that came under a punctuation, and under those of sub-streams, and count the late tuples."""
        if isinstance(self.windows, TupleWindows):
            self.windows.absorb(self._in_time(life, rows, self.windows.punctuation))
        else:
            reached = self.reached(punctuation, substreams)
            self.windows.absorb(self._in_time(life, rows, reached[self.windows.partition[rows.series]]), reached)

    def _in_time(self, life: QueryLife, rows: TupleRows, punctuation: Array | int) -> TupleRows:
        """What counts of a batch. Late tuples end no window, and are dropped if every window up to RANGE after them is closed too, or
        the policy for late rows is to drop them.
        """
        consistent = self.plan.query.late.lateness is Lateness.CONSISTENT
        late = rows.ticks < punctuation
        if not late.any():
            return rows
        counts = rows.states[1][0]
        dropped = late if consistent else rows.ticks + self.window.range <= punctuation
        life.late += int(counts[late].sum())
        life.dropped += int(counts[dropped].sum())
        return rows.where(~late) if consistent else rows

    # -- results out ------------------------------------------------------------------------------------------------------------

    def close(self, before: tuple[int, Substreams], now: tuple[int, Substreams]) -> Iterator[Ends]:
        """The windows that end between two punctuations, those of sub-streams included."""
        if isinstance(self.windows, TupleWindows):
            return self.windows.close(now[0])
        closed = Closed(self.reached(*before), self.reached(*now))
        return self.windows.close(closed, np.full(len(closed.now), BEGINNING))

    def results(self, ends: Ends, life: QueryLife) -> ResultChunk:
        """The rows of closed windows, without windows that start before the query joined."""
        mine = ends.ticks >= life.since + self.window.range - 1
        if not mine.all():
            chosen_ = np.nonzero(mine)[0]
            ends = Ends(ends.series[chosen_], ends.ticks[chosen_], chosen(ends.states, chosen_))
        return self._select.of(ends, ends.ticks - self.window.range, ends.ticks, life)
