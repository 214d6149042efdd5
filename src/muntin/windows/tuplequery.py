"""The slide-by-tuple windows of one query: its groups and partitions, its rows of a batch, its results.

In: `Partials` whose shards are ticks, `Ends` of the core. Out: `TupleRows`, `ResultChunk`s in order of window end and group.
Convention: a group is a series of the core; without PATTR all are of one partition. A tuple that fails WHERE still ends a window. So
does one on which an expression fails; the first window that holds it stops the query.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from muntin.aggregates.base import Array, State
from muntin.columnar import arrow_type
from muntin.errors import DataError
from muntin.expression.tree import Column
from muntin.plan.shared import ROWS, Grouping, PartialColumn, QueryPlan, marks_of
from muntin.query.model import Lateness
from muntin.semantics import TupleSlide
from muntin.windows.bytuple import Ends, TupleWindows
from muntin.windows.corrections import Revisions
from muntin.windows.groups import GroupIndex
from muntin.windows.life import QueryLife
from muntin.windows.lowering import Manner, ResultChunk, failed_rows, without
from muntin.windows.results import Rows, SelectList
from muntin.windows.segments import firsts_of
from muntin.windows.shards import Partials
from muntin.windows.tuplekept import Again, TupleKept
from muntin.windows.tuplerows import TupleRows, chosen


class TupleQuery:
    def __init__(self, plan: QueryPlan) -> None:
        assert isinstance(plan.query.window, TupleSlide)
        self.plan, self.window = plan, plan.query.window
        self.select = SelectList(plan)
        keys = plan.family.keys
        self.groups = GroupIndex(tuple(arrow_type(key.type) for key in keys))
        self.of_partition = [at for at, key in enumerate(keys) if isinstance(key, Column) and key.name in self.window.pattr]
        self.partitions = GroupIndex(tuple(self.groups.types[at] for at in self.of_partition))
        lanes = [column.partial.lanes(*(arg.type for arg in column.args)) for column in plan.columns]
        telling = 1 if plan.failures is None else 2  # rows, then failures: a window that has neither is nothing to look at
        partials = [column.partial for column in plan.columns]
        self.windows = TupleWindows(self.window, partials, lanes, telling=telling, empty=plan.query.emit_empty)
        self.kept = TupleKept(self.windows, plan.query.late.horizon) if plan.query.marks else None
        self._numbered = 0
        self.series([], 0)

    # -- rows in ----------------------------------------------------------------------------------------------------------------

    def rows(self, partials: Partials, grouping: Grouping) -> TupleRows:
        """What a batch has for the query, by tick and group."""
        sources = [grouping.source(column, self.plan.query.where) for column in self.plan.columns]
        marks = grouping.source(marks_of(self.window), None)
        assert marks is not None
        states = tuple(partials.states[at] for at in sources if at is not None)
        return TupleRows(self.series(partials.keys, len(partials)), partials.at, partials.states[marks][0], states)

    def series(self, keys: Sequence[pa.Array], rows: int) -> Array:
        """The number of each row's group; a group that is new becomes a series of its partition."""
        numbers = self.groups.numbers(keys, rows)
        new = len(self.groups) - self._numbered
        if new:
            columns = [self.groups.columns()[at].slice(self._numbered) for at in self.of_partition]
            self.windows.add_series(self.partitions.numbers(columns, new))
            self._numbered = len(self.groups)
        return numbers

    def in_time(self, life: QueryLife, rows: TupleRows) -> TupleRows:
        """What counts of a batch, with the late tuples counted. They are dropped if every window up to RANGE after them is closed too, and
        not corrected any more, or the policy for late rows is to drop them.
        """
        punctuation, consistent = self.windows.punctuation, self.plan.query.late.lateness is Lateness.CONSISTENT
        late = rows.ticks < punctuation
        if not late.any():
            return rows
        counts = rows.states[0][0]
        dropped = late if consistent else rows.ticks + self.window.range + self.plan.query.late.horizon <= punctuation
        life.late += int(counts[late].sum())
        life.dropped += int(counts[dropped].sum())
        return rows.where(~late) if consistent else rows

    # -- results out ------------------------------------------------------------------------------------------------------------

    def closed(self, ends: Ends, life: QueryLife) -> ResultChunk:
        """The rows of windows that close."""
        ends = self.in_order(ends, since=life.since)
        return self._results(ends, np.zeros(len(ends.ticks), dtype=np.int64), life, Manner.CLOSED)

    def corrected(self, again: Again, life: QueryLife, revisions: Revisions) -> ResultChunk:
        """The rows of windows that late tuples changed, or made."""
        order = self._order(again.ends, since=life.since)
        ends, was_emitted = at_rows(again.ends, order), again.was_emitted[order]
        return self._results(ends, revisions.next(ends.ticks, ends.series, was_emitted), life, Manner.CORRECTED)

    def early(self, ends: Ends, life: QueryLife) -> ResultChunk:
        """The running values of open windows, without those that cannot be computed now."""
        ends = self.in_order(ends, since=life.since)
        states = dict(zip(self.plan.columns, ends.states, strict=True))
        broken = states[self.plan.failures][0] if self.plan.failures is not None else 0
        counted = np.nonzero((states[ROWS][0] > 0) & (broken == 0))[0]
        rows = self._rows(ends, counted, np.zeros(len(counted), dtype=np.int64), final=False)
        table, kept, failures = self.select.table(rows, {column: at(state, counted) for column, state in states.items()})
        return ResultChunk(self.plan.query.name, without(table, kept, failures)[0], 0, len(ends.ticks), manner=Manner.EARLY)

    def _rows(self, ends: Ends, counted: Array, revision: Array, *, final: bool = True) -> Rows:
        end = ends.ticks[counted]
        return Rows(counted, ends.series[counted], end - self.window.range, end, self.groups.columns(), revision, final)

    def _results(self, ends: Ends, revision: Array, life: QueryLife, manner: Manner) -> ResultChunk:
        """Up to the first window whose data went wrong."""
        states = dict(zip(self.plan.columns, ends.states, strict=True))
        counted = np.nonzero((states[ROWS][0] > 0) | self.plan.query.emit_empty)[0]
        rows = self._rows(ends, counted, revision[counted])
        end = rows.end
        table, kept, failures = self.select.table(rows, {column: at(state, counted) for column, state in states.items()})
        wrong = [(int(rows.end[failure.row]), failure.error) for failure in failures] + self._broken(ends, states)
        windows = ends.ticks
        error: DataError | None = None
        if wrong:
            stop, error = min(wrong, key=lambda one: one[0])
            table, windows = table.slice(0, int(np.searchsorted(end[kept], stop))), windows[windows < stop]
            life.stopped = str(error)
        count = len(firsts_of(windows)) if manner is Manner.CLOSED else 0
        return ResultChunk(self.plan.query.name, table, count, len(ends.ticks), error, manner)

    def in_order(self, ends: Ends, *, since: int) -> Ends:
        """By window end and group, without windows that start before the query joined."""
        first = since + self.window.range - 1
        if len(self.groups) == 1 and (np.diff(ends.ticks) > 0).all() and (not len(ends.ticks) or ends.ticks[0] >= first):
            return ends
        return at_rows(ends, self._order(ends, since=since))

    def _order(self, ends: Ends, *, since: int) -> Array:
        rank = np.empty(len(self.groups), dtype=np.int64)
        rank[self.groups.order()] = np.arange(len(self.groups))
        mine = np.nonzero(ends.ticks >= since + self.window.range - 1)[0]
        order: Array = mine[np.lexsort((rank[ends.series[mine]], ends.ticks[mine]))]
        return order

    def _broken(self, ends: Ends, states: dict[PartialColumn, State]) -> list[tuple[int, DataError]]:
        """The first window with a row on which an expression failed."""
        if self.plan.failures is None:
            return []
        broken = states[self.plan.failures][0]
        return [(int(ends.ticks[at]), failed_rows(int(broken[at]))) for at in np.nonzero(broken)[0][:1]]


def at_rows(ends: Ends, rows: Array) -> Ends:
    return Ends(ends.series[rows], ends.ticks[rows], chosen(ends.states, rows))


def at(state: State, rows: Array) -> State:
    """The states of some rows, ascending; as they are, if that is all of them."""
    return state if len(rows) == len(state[0]) else tuple(lane[rows] for lane in state)
