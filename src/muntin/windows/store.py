"""The slices in hand of some queries of one family: partial states of slices × strands.

In: states keyed by slice and strand, folded from a batch's partials. Out: runs of slices combined; the states back for a snapshot.
Convention: memory is proportional to slices × active strands; slices that no open window needs are dropped, and so are strands that
have no row in any slice left. Queries come and go: a new one finds slices it never reads, and adds its edges, predicate and columns.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from muntin.aggregates.base import Array, Differential, State
from muntin.aggregates.sums import Count
from muntin.expression.tree import Expression
from muntin.plan.family import Family
from muntin.plan.numbering import all_different, distinct
from muntin.plan.shared import ROWS, News, PartialColumn, QueryPlan
from muntin.plan.slices import SliceManager, Slicing
from muntin.semantics import LandmarkWindow, SlicedWindow
from muntin.windows.arena import Arena
from muntin.windows.blocks import BlockColumn
from muntin.windows.groups import GroupIndex
from muntin.windows.matrix import LaneMatrix
from muntin.windows.prefix import PrefixColumn
from muntin.windows.ranges import RangeColumn, Work
from muntin.windows.strands import StrandIndex

#: Slices that are not worth merging.
FEWEST_MERGED = 64
#: Cells of a piece of a snapshot.
MOST_CELLS = 1 << 20


@dataclass(frozen=True)
class Folded:
    """States keyed by slice, predicate and group; one key may come several times. `slice` is a position in `starts`, which ascends."""

    starts: Array
    slice: Array
    predicate: Array
    group: Array
    states: Mapping[PartialColumn, State]

    def __len__(self) -> int:
        return len(self.slice)

    @property
    def start(self) -> Array:
        starts: Array = self.starts[self.slice]
        return starts

    def rows(self, chosen: Array) -> Folded:
        states = {column: tuple(lane[chosen] for lane in state) for column, state in self.states.items()}
        return Folded(self.starts, self.slice[chosen], self.predicate[chosen], self.group[chosen], states)


class SliceStore:
    def __init__(self, family: Family, groups: GroupIndex, slicing: Slicing, arena: Arena) -> None:
        self.family = family
        self.arena = arena
        self.slices = SliceManager(slicing=slicing)
        self.starts: Array = np.empty(0, dtype=np.int64)
        self.strands = StrandIndex(groups)
        self.work = Work()
        self.slices_seen = 0
        self._merge_at = FEWEST_MERGED
        self.columns: dict[PartialColumn, RangeColumn] = {}
        self.plans: dict[str, QueryPlan] = {}
        self.predicates: dict[Expression | None, int] = {}
        self._uses: Counter[tuple[Expression | None, PartialColumn]] = Counter()
        self._standing: Counter[PartialColumn] = Counter()

    # -- queries come and go ----------------------------------------------------------------------------------------------------

    def add(self, plan: QueryPlan, predicate: int) -> None:
        """Take a query in; `predicate` is the number of its predicate in the family."""
        where = plan.query.where
        self.plans[plan.query.name] = plan
        self.slices.add(plan.query.sliding)
        self.predicates[where] = predicate
        for column in plan.held:
            self._uses[where, column] += 1
            self._standing[column] += 1
            if column not in self.columns:
                self.columns[column] = self._column(column)

    def remove(self, names: Iterable[str]) -> None:
        """Forget queries, the predicates nobody else has and the columns nobody else stands on."""
        left: set[Expression | None] = set()
        for name in names:
            plan = self.plans.pop(name)
            left.add(plan.query.where)
            self.slices.remove(plan.query.sliding)
            for column in plan.held:
                self._uses[plan.query.where, column] -= 1
                self._standing[column] -= 1
                if not self._standing[column]:
                    del self._standing[column], self.columns[column]
        self._uses += Counter()
        gone = [self.predicates.pop(where) for where in left if not self._uses[where, ROWS]]
        if gone:
            self._keep(np.nonzero(~np.isin(self.strands.predicate, gone))[0])

    @property
    def windows(self) -> set[SlicedWindow]:
        return {plan.query.sliding for plan in self.plans.values()}

    @property
    def news(self) -> list[PartialColumn]:
        """Columns of rows that early results have not told of."""
        return [column for column in self.columns if isinstance(column.partial, News)]

    def waste(self, columns: Sequence[PartialColumn]) -> float:
        """How many cells there would be for each one used, if a predicate with these columns came in."""
        held = len(set(self.columns) | set(columns)) * (len(self.predicates) + 1)
        return held / (len(self._uses) + len(columns))

    def uses(self, where: Expression | None, column: PartialColumn) -> bool:
        """Whether a query with this predicate stands on the column."""
        return self._uses[where, column] > 0

    def _column(self, column: PartialColumn) -> RangeColumn:
        partial, types = column.partial, tuple(arg.type for arg in column.args)
        lanes = tuple(
            LaneMatrix(lane, identity, self.arena) for lane, identity in zip(partial.lanes(*types), partial.identity(), strict=True)
        )
        new: RangeColumn
        if isinstance(partial, Differential):
            new = PrefixColumn(partial, lanes, self.work, self.arena)
        else:
            new = BlockColumn(partial, lanes, self.work, self.arena)
        new.widen(len(self.strands))
        if len(self.starts):
            new.insert_slices(np.zeros(len(self.starts), dtype=np.int64), self.starts)
        return new

    # -- rows come in -----------------------------------------------------------------------------------------------------------

    def absorb(self, folded: Folded) -> None:
        """Combine states into their slices and strands; several of one are combined with each other first."""
        if not len(folded):
            return
        starts = self.slices.slice_starts(folded.starts)
        strands = self.strands.numbers(folded.predicate, folded.group)
        self._make_room(distinct(starts))
        slices = np.searchsorted(self.starts, starts)[folded.slice]
        told = dict.fromkeys(self.news, folded.states[ROWS]) | dict(folded.states)
        states = {column: state for column, state in told.items() if column in self.columns}
        cell = slices * len(self.strands) + strands
        if not all_different(cell - cell.min(), int(cell.max() - cell.min()) + 1):
            order = np.argsort(cell, kind="stable")
            firsts = np.nonzero(np.diff(cell[order], prepend=-1))[0]
            slices, strands = slices[order][firsts], strands[order][firsts]
            states = {column: column.partial.reduce(tuple(lane[order] for lane in state), firsts) for column, state in states.items()}
        for column, state in states.items():
            self.columns[column].absorb(slices, strands, state, self.starts)

    def _make_room(self, starts: Array) -> None:
        new = starts[~np.isin(starts, self.starts, assume_unique=True)]
        for column in self.columns.values():
            column.widen(len(self.strands))
        if len(new):
            positions = np.searchsorted(self.starts, new)
            for column in self.columns.values():
                column.insert_slices(positions, new)
            self.starts = np.insert(self.starts, positions, new)
            self.slices_seen += len(new)

    def drop_before(self, horizon: int, punctuation: int) -> None:
        """Forget slices that start before the horizon: every window they belong to has been closed."""
        count = int(np.searchsorted(self.starts, horizon))
        self.starts = self.starts[count:]
        for column in self.columns.values():
            column.drop_slices(count)
            column.forget(punctuation)
        if count:
            self._drop_idle_strands()

    def merge_before(self, punctuation: int) -> None:
        """Where all windows are landmark windows, closed slices between two landmarks become one: no open window ends between them.

        Done once there are twice as many slices as after the last time, so that each is gone over a bounded number of times.
        """
        if len(self.starts) < self._merge_at:
            return
        held, seen = self.held(), self.slices_seen
        first_of_period = held.starts[np.nonzero(self._begins_period(held.starts))[0]]
        own = first_of_period[np.searchsorted(first_of_period, held.starts, side="right") - 1]
        starts = np.where(held.starts < punctuation, own, held.starts)
        self.starts, self.strands = np.empty(0, dtype=np.int64), StrandIndex(self.strands.groups)
        self.columns = {column: self._column(column) for column in self.columns}
        self.absorb(Folded(starts, held.slice, held.predicate, held.group, held.states))
        self.slices_seen, self._merge_at = seen, max(FEWEST_MERGED, 2 * len(self.starts))

    def _begins_period(self, starts: Array) -> Array:
        """Whether a landmark of some window lies between a slice and the one before it."""
        begins: Array = np.arange(len(starts)) == 0
        for window in self.windows:
            if isinstance(window, LandmarkWindow) and window.period is not None:
                begins[1:] |= np.diff((starts - window.offset) // window.period) != 0
        return begins

    def _drop_idle_strands(self) -> None:
        """Once half the strands have no row left, make the matrices narrower: amortised over the strands that came."""
        if len(self.strands) < 64:
            return
        alive = np.zeros(len(self.strands), dtype=bool)
        for held in self.columns.values():
            if isinstance(held.partial, Count):
                alive |= held.state[0][-1] != held.state[0][0]
        if 2 * int(alive.sum()) < len(alive):
            self._keep(np.nonzero(alive)[0])

    def _keep(self, strands: Array) -> None:
        if len(strands) < len(self.strands):
            self.strands.keep(strands)
            for held in self.columns.values():
                held.keep_strands(strands)

    # -- snapshots --------------------------------------------------------------------------------------------------------------

    def pieces(self) -> Iterator[Folded]:
        """What a snapshot keeps and `absorb` takes back, in pieces of some slices: a copy of all that is held may be too much."""
        step = max(1, MOST_CELLS // max(1, len(self.strands)))
        for first in range(0, len(self.starts), step):
            yield self.held(first, first + step)

    def held(self, first: int = 0, last: int | None = None) -> Folded:
        """Everything in the slices `[first, last)` that a row has reached."""
        starts = self.starts[first:last]
        cells = {column: held.cells(first, last) for column, held in self.columns.items()}
        # Without GROUP BY a slice is kept even if no row in it passed a predicate: EMIT EMPTY begins with the first row of the stream.
        reached = np.full((len(starts), len(self.strands)), not self.family.keys)
        for column, state in cells.items():
            if isinstance(column.partial, Count):
                reached |= state[0] != 0
        slices, strands = np.nonzero(reached)
        states = {column: tuple(lane[slices, strands] for lane in state) for column, state in cells.items()}
        return Folded(starts, slices, self.strands.predicate[strands], self.strands.group[strands], states)
