"""Rows of slide-by-tuple windows: one per series and tick, with a state per partial.

In: batches of partials per distinct tick. Out: `TupleRows`, put together, chosen from, sorted; `TupleColumns` computes with their states.
Convention: a series is the rows of one group (of one partition, where there is PATTR), named by a number. `marks` says how many tuples
of a row count for SLIDE: every n-th by arrival, or all of them where SLIDE goes by rank. Rows of which no tuple passes WHERE are there
too, with states of nothing: they may end windows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from muntin.aggregates.base import Array, LaneType, Partial, State
from muntin.windows.segments import Places, ascending, firsts_of, running, running_backwards

States = tuple[State, ...]


@dataclass(frozen=True)
class TupleRows:
    series: Array
    ticks: Array
    marks: Array
    states: States

    def __len__(self) -> int:
        return len(self.ticks)

    def at(self, rows: Array | slice) -> TupleRows:
        return TupleRows(self.series[rows], self.ticks[rows], self.marks[rows], chosen(self.states, rows))

    def where(self, condition: Array) -> TupleRows:
        """Not copied where most rows are chosen and lie side by side, as they do when a stream comes in order."""
        if condition.all():
            return self
        rows = np.nonzero(condition)[0]
        in_one_piece = 2 * len(rows) > len(self) and rows[-1] - rows[0] == len(rows) - 1
        return self.at(slice(rows[0], rows[-1] + 1) if in_one_piece else rows)


def chosen(states: States, rows: Array | slice) -> States:
    return tuple(tuple(lane[rows] for lane in state) for state in states)


def put(to: States, rows: Array, values: States) -> None:
    for state, new_state in zip(to, values, strict=True):
        for lane, new in zip(state, new_state, strict=True):
            lane[rows] = new


def appended(states: States, others: States) -> States:
    return tuple(tuple(map(np.concatenate, zip(state, other, strict=True))) for state, other in zip(states, others, strict=True))


@dataclass(frozen=True)
class Waiting:
    """Rows at or above the punctuation, in no order, and the least of their ticks."""

    rows: TupleRows
    least: int


@dataclass(frozen=True)
class Closing:
    """What a punctuation closes: rows in order with the prefixes of their blocks, and where suffixes of blocks before them are."""

    rows: TupleRows
    prefixes: TupleRows
    carried: States
    carried_block: int
    tables: tuple[TupleRows, ...]
    places: Places


class TupleColumns:
    """The partials of a query and how their states are held."""

    def __init__(self, partials: Sequence[Partial], lanes: Sequence[Sequence[LaneType]]) -> None:
        self.partials = tuple(partials)
        self.lanes = tuple(map(tuple, lanes))

    def blank(self, count: int) -> States:
        """States of nothing."""
        return tuple(
            tuple(np.full(count, identity, dtype=lane.dtype) for identity, lane in zip(partial.identity(), some, strict=True))
            for partial, some in zip(self.partials, self.lanes, strict=True)
        )

    def no_rows(self) -> TupleRows:
        empty = np.empty(0, dtype=np.int64)
        return TupleRows(empty, empty, empty, self.blank(0))

    def together(self, parts: Sequence[TupleRows]) -> TupleRows:
        """All rows, one after the other."""
        some = [part for part in parts if len(part)]
        if len(some) <= 1:
            return some[0] if some else self.no_rows()
        states = tuple(
            tuple(map(np.concatenate, zip(*columns, strict=True))) for columns in zip(*(part.states for part in some), strict=True)
        )
        series, ticks, marks = (np.concatenate([getattr(part, name) for part in some]) for name in ("series", "ticks", "marks"))
        return TupleRows(series, ticks, marks, states)

    def in_order(self, rows: TupleRows, places: Places) -> TupleRows:
        """Sorted by series and tick, each pair once."""
        order = ascending(places.of(rows.series, rows.ticks))
        if order is not None:
            rows = rows.at(order)
        firsts = firsts_of(rows.ticks, rows.series)
        if len(firsts) == len(rows):
            return rows
        marks = np.add.reduceat(rows.marks, firsts)
        return TupleRows(rows.series[firsts], rows.ticks[firsts], marks, self.reduced(rows.states, firsts))

    def reduced(self, states: States, firsts: Array) -> States:
        return tuple(partial.reduce(state, firsts) for partial, state in zip(self.partials, states, strict=True))

    def combined(self, first: States, second: States) -> States:
        return tuple(partial.combine(a, b) for partial, a, b in zip(self.partials, first, second, strict=True))

    def prefixes(self, rows: TupleRows, firsts: Array) -> TupleRows:
        """Each row with all before it in its segment."""
        states = (running(partial, state, firsts) for partial, state in zip(self.partials, rows.states, strict=True))
        return replace(rows, states=tuple(states))

    def suffixes(self, rows: TupleRows, firsts: Array) -> TupleRows:
        """Each row with all after it in its segment."""
        states = (running_backwards(partial, state, firsts) for partial, state in zip(self.partials, rows.states, strict=True))
        return replace(rows, states=tuple(states))
