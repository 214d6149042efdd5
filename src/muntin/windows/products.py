"""Folding sums by a matrix product: predicates × cells times cells × places.

In: which predicates hold in which cells, and shards. Out: sums, predicates × places. Convention: exact where the partial is exact:
integers go through doubles only while no sum can leave 2^53; infinities and NaN never meet a factor of zero.
"""

from __future__ import annotations

import math

import numpy as np

from muntin.aggregates.base import Array, Partial, State
from muntin.aggregates.sums import Additive
from muntin.plan.numbering import ranked
from muntin.windows.shards import Shards

#: Cells × places of the dense matrix per shard: beyond it, going over the shards of each predicate costs less.
SPARSEST = 20
#: Integers below are exact as doubles.
EXACT = 2.0**53
#: Nanoseconds for a predicate, a cell and a place.
PRODUCT_NS = 0.1


def product_cost(partial: Partial, predicates: int, shards: Shards, cells: int) -> float:
    """Nanoseconds; infinite if the sums cannot be had by a product, or a dense matrix of cells × places is mostly empty."""
    if not isinstance(partial, Additive) or cells * len(shards.start) > SPARSEST * len(shards.place):
        return math.inf
    return PRODUCT_NS * predicates * cells * len(shards.start) * len(partial.identity())


def is_safe(state: State) -> bool:
    """Whether a product is exact where the partial is."""
    return all(map(_is_safe, state))


def _is_safe(lane: Array) -> bool:
    if lane.dtype.kind == "i":
        return float(np.abs(lane.astype(np.float64)).sum()) < EXACT
    return bool(np.isfinite(lane).all())


def product(holds: Array, shards: Shards, state: State) -> State:
    """The sums of each lane over the cells where each predicate holds."""
    cells, number = ranked(shards.cell, holds.shape[1])
    weights = holds[:, cells].astype(np.float64)
    out = []
    for lane in state:
        dense = np.zeros((len(cells), len(shards.start)))
        dense[number, shards.place] = lane
        sums = weights @ dense
        out.append(np.rint(sums).astype(lane.dtype) if lane.dtype.kind == "i" else sums)
    return tuple(out)
