"""Slide-by-tuple windows: RANGE over one attribute, and an end at every tuple, every n-th to arrive, or every n-th in order.

In: a `TupleSlide`, and the ticks of RATTR in order of arrival. Out: window-ids, which are ticks of RATTR, and extents.
Paper: window-id-2005, sections 3.2, 3.3 and 6.1.3 (Q3, Q5). Convention: extents are `(w - RANGE, w]`, which over ticks is the
half-open `[w - RANGE + 1, w + 1)`. Row numbers and ranks count from 0, so the n-th tuple is the one numbered n - 1; the paper's
`mod(row-num, SLIDE) = 0` counts from 1. Tuples of equal RATTR share one window, so the order of their ranks does not matter.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from muntin.semantics.attribute import Attribute
from muntin.semantics.measure import ROWS, TIME, Measure, check_lengths
from muntin.semantics.sliding import WindowIds, partition_text
from muntin.timeline import Interval


class SlideOrder(Enum):
    """What SLIDE counts tuples by."""

    ARRIVAL = "row_num"
    RANK = "rank"  # over RATTR


@dataclass(frozen=True)
class TupleSlide:
    """RANGE in ticks of RATTR, SLIDE in tuples. Each value of the columns `pattr` has windows of its own."""

    range: int
    slide: int = 1
    rattr: str = "ts"
    order: SlideOrder = SlideOrder.ARRIVAL
    measure: Measure = TIME
    pattr: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        check_lengths(self.range, self.slide, measured=self.measure, slid=ROWS)

    @property
    def wattr(self) -> str:
        """The attribute that punctuations are about."""
        return self.rattr

    @property
    def attribute(self) -> Attribute:
        return Attribute(self.rattr, self.measure)

    @property
    def reach(self) -> int:
        """How far back a window goes."""
        return self.range

    def extent(self, window_id: int) -> Interval:
        return Interval(window_id - self.range + 1, window_id + 1)

    def wids(self, tick: int) -> WindowIds:
        """Between which bounds the ids lie; those that exist are known once their tuples have come (section 6.1.1)."""
        return range(tick, tick + self.range)

    def windows(self, ticks: Sequence[int]) -> list[int]:
        """The ids, ascending, for the ticks of all tuples in order of arrival (of one partition, where there is PATTR)."""
        if self.order is SlideOrder.ARRIVAL:
            return sorted(set(ticks[self.slide - 1 :: self.slide]))
        return self.ranked(Counter(ticks), before=0)

    def ranked(self, counts: Counter[int], *, before: int) -> list[int]:
        """The ids by rank, where `before` tuples come before all of these: a tick is one if an n-th tuple has it."""
        ids, seen = [], before
        for tick in sorted(counts):
            if (seen + counts[tick]) // self.slide > seen // self.slide:
                ids.append(tick)
            seen += counts[tick]
        return ids

    def wids_after(self, tick: int) -> int:
        return tick

    def __str__(self) -> str:
        sattr = "row_num" if self.order is SlideOrder.ARRIVAL else f"rank({self.rattr})"
        lengths = f"RANGE {self.measure.text(self.range)} RATTR {self.rattr} SLIDE {ROWS.text(self.slide)} SATTR {sattr}"
        return lengths + partition_text(self.pattr)
