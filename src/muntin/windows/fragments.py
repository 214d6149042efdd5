"""Fragments by number: each distinct pair of cell and group is a column of the store's matrices.

In: cells and group columns of partials; the truth of predicates in cells. Out: numbers of fragments, and for a predicate the `Fold`
that brings the fragments in its signature together, group by group. Paper: on-the-fly-sharing-2006, section 4.3.
Convention: without axes there is one cell, a fragment is a group, and nothing is folded.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from muntin.aggregates.base import Array, Partial, State
from muntin.columnar import arrow_type, integers
from muntin.plan.fragments import Predicate, Signatures, Truth
from muntin.plan.shared import Grouping
from muntin.windows.groups import GroupIndex

_NOTHING = np.empty(0, dtype=np.int64)


class Numbering:
    """Dense numbers for int64 codes, in order of first appearance; looked up by binary search, all rows at once."""

    def __init__(self, codes: Array = _NOTHING) -> None:
        self.codes = codes
        self._sort()

    def _sort(self) -> None:
        self._number = np.argsort(self.codes, kind="stable")
        self._sorted = self.codes[self._number]

    def numbers(self, codes: Array) -> Array:
        at = np.searchsorted(self._sorted, codes)
        unknown = (at == len(self._sorted)) | (self._sorted[np.minimum(at, len(self._sorted) - 1)] != codes) if len(self._sorted) else None
        if unknown is None or unknown.any():
            new = codes if unknown is None else codes[unknown]
            self.codes = np.concatenate([self.codes, np.unique(new)])
            self._sort()
            at = np.searchsorted(self._sorted, codes)
        return self._number[at]


@dataclass(frozen=True)
class Fold:
    """The fragments of one truth, sorted by group; run i of them, from `firsts[i]` on, belongs to `groups[i]`."""

    fragments: Array
    firsts: Array
    groups: Array

    def of(self, partial: Partial, state: State, width: int) -> State:
        """States of windows × fragments as states of windows × groups."""
        rows = len(state[0])
        out = tuple(np.full((rows, width), one, dtype=lane.dtype) for one, lane in zip(partial.identity(), state, strict=True))
        if len(self.fragments):
            chosen = tuple(np.ascontiguousarray(lane[:, self.fragments].T) for lane in state)
            for lane, values in zip(out, partial.reduce(chosen, self.firsts), strict=True):
                lane[:, self.groups] = values.T
        return out


class FragmentIndex:
    """Numbers of fragments, and which of them a predicate holds in."""

    def __init__(self, grouping: Grouping) -> None:
        self.axes = grouping.axes
        self.groups = GroupIndex(tuple(arrow_type(key.type) for key in grouping.keys))
        self._cells = Numbering()
        self._pairs = Numbering()
        self._signatures = Signatures(self.axes)
        self._folds: dict[tuple[Predicate | None, Truth], Fold] = {}

    def __len__(self) -> int:
        return len(self._pairs.codes) if self.axes else len(self.groups)

    def numbers(self, keys: Sequence[pa.Array], rows: int) -> Array:
        """The fragment of each row; `keys` are the cell, where there are axes, and the group columns."""
        if not self.axes:
            return self.groups.numbers(keys, rows)
        groups = self.groups.numbers(keys[1:], rows)
        before = len(self)
        numbers = self._pairs.numbers((groups << 32) | self._cells.numbers(integers(keys[0], null=0)))
        if len(self) != before:
            self._folds.clear()
        return numbers

    @property
    def group(self) -> Array:
        """The group of each fragment."""
        return self._pairs.codes >> 32 if self.axes else np.arange(len(self.groups))

    @property
    def cell(self) -> Array:
        """The cell of each fragment."""
        cells: Array = self._cells.codes[self._pairs.codes & 0xFFFFFFFF]
        return cells

    def key_columns(self) -> list[pa.Array]:
        """The keys that `numbers` takes, one value per fragment."""
        if not self.axes:
            return self.groups.columns()
        group = pa.array(self.group)
        return [pa.array(self.cell), *(column.take(group) for column in self.groups.columns())]

    def truths(self, predicate: Predicate | None, cells: Array) -> Array:
        """The truth of a predicate in each of the cells."""
        if predicate is None:
            return np.full(len(cells), Truth.TRUE, dtype=np.int8)
        rest, positions = cells, {}
        for axis in self.axes:
            rest, positions[axis.expression] = np.divmod(rest, axis.size)
        return self._signatures.truths(predicate, positions, len(cells))

    def fold(self, predicate: Predicate | None, truth: Truth = Truth.TRUE) -> Fold:
        key = predicate, truth
        if key not in self._folds:
            chosen = np.nonzero(self.truths(predicate, self.cell) == truth)[0]
            chosen = chosen[np.argsort(self.group[chosen], kind="stable")]
            groups = self.group[chosen]
            firsts = np.nonzero(np.diff(groups, prepend=-1))[0]
            self._folds[key] = Fold(chosen, firsts, groups[firsts])
        return self._folds[key]

    def keep(self, fragments: Array) -> None:
        """Only these fragments stay, renumbered in their order; groups without one are forgotten."""
        if not self.axes:
            self.groups.keep(fragments)
            return
        groups, cells = self.group[fragments], self.cell[fragments]
        kept, renumbered = np.unique(groups, return_inverse=True)
        self.groups.keep(kept)
        self._cells = Numbering(np.unique(cells))
        self._pairs = Numbering((renumbered << 32) | self._cells.numbers(cells))
        self._folds.clear()
