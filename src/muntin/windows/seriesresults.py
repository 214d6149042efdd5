"""Results of windows that close partition by partition: of rows counted by PATTR.

In: `Ends` of a core, with where each window starts. Out: a `ResultChunk`, in order of window end and group.
Convention: the states of an end are those of the query's columns. A window that holds a row on which an expression failed stops the query:
what ends at or after it is left out.
"""

from __future__ import annotations

import numpy as np

from muntin.aggregates.base import Array, State
from muntin.errors import DataError
from muntin.plan.shared import ROWS, PartialColumn, QueryPlan
from muntin.windows.bytuple import Ends
from muntin.windows.groups import GroupIndex
from muntin.windows.life import QueryLife
from muntin.windows.lowering import ResultChunk, failed_rows
from muntin.windows.results import Rows, SelectList
from muntin.windows.segments import firsts_of
from muntin.windows.tuplerows import chosen


class SeriesResults:
    """The select list of one query over its groups, each of which is a series."""

    def __init__(self, plan: QueryPlan, groups: GroupIndex) -> None:
        self.plan, self.groups = plan, groups
        self.select = SelectList(plan)

    def of(self, ends: Ends, start: Array, end: Array, life: QueryLife) -> ResultChunk:
        """The rows of closed windows `start` to `end`, up to the first window whose data went wrong."""
        order = self._order(ends)
        if order is not None:
            ends, start, end = Ends(ends.series[order], ends.ticks[order], chosen(ends.states, order)), start[order], end[order]
        states = dict(zip(self.plan.columns, ends.states, strict=True))
        counted = np.nonzero((states[ROWS][0] > 0) | self.plan.query.emit_empty)[0]
        rows = Rows(
            counted, ends.series[counted], start[counted], end[counted], self.groups.columns(), np.zeros(len(counted), dtype=np.int64)
        )
        table, kept, failures = self.select.table(rows, {column: at(state, counted) for column, state in states.items()})
        wrong = [(int(rows.end[failure.row]), failure.error) for failure in failures] + self._broken(end, states)
        windows = end
        error: DataError | None = None
        if wrong:
            stop, error = min(wrong, key=lambda one: one[0])
            table, windows = table.slice(0, int(np.searchsorted(rows.end[kept], stop))), windows[windows < stop]
            life.stopped = str(error)
        return ResultChunk(self.plan.query.name, table, len(firsts_of(windows)), len(end), error)

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
        return [(int(end[at]), failed_rows(int(broken[at]))) for at in np.nonzero(broken)[0][:1]]


def at(state: State, rows: Array) -> State:
    """The states of some rows, ascending; as they are, if that is all of them."""
    return state if len(rows) == len(state[0]) else tuple(lane[rows] for lane in state)
