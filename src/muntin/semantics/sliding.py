"""Sliding windows: RANGE and SLIDE over one windowing attribute, be it time, row numbers or any ordered number.

In: a `SlidingWindow` and a tick or a window-id. Out: extents as half-open intervals, window-ids as ranges.
Paper: window-id-2005, sections 3.3 and 3.4. Convention: ids are integers, negative before the origin; id w of a window whose
ends are aligned ends at `offset + (w + 1) * slide`, as in the paper; one whose starts are aligned starts at `offset + w * slide`.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from muntin.hashing import hashed_once
from muntin.semantics.attribute import Attribute
from muntin.semantics.measure import TIME, Measure, check_lengths
from muntin.timeline import Interval, Progression

#: The ids of a tick or of a span: a run of integers.
WindowIds = range


class Alignment(Enum):
    """Which edges of the windows are multiples of SLIDE from the origin."""

    ENDS = "ends"  # the bracketed clause, as in the papers
    STARTS = "starts"  # HOP, TUMBLE and Spark's window()


class WindowKind(Enum):
    """on-the-fly-sharing-2006, section 2.1."""

    HOPPING = "hopping"  # RANGE < SLIDE
    TUMBLING = "tumbling"  # RANGE = SLIDE
    OVERLAPPING = "overlapping"  # RANGE > SLIDE


@hashed_once
@dataclass(frozen=True)
class SlidingWindow:
    """RANGE, SLIDE and OFFSET in ticks of a windowing attribute; microseconds, unless a measure says otherwise.

    `pattr` are columns that row numbers are counted by: each of their values has windows of its own.
    """

    range: int
    slide: int
    offset: int = 0
    alignment: Alignment = Alignment.ENDS
    wattr: str = "ts"
    measure: Measure = TIME
    pattr: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        check_lengths(self.range, self.slide, measured=self.measure, slid=self.measure)

    @property
    def kind(self) -> WindowKind:
        if self.range == self.slide:
            return WindowKind.TUMBLING
        return WindowKind.HOPPING if self.range < self.slide else WindowKind.OVERLAPPING

    @property
    def starts(self) -> Progression:
        """Where windows start."""
        shift = -self.range if self.alignment is Alignment.ENDS else 0
        return Progression(period=self.slide, phase=self.offset + shift)

    @property
    def ends(self) -> Progression:
        """Where windows end."""
        shift = self.range if self.alignment is Alignment.STARTS else 0
        return Progression(period=self.slide, phase=self.offset + shift)

    @property
    def first_end(self) -> int:
        """The end of window 0."""
        return self.offset + (self.slide if self.alignment is Alignment.ENDS else self.range)

    @property
    def attribute(self) -> Attribute:
        return Attribute(self.wattr, self.measure, self.pattr)

    @property
    def reach(self) -> int:
        """How far back a window goes."""
        return self.range

    def extent(self, window_id: int) -> Interval:
        end = self.first_end + window_id * self.slide
        return Interval(end - self.range, end)

    def wids(self, tick: int) -> WindowIds:
        return range(self.wids_after(tick), (tick + self.range - self.first_end) // self.slide + 1)

    def windows(self, span: Interval) -> WindowIds:
        return range(self.wids_after(span.start), (span.end - 1 + self.range - self.first_end) // self.slide + 1)

    def wids_after(self, tick: int) -> int:
        return (tick - self.first_end) // self.slide + 1

    def __str__(self) -> str:
        measure = self.measure
        offset = f" OFFSET {measure.text(self.offset)}" if self.offset else ""
        aligned = " ALIGN STARTS" if self.alignment is Alignment.STARTS else ""
        lengths = f"RANGE {measure.text(self.range)} SLIDE {measure.text(self.slide)}{offset}"
        return f"{lengths} WATTR {self.wattr}{aligned}{partition_text(self.pattr)}"


def partition_text(pattr: tuple[str, ...]) -> str:
    return f" PATTR {', '.join(pattr)}" if pattr else ""
