"""`windows`, `extent` and `wids` for time windows: the definitions every other path is tested against.

In: a `TimeWindow` and an instant or a window-id. Out: extents as half-open intervals, window-ids as ranges.
Paper: window-id-2005, sections 3.3 and 3.4. Convention: ids are integers, negative before the origin; id w of a window whose
ends are aligned ends at `offset + (w + 1) * slide`, as in the paper; one whose starts are aligned starts at `offset + w * slide`.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from muntin.errors import Refusal
from muntin.timeline import Duration, Interval, Progression


class Alignment(Enum):
    """Which edges of the windows are multiples of SLIDE from the origin."""

    ENDS = "ends"  # the bracketed clause, as in the papers
    STARTS = "starts"  # HOP, TUMBLE and Spark's window()


class WindowKind(Enum):
    """on-the-fly-sharing-2006, section 2.1."""

    HOPPING = "hopping"  # RANGE < SLIDE
    TUMBLING = "tumbling"  # RANGE = SLIDE
    OVERLAPPING = "overlapping"  # RANGE > SLIDE


@dataclass(frozen=True)
class TimeWindow:
    """RANGE, SLIDE and OFFSET in microseconds over a windowing attribute."""

    range: int
    slide: int
    offset: int = 0
    alignment: Alignment = Alignment.ENDS
    wattr: str = "ts"

    def __post_init__(self) -> None:
        if self.range <= 0 or self.slide <= 0:
            raise Refusal(
                "RANGE and SLIDE are longer than zero",
                values=f"RANGE {Duration(self.range)}, SLIDE {Duration(self.slide)}",
                way_out="give both a positive length",
            )

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

    def __str__(self) -> str:
        offset = f" OFFSET {Duration(self.offset)}" if self.offset else ""
        aligned = " (starts aligned)" if self.alignment is Alignment.STARTS else ""
        return f"RANGE {Duration(self.range)} SLIDE {Duration(self.slide)}{offset} WATTR {self.wattr}{aligned}"


def extent(window_id: int, window: TimeWindow) -> Interval:
    """The instants that belong to the window with this id."""
    end = window.first_end + window_id * window.slide
    return Interval(end - window.range, end)


def wids(instant: int, window: TimeWindow) -> range:
    """The ids of the windows whose extent holds `instant`: none, one or many."""
    first = (instant - window.first_end) // window.slide + 1
    last = (instant + window.range - window.first_end) // window.slide
    return range(first, last + 1)


def windows(span: Interval, window: TimeWindow) -> range:
    """The ids of the windows whose extents meet `span`."""
    return range(wids_after(span.start, window), (span.end - 1 + window.range - window.first_end) // window.slide + 1)


def wids_after(instant: int, window: TimeWindow) -> int:
    """The first id whose extent ends after `instant`: what a punctuation at `instant` leaves open."""
    return (instant - window.first_end) // window.slide + 1
