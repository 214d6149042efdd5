"""What a batch's partials say about the load, for the next choice of a plan.

In: a plan, its partials, how many rows there were. Out: a `Load`. Convention: a grouping over several axes also tells how many cells
there are on each of them, and on those that each of its queries touches, which is what keeping them apart would cost.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from muntin.aggregates.base import Array
from muntin.columnar import integers
from muntin.expression.tree import Expression
from muntin.plan.divide import Division, Load
from muntin.plan.family import Family
from muntin.plan.load import Axes
from muntin.plan.numbering import distinct
from muntin.plan.shared import Grouping, SharedPlan
from muntin.windows.groups import codes_of
from muntin.windows.shards import Partials

#: Rows that are too few to learn from.
FEW_ROWS = 1_000


def observed(
    plan: SharedPlan, partials: Sequence[Partials], rows: int, elsewhere: Mapping[int, tuple[int, int]] | None = None
) -> Load | None:
    """The load of a batch; None if there is too little of it. Of groupings that are `elsewhere`, shards and groups were counted there."""
    if rows < FEW_ROWS:
        return None
    groups: dict[Family, int] = {}
    cells: dict[Axes, int] = {}
    shards: dict[tuple[Family, Axes], int] = {}
    slices = 1
    for at, (grouping, arrived) in enumerate(zip(plan.groupings, partials, strict=True)):
        if grouping.by_tuple or grouping.family.over.pattr:  # ticks, or each partition's own slices, say nothing about slices of time
            continue
        slices = max(slices, len(distinct(arrived.at)))
        axes = frozenset(axis.expression for axis in grouping.axes)
        family = grouping.family.in_one
        if at in (elsewhere or {}):
            shards[family, axes], groups[family] = (elsewhere or {})[at]
            continue
        shards[family, axes] = len(arrived)
        if grouping.keys and len(arrived):
            groups[family] = int(codes_of(arrived.keys[1 if grouping.by_cell else 0 :]).max()) + 1
        cells.update(cells_of(grouping, arrived))
    return Load(rows, slices, groups, cells, shards)


def cells_of(grouping: Grouping, arrived: Partials) -> Iterator[tuple[Axes, int]]:
    """How many cells occurred, on all axes and on those that some query touches."""
    if not grouping.axes or not len(arrived):
        return
    code = distinct(integers(arrived.keys[0], null=0))
    yield frozenset(axis.expression for axis in grouping.axes), len(code)
    positions: dict[Expression, Array] = {}
    for axis in grouping.axes:
        code, positions[axis.expression] = np.divmod(code, axis.scale.size)
    known = {axis.expression: axis for axis in grouping.axes}
    touched = {frozenset(axis.expression for axis in Division((query,), by_cell=True).axes(known)) for query in grouping.queries}
    touched |= {frozenset({expression}) for expression in known} | {frozenset(known) - {expression} for expression in known}
    for some in touched - {frozenset(), frozenset(known)}:
        together: Array = np.zeros(len(code), dtype=np.int64)
        for expression in some:
            together = together * known[expression].scale.size + positions[expression]
        yield some, len(distinct(together))
