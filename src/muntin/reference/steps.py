"""What the oracle is told, step by step, and what follows for each row: its tick, its number, the punctuation it came under.

In: `Step`s, each some rows in order of arrival, then promises, and the clock. Out: `Placed` rows; the punctuation of a group.
Convention: rows are numbered from 0 in order of arrival, per value of PATTR, before WHERE and joins. Over row_num the punctuation is
the number of rows that came, over arrival_ts the clock; over anything else it is what was promised. A promise about a sub-stream
closes groups by themselves only if its columns are among those that divide the windows: group columns, or PATTR for slide-by-tuple,
where every tuple of a partition makes a window for all its groups.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate
from typing import Any, Self

from muntin.expression.tree import Column
from muntin.query.model import Query
from muntin.reference.rows import Key, Row
from muntin.semantics import ARRIVAL_TIME, ROWS, TupleSlide, row_numbers
from muntin.timeline import BEGINNING, END


@dataclass(frozen=True)
class Promise:
    """No more rows below the tick `below` will come, of those whose columns have the values `of`: of all, if it is empty."""

    below: int
    of: tuple[tuple[str, Any], ...] = ()


@dataclass(frozen=True)
class Step:
    """Rows in order of arrival, what is promised after them, and the clock in microseconds."""

    rows: Sequence[Row] = ()
    promises: Sequence[Promise] = ()
    clock: int = 0


@dataclass(frozen=True)
class Placed:
    """A row with its tick and number, the step it came in, and the punctuation it came under."""

    row: Row = field(repr=False)
    tick: int
    number: int
    partition: Key
    step: int
    punctuation: int

    def with_row(self, row: Row) -> Self:
        return replace(self, row=row)


class Schedule:
    """The steps of one query."""

    def __init__(self, query: Query, steps: Sequence[Step]) -> None:
        self.query = query
        self.steps = steps
        self.clocks = list(accumulate((step.clock for step in steps), max))
        self._counts: list[dict[Key, int]] = [{}]
        rows = [(number, row) for number, step in enumerate(steps) for row in step.rows]
        partitions = [self.partition(row) for _, row in rows]
        numbers = row_numbers(partitions)
        self._counts = [self._count(upto, rows, partitions) for upto in range(len(steps))]
        self.rows = [
            Placed(row, self._tick(row, number, at), number, partition, at, self.reached(at - 1, row, partition))
            for (at, row), number, partition in zip(rows, numbers, partitions, strict=True)
        ]

    def partition(self, row: Row) -> Key:
        return tuple(row[name] for name in self.query.window.pattr)

    def reached(self, step: int, row: Row, partition: Key) -> int:
        """The punctuation after a step, for rows of the group or partition of this one."""
        window = self.query.window
        if step < 0:
            return BEGINNING
        made = [promise for one in self.steps[: step + 1] for promise in one.promises]
        if window.measure == ROWS:
            closed = any(promise.below >= END for promise in made)
            return END if closed else self._counts[step].get(partition, 0)
        below = [promise.below for promise in made if self._divides(promise) and all(row[name] == part for name, part in promise.of)]
        if window.wattr == ARRIVAL_TIME and ARRIVAL_TIME not in row:
            below = [self.clocks[step], *(tick for tick in below if tick >= END)]
        return max(below, default=BEGINNING)

    def _divides(self, promise: Promise) -> bool:
        query = self.query
        by_group = {group.expression.name for group in query.group_by if isinstance(group.expression, Column)}
        allowed = set(query.window.pattr) if isinstance(query.window, TupleSlide) else by_group
        return {name for name, _ in promise.of} <= allowed

    def _tick(self, row: Row, number: int, step: int) -> int:
        window = self.query.window
        if window.measure == ROWS:
            return number
        if window.wattr == ARRIVAL_TIME and ARRIVAL_TIME not in row:
            return self.clocks[step]
        return window.measure.tick(row[window.wattr])

    @staticmethod
    def _count(upto: int, rows: Sequence[tuple[int, Row]], partitions: Sequence[Key]) -> dict[Key, int]:
        counts: dict[Key, int] = {}
        for (at, _), partition in zip(rows, partitions, strict=True):
            if at <= upto:
                counts[partition] = counts.get(partition, 0) + 1
        return counts
