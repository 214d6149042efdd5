"""Answers recomputed from the rows: count, sum and max of extents, the obvious way.

In: volumes in order of the windowing attribute, and where extents begin and end in them. Out: how many windows were compared, or
`WrongAnswer`. Convention: counts and sums of all windows; the maximum of some of them, spread evenly, since that one is gone over row by
row.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from benchmarks.answers import differing
from muntin.aggregates.base import Array

#: Extents whose rows are gone over one by one.
GONE_OVER = 500


def check_extents(name: str, found: Mapping[str, Array], volumes: Array, low: Array, high: Array) -> int:
    """The windows of a query, in order, against the rows `[low, high)` of each."""
    if len(found["n"]) != len(low):
        raise differing(name, f"{len(found['n']):,} windows, expected {len(low):,}")
    upto = np.concatenate([[0], np.cumsum(volumes)])
    _check(name, "n", found["n"], high - low)
    _check(name, "v", found["v"], upto[high] - upto[low])
    some = np.unique(np.linspace(0, len(low) - 1, min(GONE_OVER, len(low))).astype(int))
    _check(name, "top", found["top"][some], np.array([volumes[low[at] : high[at]].max() for at in some]))
    return len(low)


def _check(name: str, column: str, ours: Array, truth: Array) -> None:
    wrong = np.nonzero(ours != truth)[0]
    if len(wrong):
        raise differing(name, f"{len(wrong)} values of {column}, first {ours[wrong[0]]}, expected {truth[wrong[0]]}")
