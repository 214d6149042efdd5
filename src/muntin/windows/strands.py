"""Strands: what is held side by side for each slice. A strand is the rows of one group that satisfy one predicate.

In: numbers of predicates and groups. Out: numbers of strands, which are the columns of a store's matrices.
Convention: a pair that no row was in has no strand; numbers are given in order of first appearance.
"""

from __future__ import annotations

import numpy as np

from muntin.aggregates.base import Array
from muntin.plan.numbering import Numbering
from muntin.windows.groups import GroupIndex

_BITS = 32
_MASK = (1 << _BITS) - 1


class StrandIndex:
    """Numbers of strands, and the strands of each predicate in the order of its groups."""

    def __init__(self, groups: GroupIndex) -> None:
        self.groups = groups
        self._pairs = Numbering()
        self._of: dict[int, Array] = {}
        self._ordered: Array | None = None

    def __len__(self) -> int:
        return len(self._pairs)

    def numbers(self, predicate: Array, group: Array) -> Array:
        before = len(self)
        numbers = self._pairs.numbers((group << _BITS) | predicate)
        if len(self) != before:
            self._of.clear()
        return numbers

    @property
    def group(self) -> Array:
        """The group of each strand."""
        groups: Array = self._pairs.codes >> _BITS
        return groups

    @property
    def predicate(self) -> Array:
        """The predicate of each strand."""
        predicates: Array = self._pairs.codes & _MASK
        return predicates

    def of(self, predicate: int) -> Array:
        """The strands of a predicate, sorted by the values of their groups."""
        order = self.groups.order()
        if order is not self._ordered:
            self._of.clear()
            self._ordered = order
        if not self._of:
            self._sort(order)
        return self._of.get(predicate, np.empty(0, dtype=np.int64))

    def _sort(self, order: Array) -> None:
        rank = np.empty(len(order), dtype=np.int64)
        rank[order] = np.arange(len(order))
        predicates = self.predicate
        strands = np.lexsort((rank[self.group], predicates))
        found, firsts = np.unique(predicates[strands], return_index=True)
        self._of = dict(zip(found.tolist(), np.split(strands, firsts[1:]), strict=True)) if len(found) else {}

    def keep(self, strands: Array) -> None:
        """Only these strands stay, renumbered in their order."""
        self._pairs = Numbering(self._pairs.codes[strands])
        self._of.clear()

    def renumber_groups(self, numbers: Array) -> None:
        """Group g is now called `numbers[g]`."""
        self._pairs = Numbering((numbers[self.group] << _BITS) | self.predicate)
        self._of.clear()
