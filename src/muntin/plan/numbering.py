"""Dense numbers for sparse codes.

In: int64 codes. Out: numbers from 0 on, in order of first appearance. Convention: looked up by binary search, all rows at once; new codes
are merged into the sorted ones, so that they cost a copy and not a sort.
"""

from __future__ import annotations

import numpy as np

from muntin.aggregates.base import Array

#: A table is made for values that are below so many times their number; others are sorted.
SPARSE = 8
#: From so many on, codes are looked up in order: each look then goes where the one before it went.
MANY = 1 << 14
_NOTHING = np.empty(0, dtype=np.int64)


def distinct(values: Array) -> Array:
    """The distinct values, ascending. NumPy's own looks them up in a hash table, which takes up to twenty times as long."""
    ordered = np.sort(values)
    return ordered[np.concatenate([[True], ordered[1:] != ordered[:-1]])] if len(ordered) else ordered


def all_different(values: Array, bound: int) -> bool:
    """Whether no value comes twice; they are from 0 on and below `bound`."""
    if bound > SPARSE * len(values):
        return len(distinct(values)) == len(values)
    return len(values) == 0 or int(np.bincount(values).max()) == 1


def ranked(values: Array, bound: int) -> tuple[Array, Array]:
    """The distinct values, ascending, and where each one is among them; they are from 0 on and below `bound`."""
    if bound > SPARSE * len(values):
        return np.unique(values, return_inverse=True)
    there = np.zeros(bound, dtype=bool)
    there[values] = True
    return np.nonzero(there)[0], (np.cumsum(there) - 1)[values]


def is_dense(values: Array) -> bool:
    """Whether a table of all numbers up to the largest value is not much larger than the values are many."""
    return bool(values.min() >= 0 and values.max() <= SPARSE * len(values))


class Numbering:
    """`codes[n]` is the code with number n."""

    def __init__(self, codes: Array = _NOTHING) -> None:
        self.codes = codes
        self._number = np.argsort(codes, kind="stable")
        self._sorted = codes[self._number]

    def __len__(self) -> int:
        return len(self.codes)

    def known(self, codes: Array) -> tuple[Array, Array]:
        """The number of each code, and whether it has one."""
        if not len(self):
            return np.zeros(len(codes), dtype=np.int64), np.zeros(len(codes), dtype=bool)
        if len(codes) >= MANY and is_dense(codes):
            return self._tabled(codes)
        at = np.minimum(self._places(codes), len(self) - 1)
        return self._number[at], self._sorted[at] == codes

    def _tabled(self, codes: Array) -> tuple[Array, Array]:
        """The same, by a table of the codes up to the largest one asked for."""
        table = np.full(int(codes.max()) + 1, -1, dtype=np.int64)
        first, last = np.searchsorted(self._sorted, [0, len(table)])
        table[self._sorted[first:last]] = self._number[first:last]
        found = table[codes]
        return np.maximum(found, 0), found >= 0

    def _places(self, codes: Array) -> Array:
        if min(len(codes), len(self)) < MANY:
            return np.searchsorted(self._sorted, codes)
        order, places = np.argsort(codes), np.empty(len(codes), dtype=np.int64)
        places[order] = np.searchsorted(self._sorted, codes[order])
        return places

    def numbers(self, codes: Array) -> Array:
        """The number of each code; an unseen one gets the next."""
        found, known = self.known(codes)
        if known.all():
            return found
        new = codes[~known]
        self._add(ranked(new, int(new.max()) + 1)[0] if is_dense(new) else distinct(new))
        return self.known(codes)[0]

    def _add(self, new: Array) -> None:
        """Take in codes that ascend and have no number yet."""
        at = np.searchsorted(self._sorted, new)
        self._number = np.insert(self._number, at, np.arange(len(self), len(self) + len(new)))
        self._sorted = np.insert(self._sorted, at, new)
        self.codes = np.concatenate([self.codes, new])
