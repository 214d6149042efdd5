"""Rows of many series in order: sorted by series and tick, duplicates combined, running combines within segments.

In: arrays of one length. Out: arrays. Convention: a segment is a run of neighbours, given by where each begins (`firsts`, ascending,
the first of them 0). Rows that come almost in order are put in order for little more than it takes to see that they are not.
"""

from __future__ import annotations

import numpy as np

from muntin.aggregates.base import Array, Partial, State

#: Segments of this length and longer are gone over one by one; shorter ones all at once, in log2 steps.
LONG = 256
#: Above this share of rows out of order, all are sorted.
MOST_BEHIND = 0.25


def ascending(keys: Array) -> Array | None:
    """The order that sorts the keys, equal ones as they came; None if they are sorted."""
    ahead = keys >= np.maximum.accumulate(keys) if len(keys) else np.ones(0, dtype=bool)
    behind = np.nonzero(~ahead)[0]
    if not len(behind):
        return None
    if len(behind) > MOST_BEHIND * len(keys):
        return np.argsort(keys, kind="stable")
    behind = behind[np.argsort(keys[behind], kind="stable")]
    in_order = np.nonzero(ahead)[0]
    # Equal keys: the one behind came later, since it is below the greatest before it and the one in order is not.
    slots = np.searchsorted(keys[in_order], keys[behind], side="right") + np.arange(len(behind))
    order = np.empty(len(keys), dtype=np.int64)
    free = np.ones(len(keys), dtype=bool)
    free[slots] = False
    order[slots], order[free] = behind, in_order
    return order


def firsts_of(*columns: Array) -> Array:
    """Where a row differs from the one before it in any column."""
    differs = np.zeros(max(len(columns[0]) - 1, 0), dtype=bool)
    for column in columns:
        differs |= column[1:] != column[:-1]
    begins = np.nonzero(differs)[0] + 1
    return np.concatenate([np.zeros(min(len(columns[0]), 1), dtype=np.int64), begins])


def running(partial: Partial, state: State, firsts: Array) -> State:
    """Each row combined with all before it in its segment."""
    if len(firsts) <= 1:
        return partial.accumulate(state)
    lengths = np.diff(np.append(firsts, len(state[0])))
    lanes = tuple(lane.copy() for lane in state)
    for first, length in zip(firsts[lengths >= LONG].tolist(), lengths[lengths >= LONG].tolist(), strict=True):
        segment = partial.accumulate(tuple(lane[first : first + length] for lane in lanes))
        _put(lanes, slice(first, first + length), segment)
    short = lengths < LONG
    if short.any():
        _double(partial, lanes, firsts, lengths, short)
    return lanes


def _double(partial: Partial, lanes: State, firsts: Array, lengths: Array, short: Array) -> None:
    """Short segments: after a step of `stride` each row holds `2 * stride` rows up to itself."""
    rank = np.arange(len(lanes[0])) - np.repeat(firsts, lengths)
    at = np.nonzero(np.repeat(short, lengths) & (rank > 0))[0]
    stride = 1
    while len(at):
        combined = partial.combine(tuple(lane[at - stride] for lane in lanes), tuple(lane[at] for lane in lanes))
        _put(lanes, at, combined)
        stride *= 2
        at = at[rank[at] >= stride]


def running_backwards(partial: Partial, state: State, firsts: Array) -> State:
    """Each row combined with all after it in its segment."""
    count = len(state[0])
    ends = np.append(firsts[1:], count)[::-1] if len(firsts) else firsts
    backwards = running(partial, tuple(lane[::-1] for lane in state), count - ends)
    return tuple(np.ascontiguousarray(lane[::-1]) for lane in backwards)


def _put(lanes: State, where: Array | slice, values: State) -> None:
    for lane, new in zip(lanes, values, strict=True):
        lane[where] = new


class Places:
    """A series and a tick as one ascending number, for ticks between two bounds; those below the lower one count as it.

    Equal bounds and about as many series give equal places, so that numbers once made can be kept. `ticks` are all there are: they are
    looked at only where series × ticks do not fit into 64 bits.
    """

    def __init__(self, series: int, low: int, high: int, *ticks: Array) -> None:
        shift = 62 - max(series - 1, 0).bit_length()
        self._low = low
        self._known = np.unique(np.concatenate(ticks)) if series > 1 and high - low >= 1 << shift else None
        self.meaning: tuple[int, ...] | None = (0, 0) if series <= 1 else (low, shift)  #: None: of these ticks alone
        if self._known is not None:
            self.meaning = None

    def of(self, series: Array, ticks: Array) -> Array:
        if self._known is not None:
            return series * (len(self._known) + 1) + np.searchsorted(self._known, ticks)
        assert self.meaning is not None
        if not self.meaning[1]:
            return ticks
        places: Array = (series << self.meaning[1]) + np.maximum(ticks - self._low, 0)
        return places
