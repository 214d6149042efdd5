"""Row → slice inside Spark: a long Column that groups the rows of one slice.

In: the windowing attribute as microseconds, the slice manager of a grouping. Out: for each row an instant inside its slice.
Three ways, all exact: the tick (every edge is a multiple of it; assembly merges the ticks of a slice), the latest edge by formula
(a few progressions), or a ring of slice starts indexed by tick (many progressions whose ticks are much finer than the slices).
Convention: nothing that moves from batch to batch is a literal of primitive type, so the generated code stays the same.
"""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass
from enum import Enum
from functools import cached_property

import numpy as np
from pyspark.sql import Column
from pyspark.sql import functions as F

from muntin.aggregates.base import Array
from muntin.plan.slices import SliceManager
from muntin.spark.arrays import constant_array
from muntin.timeline import SECOND, Interval, Progression

#: Up to this many progressions, computing the latest edge costs less than looking it up.
MOST_BY_FORMULA = 16
#: Edges per tick from which grouping by tick alone is cheaper than finding the slice; and from which it is done while queries come and go,
#: since a tick is the same code whatever the edges are.
DENSE, DENSE_FOR_NOW = 0.5, 0.25
#: Without groups, ticks of this length are so few that merging them costs less than finding the slice of every row.
COARSE = SECOND // 10
#: Ticks a ring holds at the most, and the shortest ring: its length is a power of two, so that it seldom changes the code.
RING_TICKS, SMALLEST_RING = 200_000, 1024


class KeyKind(Enum):
    TICK = "tick"
    FORMULA = "formula"
    RING = "ring"


def key_kind(slices: SliceManager, *, grouped: bool, dense: float = DENSE) -> KeyKind:
    tick = slices.tick.period
    if slices.edges_per(tick) >= dense or (tick >= COARSE and not grouped):
        return KeyKind.TICK
    return KeyKind.FORMULA if len(slices.progressions) <= MOST_BY_FORMULA else KeyKind.RING


@dataclass(frozen=True)
class SliceKey:
    """How rows of a grouping find their slice. `held` are ticks that rows were grouped by in the plan before, if there was one."""

    slices: SliceManager
    grouped: bool
    held: Set[Progression] | None = None

    @cached_property
    def kind(self) -> KeyKind:
        dense = DENSE if self.held is None else 0.0 if self.slices.tick in self.held else DENSE_FOR_NOW
        return key_kind(self.slices, grouped=self.grouped, dense=dense)

    @property
    def edges(self) -> tuple[KeyKind, tuple[Progression, ...]]:
        """What two keys have in common that give rows the same instants."""
        return self.kind, (self.slices.tick,) if self.kind is KeyKind.TICK else self.slices.progressions

    def column(self, micros: Column, span: Interval | None) -> Column:
        """An instant inside the row's slice; `span` is where rows are expected: outside it a ring leaves them their own tick."""
        kind = self.kind
        if kind is KeyKind.FORMULA:
            edges = [floor_to(micros, one.period, one.phase) for one in self.slices.progressions]
            return edges[0] if len(edges) == 1 else F.greatest(*edges)
        tick = self.slices.tick
        at = floor_to(micros, tick.period, tick.phase)
        if kind is KeyKind.TICK or span is None:
            return at
        return self._from_ring(at, span)

    def _from_ring(self, at: Column, span: Interval) -> Column:
        """The ring holds, for a tick at its place, the tick itself and the start of its slice; a row of another tick keeps its own."""
        tick = self.slices.tick
        first = tick.floor(span.start)
        ticks = np.arange(first, min(span.end, first + RING_TICKS * tick.period), tick.period, dtype=np.int64)
        length = max(SMALLEST_RING, 1 << len(ticks).bit_length())
        place = (ticks - tick.phase) // tick.period % length
        held, starts = np.full(length, np.iinfo(np.int64).min), np.zeros(length, dtype=np.int64)
        held[place], starts[place] = ticks, self.slices.slice_starts(ticks)
        index = F.pmod(((at - F.lit(tick.phase)) / F.lit(tick.period)).cast("bigint"), F.lit(length)).cast("int")
        return F.when(F.get(_longs(held), index) == at, F.get(_longs(starts), index)).otherwise(at)


def floor_to(micros: Column, period: int, phase: int) -> Column:
    """The latest member of a progression at or before the instant; pmod, since division truncates towards zero."""
    shifted = micros - F.lit(phase) if phase else micros
    return micros - F.pmod(shifted, F.lit(period))


def _longs(values: Array) -> Column:
    return constant_array(values.tolist(), "bigint")


def moving(value: int, micros: Column) -> Column:
    """A number that changes from batch to batch, kept out of the generated code: an element of an array, indexed by the row's sign."""
    number = F.lit(value).cast("bigint")
    return F.get(F.array(number, number), F.shiftrightunsigned(micros, 63).cast("int"))
