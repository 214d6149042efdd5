"""Folding: the shards of a batch brought together by predicate. The papers' final aggregation over fragments.

In: `Partials` of one grouping, and a family whose queries it serves. Out: `Folded` states by slice, predicate and group.
Convention: a coarser family is rolled up by leaving key columns out; without cells every predicate has columns of its own and there is
nothing to bring together. Over cells there are three ways, of which the cheapest is taken: sums by a matrix product, runs of cells along
an ordered expression by running states, and anything by a masked reduction for each predicate.
Paper: on-the-fly-sharing-2006, sections 4.2 and 4.3: each shard is aggregated once for every query in its signature.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from muntin.aggregates.base import Array, Partial, State
from muntin.columnar import integers
from muntin.expression.tree import Expression
from muntin.plan.fragments import Truth
from muntin.plan.shared import ROWS, Failures, Grouping, PartialColumn, QueryPlan
from muntin.plan.signatures import CellTruths
from muntin.plan.slices import SliceManager
from muntin.windows.groups import GroupIndex
from muntin.windows.ordered import OrderedShards
from muntin.windows.products import is_safe, product, product_cost
from muntin.windows.shards import Partials, Shards, merged
from muntin.windows.store import Folded

#: Places × predicates folded at once.
CELLS_AT_ONCE = 4_000_000
#: Nanoseconds of a masked reduction: for a predicate, and for a predicate, a shard and a lane.
PREDICATE_NS, MASK_NS = 15_000.0, 2.0


class Fold:
    """How partials of one grouping come to the queries of one family, given by their plans.

    `combined` counts shards, each as often as predicates hold in it.
    """

    def __init__(
        self, grouping: Grouping, plans: Sequence[QueryPlan], groups: GroupIndex, predicates: Mapping[Expression | None, int]
    ) -> None:
        self.grouping = grouping
        self.family = plans[0].family
        self.groups = groups
        self.slices = SliceManager({plan.query.sliding for plan in plans}, grouping.slicing)
        first = 1 if grouping.by_cell else 0
        self._keys = [first + grouping.keys.index(key) for key in self.family.keys]
        self._keys += [first + len(grouping.keys)] * self.family.spread
        self.wheres: tuple[Expression | None, ...] = tuple(dict.fromkeys(plan.query.where for plan in plans))
        self._numbers = np.array([predicates[where] for where in self.wheres], dtype=np.int64)
        self._cells = CellTruths(grouping.axes, self.wheres) if grouping.by_cell else None
        self._users = self._users_of(plans)
        self.combined = 0

    def _users_of(self, plans: Sequence[QueryPlan]) -> dict[PartialColumn, Array]:
        """For each column, the predicates that have a query standing on it."""
        rank = {where: at for at, where in enumerate(self.wheres)}
        together: dict[tuple[PartialColumn, ...], set[int]] = {}
        for plan in plans:
            together.setdefault(plan.columns, set()).add(rank[plan.query.where])
        users: dict[PartialColumn, set[int]] = {}
        for columns, ranks in together.items():
            for column in columns:
                users.setdefault(column, set()).update(ranks)
        return {column: np.array(sorted(found), dtype=np.int64) for column, found in users.items()}

    def shards(self, partials: Partials) -> Shards:
        """Partials by slice and group of the family; cells by number."""
        start = self.slices.slices_of(partials.at)
        group = self.groups.numbers([partials.keys[at] for at in self._keys], len(partials))
        cell = self._cells.numbers(integers(partials.keys[0], null=0)) if self._cells else np.zeros(len(partials), dtype=np.int64)
        return merged(partials, self.grouping, start, group, cell)

    def folded(self, shards: Shards) -> Iterator[Folded]:
        """The states of every predicate, a bounded number of places at once."""
        step = max(1, CELLS_AT_ONCE // len(self.wheres))
        for low in range(0, len(shards.start), step):
            yield self._piece(shards.places(low, low + step))

    def _piece(self, shards: Shards) -> Folded:
        ordered = OrderedShards(shards, self._cells) if self._cells else None
        states = {column: self._column(column, users, shards, ordered) for column, users in self._users.items()}
        starts, at = np.unique(shards.start, return_inverse=True)
        predicates, places = len(self.wheres), len(shards.start)
        if self._cells:
            self.combined += int((self._cells.truths == Truth.TRUE).sum(axis=0)[shards.cell].sum())
        folded = Folded(starts, np.tile(at, predicates), np.repeat(self._numbers, places), np.tile(shards.group, predicates), states)
        return folded.rows(reached(folded)) if self._keys else folded

    def _column(self, column: PartialColumn, users: Array, shards: Shards, ordered: OrderedShards | None) -> State:
        """The states of a column, predicates × places in one row; the identity for predicates that do not use it."""
        lanes = column.partial.lanes(*(arg.type for arg in column.args))
        out = tuple(
            np.full((len(self.wheres), len(shards.start)), identity, dtype=lane.dtype)
            for identity, lane in zip(column.partial.identity(), lanes, strict=True)
        )
        if self._cells is None or ordered is None:
            for user in users:
                self._put(out, user, shards, column, np.arange(len(shards.place)))
        elif isinstance(column.partial, Failures):
            self._fold_failures(out, users, column, shards, self._cells.truths)
        else:
            self._fold_cells(out, users, column, shards, self._cells.truths, ordered)
        return tuple(lane.reshape(-1) for lane in out)

    def _fold_cells(self, out: State, users: Array, column: PartialColumn, shards: Shards, truths: Array, ordered: OrderedShards) -> None:
        source, partial = self.grouping.source(column, None), column.partial
        assert source is not None, "cells tell of failures alone"
        state = shards.states[source]
        by_mask = len(users) * (PREDICATE_NS + MASK_NS * len(state) * len(shards.place))
        by_product = product_cost(partial, len(users), shards, truths.shape[1])
        if ordered.cost(partial, users, min(by_mask, by_product)) < min(by_mask, by_product):
            ordered.fold(out, users, partial, state)
        elif by_product < by_mask and is_safe(state):
            for lane, values in zip(out, product(truths[users] == Truth.TRUE, shards, state), strict=True):
                lane[users] = values
        else:
            for user in users:
                self._put(out, user, shards, column, np.nonzero(truths[user][shards.cell] == Truth.TRUE)[0])

    def _fold_failures(self, out: State, users: Array, column: PartialColumn, shards: Shards, truths: Array) -> None:
        """Rows on which the predicate itself fails, and rows that satisfy it and fail in another expression. Mostly there are none."""
        source_of_rows = self.grouping.source(ROWS, None)
        assert source_of_rows is not None
        for user in users:
            told = [(Truth.FAILED, source_of_rows)] if (truths[user] == Truth.FAILED).any() else []
            source = self.grouping.source(column, self.wheres[user])
            if source is not None and shards.states[source][0].any():
                told.append((Truth.TRUE, source))
            for truth, source in told:
                np.add.at(out[0][user], shards.place, np.where(truths[user][shards.cell] == truth, shards.states[source][0], 0))

    def _put(self, out: State, user: int, shards: Shards, column: PartialColumn, chosen: Array) -> None:
        """Combine the chosen shards place by place."""
        source = self.grouping.source(column, self.wheres[user])
        if source is None or not len(chosen):
            return
        place = shards.place[chosen]
        firsts = np.nonzero(np.diff(place, prepend=-1))[0]
        state = reduced(column.partial, tuple(lane[chosen] for lane in shards.states[source]), firsts)
        for lane, values in zip(out, state, strict=True):
            lane[user, place[firsts]] = values


def reduced(partial: Partial, state: State, firsts: Array) -> State:
    return state if len(firsts) == len(state[0]) else partial.reduce(state, firsts)


def reached(folded: Folded) -> Array:
    """Where a row is told of: it satisfies the predicate, or failed."""
    told = folded.states[ROWS][0] != 0
    for column, state in folded.states.items():
        if isinstance(column.partial, Failures):
            told |= state[0] != 0
    return np.nonzero(told)[0]
