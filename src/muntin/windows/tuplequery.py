"""The slide-by-tuple windows of one query: its groups and partitions, its rows of a batch, its results.

In: `Partials` whose shards are ticks, how far the stream and its sub-streams are. Out: `ResultChunk`s in order of window end and group.
Convention: a group is a series of the core; without PATTR all are of one partition. A tuple that fails WHERE still ends a window. So
does one on which an expression fails; the first window that holds it stops the query. Partitions close by themselves if the columns that
divide the stream into sub-streams are among those of PATTR: any tuple of a partition makes a window for all its groups.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

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
from muntin.windows.groups import GroupIndex
from muntin.windows.life import QueryLife
from muntin.windows.lowering import ResultChunk
from muntin.windows.seriesresults import Revised, SeriesResults
from muntin.windows.shards import Partials
from muntin.windows.substreams import Closed, Substreams
from muntin.windows.tuplekept import TupleKept
from muntin.windows.tuplerows import TupleColumns, TupleRows, chosen


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
        columns = TupleColumns.of(plan)
        self.windows: TupleWindows | PartitionWindows
        if substreams.divide(self.partition_keys):
            self.windows = PartitionWindows(self.window, columns)
        else:
            self.windows = TupleWindows(self.window, columns, empty=plan.query.emit_empty)
        kept = TupleKept(self.windows, plan.query.late.horizon, empty=plan.query.emit_empty)
        self.kept = kept if plan.query.marks else None
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
        return TupleRows(series, partials.at, partials.states[marks][0], states)

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
        if isinstance(self.windows, TupleWindows):
            return np.full(len(self.partitions), punctuation)
        return substreams.by_group(self.partition_keys, self.partitions, punctuation)

    def absorb(self, rows: TupleRows, life: QueryLife, punctuation: int, substreams: Substreams) -> Iterator[ResultChunk]:
        """Take what counts of a batch that came under a punctuation, and under those of sub-streams, and count the late tuples. Gives the
        results that they correct.
        """
        if isinstance(self.windows, TupleWindows):
            rows = self._in_time(life, rows, punctuation)
            yield from self._corrected(rows, life, punctuation, substreams)
            self.windows.absorb(rows)
        else:
            reached = self.reached(punctuation, substreams)
            rows = self._in_time(life, rows, reached[self.windows.partition[rows.series]])
            yield from self._corrected(rows, life, punctuation, substreams)
            self.windows.absorb(rows, reached)

    def _in_time(self, life: QueryLife, rows: TupleRows, punctuation: Array | int) -> TupleRows:
        """What counts of a batch. Late tuples are dropped if every window up to RANGE after them is closed too, and not corrected any more,
        or the policy for late rows is to drop them.
        """
        consistent = self.plan.query.late.lateness is Lateness.CONSISTENT
        late = rows.ticks < punctuation
        if not late.any():
            return rows
        counts = rows.states[0][0]
        dropped = late if consistent else rows.ticks + self.window.range + self.plan.query.late.horizon <= punctuation
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
        mine = self._mine(ends, life)
        ends = ends if mine is None else at_rows(ends, mine)
        return self._select.of(ends, ends.ticks - self.window.range, ends.ticks, life)

    def _mine(self, ends: Ends, life: QueryLife) -> Array | None:
        """Those that the query takes part in; None if that is all of them."""
        mine = ends.ticks >= life.since + self.window.range - 1
        return None if mine.all() else np.nonzero(mine)[0]

    def _corrected(self, rows: TupleRows, life: QueryLife, punctuation: int, substreams: Substreams) -> Iterator[ResultChunk]:
        """Keep the rows of a batch, where some are kept, and give the results that late ones among them change."""
        if self.kept is None:
            return
        reached = self.reached(punctuation, substreams)
        self.kept.add(rows, reached)
        late = rows.where(rows.ticks < reached[self.windows.partition[rows.series]])
        for again in self.kept.corrected(late, reached) if self.plan.query.is_corrected and len(late) else ():
            if not life.stopped:
                mine = self._mine(again.ends, life)
                ends, was = (again.ends, again.was_emitted) if mine is None else (at_rows(again.ends, mine), again.was_emitted[mine])
                yield self._select.of(ends, ends.ticks - self.window.range, ends.ticks, life, Revised(was, self.kept.revisions))

    def early(self, life: QueryLife, punctuation: int, substreams: Substreams, due: Collection[int]) -> Iterator[ResultChunk]:
        """The running values of open windows, if the time for them has come; and what nobody will ask for is forgotten."""
        every = self.plan.query.emit_every
        if self.kept is None:
            return
        reached = self.reached(punctuation, substreams)
        for ends in self.kept.early(reached) if every is not None and every.micros in due else ():
            if not life.stopped:
                mine = self._mine(ends, life)
                ends = ends if mine is None else at_rows(ends, mine)
                yield self._select.early(ends, ends.ticks - self.window.range, ends.ticks)
        self.kept.prune(reached)


def at_rows(ends: Ends, rows: Array) -> Ends:
    return Ends(ends.series[rows], ends.ticks[rows], chosen(ends.states, rows))
