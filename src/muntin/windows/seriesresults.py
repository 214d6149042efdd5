"""Results of windows that close series by series: of slide-by-tuple windows, and of rows counted by partition.

In: `Ends` of a core, with where each window starts. Out: a `ResultChunk`, in order of window end and group.
Convention: the states of an end are those of the query's columns. A window that holds a row on which an expression failed stops the
query: what ends at or after it is left out.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from muntin.aggregates.base import Array, State
from muntin.errors import DataError
from muntin.plan.shared import ROWS, PartialColumn, QueryPlan
from muntin.windows.bytuple import Ends
from muntin.windows.corrections import Revisions
from muntin.windows.groups import GroupIndex
from muntin.windows.life import QueryLife, Stop
from muntin.windows.lowering import FAILED_ROWS, Manner, ResultChunk, without
from muntin.windows.results import Rows, SelectList
from muntin.windows.segments import firsts_of
from muntin.windows.tuplerows import chosen


@dataclass(frozen=True)
class Revised:
    """Which results are not the first of their windows, and the revisions so far."""

    was_emitted: Array
    known: Revisions


class SeriesResults:
    """The select list of one query over its groups, each of which is a series."""

    def __init__(self, plan: QueryPlan, groups: GroupIndex) -> None:
        self.plan, self.groups = plan, groups
        self.select = SelectList(plan)

    def of(self, ends: Ends, start: Array, end: Array, life: QueryLife, revisions: Revised | None = None) -> ResultChunk:
        """The rows of closed windows `start` to `end`, up to the first window whose data went wrong. `revisions` are given where they are
        of windows that were closed before.
        """
        order = self._order(ends)
        if order is not None:
            ends, start, end = Ends(ends.series[order], ends.ticks[order], chosen(ends.states, order)), start[order], end[order]
        states = dict(zip(self.plan.columns, ends.states, strict=True))
        counted = np.nonzero((states[ROWS][0] > 0) | self.plan.query.emit_empty)[0]
        revision = np.zeros(len(end), dtype=np.int64)
        if revisions is not None:
            was_emitted = revisions.was_emitted if order is None else revisions.was_emitted[order]
            revision = revisions.known.next(ends.ticks, ends.series, was_emitted)
        rows = Rows(counted, ends.series[counted], start[counted], end[counted], self.groups.columns(), revision[counted])
        table, kept, failures = self.select.table(rows, {column: at(state, counted) for column, state in states.items()})
        wrong = [(int(rows.end[failure.row]), failure.error) for failure in failures] + self._broken(end, states)
        windows = end
        error: DataError | None = None
        if wrong:
            stop = min(Stop.at(end, error) for end, error in wrong)
            table, windows = table.slice(0, int(np.searchsorted(rows.end[kept], stop.end))), windows[windows < stop.end]
            error = stop.error
            life.stopped = str(error)
        count, manner = (len(firsts_of(windows)), Manner.CLOSED) if revisions is None else (0, Manner.CORRECTED)
        return ResultChunk(self.plan.query.name, table, count, len(end), error, manner)

    def early(self, ends: Ends, start: Array, end: Array) -> ResultChunk:
        """The running values of open windows, without those that cannot be computed now."""
        order = self._order(ends)
        if order is not None:
            ends, start, end = Ends(ends.series[order], ends.ticks[order], chosen(ends.states, order)), start[order], end[order]
        states = dict(zip(self.plan.columns, ends.states, strict=True))
        broken = states[self.plan.failures][0] if self.plan.failures is not None else 0
        counted = np.nonzero((states[ROWS][0] > 0) & (broken == 0))[0]
        first = np.zeros(len(counted), dtype=np.int64)
        rows = Rows(counted, ends.series[counted], start[counted], end[counted], self.groups.columns(), first, final=False)
        table, kept, failures = self.select.table(rows, {column: at(state, counted) for column, state in states.items()})
        return ResultChunk(self.plan.query.name, without(table, kept, failures)[0], 0, len(end), manner=Manner.EARLY)

    def _order(self, ends: Ends) -> Array | None:
        """By window end and group; None if they are in order."""
        if len(self.groups) == 1 and (np.diff(ends.ticks) > 0).all():
            return None
        rank = np.empty(len(self.groups), dtype=np.int64)
        rank[self.groups.order()] = np.arange(len(self.groups))
        return np.lexsort((rank[ends.series], ends.ticks))

    def _broken(self, end: Array, states: dict[PartialColumn, State]) -> list[tuple[int, DataError]]:
        """The first window with a row on which an expression failed."""
        if self.plan.failures is None:
            return []
        broken = states[self.plan.failures][0]
        return [(int(end[at]), FAILED_ROWS) for at in np.nonzero(broken)[0][:1]]


def at(state: State, rows: Array) -> State:
    """The states of some rows, ascending; as they are, if that is all of them."""
    return state if len(rows) == len(state[0]) else tuple(lane[rows] for lane in state)
