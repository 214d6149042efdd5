"""Strands: what is held side by side for each slice. A strand is the rows of one group that satisfy one predicate.

In: numbers of predicates and groups. Out: numbers of strands, which are the columns of a store's matrices.
Convention: a pair that no row was in has no strand; numbers are given in order of first appearance.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from muntin.aggregates.base import Array
from muntin.plan.numbering import Numbering
from muntin.windows.groups import GroupIndex

_BITS = 32
_MASK = (1 << _BITS) - 1


@dataclass(frozen=True)
class ByPredicate:
    """Strands in order of predicate, then of group; and the predicate of each."""

    strands: Array
    predicates: Array

    def among(self, chosen: Array) -> ByPredicate:
        """Those of which the mask is true."""
        kept = np.nonzero(chosen[self.strands])[0]
        return ByPredicate(self.strands[kept], self.predicates[kept])

    def spans(self, predicates: Array) -> tuple[Array, Array]:
        """Where the strands of each predicate begin, and how many they are."""
        first = np.searchsorted(self.predicates, predicates)
        return first, np.searchsorted(self.predicates, predicates, side="right") - first


class StrandIndex:
    """Numbers of strands, and the strands of each predicate in the order of its groups."""

    def __init__(self, groups: GroupIndex) -> None:
        self.groups = groups
        self._pairs = Numbering()
        self._by_predicate: ByPredicate | None = None
        self._ordered: Array | None = None

    def __len__(self) -> int:
        return len(self._pairs)

    def numbers(self, predicate: Array, group: Array) -> Array:
        before, pairs = len(self), (group << _BITS) | predicate
        # With one predicate a strand has the number of its group, as long as none is forgotten.
        likely: Array = np.minimum(group, before - 1)
        if before and (self._pairs.codes[likely] == pairs).all():
            return likely
        numbers = self._pairs.numbers(pairs)
        if len(self) != before:
            self._by_predicate = None
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

    def counts(self, predicates: Array, among: Array | None = None) -> Array:
        """How many strands each predicate has; of those `among` them, if a mask is given."""
        return self._chosen(among).spans(predicates)[1]

    def of(self, predicates: Array, among: Array | None = None) -> Array:
        """The strands of each predicate in turn, sorted by the values of their groups."""
        held = self._chosen(among)
        first, count = held.spans(predicates)
        before = np.cumsum(count) - count
        strands: Array = held.strands[np.repeat(first - before, count) + np.arange(count.sum())]
        return strands

    def _chosen(self, among: Array | None) -> ByPredicate:
        return self._sorted() if among is None else self._sorted().among(among)

    def _sorted(self) -> ByPredicate:
        order = self.groups.order()
        if self._by_predicate is None or order is not self._ordered:
            rank = np.empty(len(order), dtype=np.int64)
            rank[order] = np.arange(len(order))
            predicates = self.predicate
            strands = np.lexsort((rank[self.group], predicates))
            self._by_predicate = ByPredicate(strands, predicates[strands])
            self._ordered = order
        return self._by_predicate

    def keep(self, strands: Array) -> None:
        """Only these strands stay, renumbered in their order."""
        self._pairs = Numbering(self._pairs.codes[strands])
        self._by_predicate = None

    def renumber_groups(self, numbers: Array) -> None:
        """Group g is now called `numbers[g]`."""
        self._pairs = Numbering((numbers[self.group] << _BITS) | self.predicate)
        self._by_predicate = None
