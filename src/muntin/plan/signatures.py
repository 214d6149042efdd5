"""Signatures: which predicates hold in which cells.

In: axes, predicates, and cells as Spark codes them. Out: a matrix of truths, predicates × distinct cells; which cells are one fragment.
Convention: cells are numbered in order of first appearance and a predicate is evaluated once for each, whichever batch it comes in.
Paper: on-the-fly-sharing-2006, section 4.1, where a signature is a bitmap made row by row.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import lru_cache

import numpy as np

from muntin.aggregates.base import Array
from muntin.expression.tree import Expression
from muntin.plan.cellruns import CellRuns, cell_runs
from muntin.plan.fragments import Axis, Compound, Connective, Constant, Predicate, Test, Truth, decomposed
from muntin.plan.numbering import Numbering


def _joined(left: Truth, right: Truth, decisive: Truth) -> Truth:
    """AND or OR of two truths: the left side decides alone where it can, and then the right side cannot fail."""
    if left is decisive or left is Truth.FAILED:
        return left
    if right in (decisive, Truth.FAILED):
        return right
    return Truth.NULL if Truth.NULL in (left, right) else left


def _table(decisive: Truth) -> Array:
    return np.array([_joined(left, right, decisive) for left in Truth for right in Truth], dtype=np.int8)


_TABLES = {Connective.AND: _table(Truth.FALSE), Connective.OR: _table(Truth.TRUE)}
_NOT = np.array([Truth.TRUE, Truth.FALSE, Truth.NULL, Truth.FAILED], dtype=np.int8)


class Signatures:
    """The truth of predicates in cells that are given as positions on the axes: one array per axis."""

    def __init__(self, axes: Sequence[Axis]) -> None:
        self.axes = {axis.expression: axis for axis in axes}
        self._ranks = {axis.expression: {cut: rank for rank, cut in enumerate(axis.cuts)} for axis in axes}

    def truths(self, predicate: Predicate, cells: Mapping[Expression, Array], count: int) -> Array:
        """The truth of a predicate in each of `count` cells, by SQL's three values and Spark's order of evaluation."""
        match predicate:
            case Constant(truth=truth):
                return np.full(count, truth, dtype=np.int8)
            case Test():
                return self._along_axis(predicate)[cells[predicate.expression]]
            case Compound(connective=Connective.NOT, parts=(part,)):
                return _NOT[self.truths(part, cells, count)]
            case Compound(connective=connective, parts=(left, right)):
                both = self.truths(left, cells, count) * np.int8(len(Truth)) + self.truths(right, cells, count)
                return _TABLES[connective][both]
        raise AssertionError(predicate)

    def _along_axis(self, test: Test) -> Array:
        """The truth of a test at every position of its axis."""
        scale, ranks = self.axes[test.expression].scale, self._ranks[test.expression]
        truth = np.zeros(scale.size, dtype=np.int8)
        for stretch in test.stretches:
            low = 0 if stretch.low is None else ranks[stretch.low] + 1
            high = scale.last if stretch.high is None else ranks[stretch.high]
            truth[low : high + 1] = Truth.TRUE
        truth[scale.null] = test.null
        truth[scale.failed] = Truth.FAILED
        return truth


#: Cells that are held against each other, and cells × predicates.
MOST_CELLS, MOST_TRUTHS = 1 << 16, 1 << 25


@lru_cache(maxsize=16)
def fragments(axes: tuple[Axis, ...], wheres: tuple[Expression | None, ...]) -> Array | None:
    """For each cell, the least one in which the same predicates hold and the same fail; None if there are too many cells.

    Only cells up to the last cut of the last axis: those after them stand for themselves. Kept for the next run.
    """
    count = math.prod(axis.scale.size for axis in axes[:-1]) * (len(axes[-1].cuts) + 1)
    if count > MOST_CELLS or count * len(wheres) > MOST_TRUTHS:
        return None
    cells = CellTruths(axes, wheres)
    numbers = cells.numbers(np.arange(count))
    told = np.concatenate([cells.truths == Truth.TRUE, cells.truths == Truth.FAILED])[:, numbers]
    signatures = np.ascontiguousarray(np.packbits(told, axis=0).T)
    _, first, which = np.unique(signatures.view(f"V{signatures.shape[1]}").ravel(), return_index=True, return_inverse=True)
    found: Array = first[which]
    return found


class CellTruths:
    """Truths of some predicates in every cell met so far; None is the predicate that always holds."""

    def __init__(self, axes: Sequence[Axis], wheres: Sequence[Expression | None]) -> None:
        self._axes = axes
        self._signatures = Signatures(axes)
        self._predicates = [Constant(Truth.TRUE) if where is None else decomposed(where) for where in wheres]
        self._cells = Numbering()
        self._truths = np.empty((len(wheres), 0), dtype=np.int8)
        self._runs: CellRuns | None = None

    def numbers(self, cells: Array) -> Array:
        """The numbers of cells; new ones are given the next."""
        numbers = self._cells.numbers(cells)
        known = self._truths.shape[1]
        if len(self._cells) > known:
            new = self._cells.codes[known:]
            rest, positions = new, {}
            for axis in self._axes:
                rest, positions[axis.expression] = np.divmod(rest, axis.scale.size)
            more = [self._signatures.truths(predicate, positions, len(new)) for predicate in self._predicates]
            self._truths = np.concatenate([self._truths, np.array(more, dtype=np.int8).reshape(len(more), len(new))], axis=1)
            self._runs = None
        return numbers

    @property
    def truths(self) -> Array:
        """Predicates × cells."""
        return self._truths

    @property
    def runs(self) -> CellRuns:
        """Where the predicates hold, along the last axis. Kept until a new cell is met."""
        if self._runs is None:
            others = math.prod(axis.scale.size for axis in self._axes[:-1])
            self._runs = cell_runs(self._cells.codes, others, self._truths == Truth.TRUE)
        return self._runs
