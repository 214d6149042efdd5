"""Landmark windows: from the beginning of the stream, or from the last of a row of landmarks, to an end that moves by SLIDE.

In: a `LandmarkWindow` and a tick or a window-id. Out: extents as half-open intervals, window-ids as ranges.
Paper: window-id-2005, section 3.3 (landmark windows extend the sliding ones). With a period it is what Flink calls CUMULATE.
Convention: id w ends at `offset + (w + 1) * slide`. Without a period an extent begins at `BEGINNING` and a tick has no last id: its
ids run to `LAST_ID`. With one, landmarks are multiples of the period from the offset, and the period is a multiple of SLIDE.
"""

from __future__ import annotations

from dataclasses import dataclass

from muntin.errors import Refusal
from muntin.semantics.attribute import Attribute
from muntin.semantics.measure import TIME, Measure
from muntin.semantics.sliding import WindowIds, partition_text
from muntin.timeline import BEGINNING, Interval, Progression

#: Where the ids of a tick stop that belongs to every later window.
LAST_ID = 2**62


@dataclass(frozen=True)
class LandmarkWindow:
    """RANGE UNBOUNDED, SLIDE, OFFSET and the LANDMARK period in ticks. Without a period the one landmark is the beginning."""

    slide: int
    period: int | None = None
    offset: int = 0
    wattr: str = "ts"
    measure: Measure = TIME
    pattr: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.slide <= 0 or (self.period is not None and (self.period <= 0 or self.period % self.slide)):
            period = "" if self.period is None else f", LANDMARK {self.measure.text(self.period)}"
            raise Refusal(
                "SLIDE is longer than zero and LANDMARK a multiple of it, so that the last window before a landmark ends there",
                values=f"SLIDE {self.measure.text(self.slide)}{period}",
                way_out="choose a SLIDE that divides LANDMARK",
            )

    @property
    def starts(self) -> Progression | None:
        """The landmarks; None if the beginning is the only one."""
        return None if self.period is None else Progression(period=self.period, phase=self.offset)

    @property
    def ends(self) -> Progression:
        return Progression(period=self.slide, phase=self.offset)

    @property
    def first_end(self) -> int:
        """The end of window 0."""
        return self.offset + self.slide

    @property
    def attribute(self) -> Attribute:
        return Attribute(self.wattr, self.measure, self.pattr)

    @property
    def reach(self) -> int:
        """How far back a window goes, at most."""
        return LAST_ID if self.period is None else self.period

    def extent(self, window_id: int) -> Interval:
        end = self.offset + (window_id + 1) * self.slide
        return Interval(BEGINNING if self.period is None else self.landmark(end - 1), end)

    def landmark(self, tick: int) -> int:
        """The last landmark at or before a tick."""
        assert self.starts is not None
        return self.starts.floor(tick)

    def wids(self, tick: int) -> WindowIds:
        first = self.wids_after(tick)
        if self.period is None:
            return range(first, LAST_ID)
        return range(first, (self.landmark(tick) + self.period - self.offset) // self.slide)

    def windows(self, span: Interval) -> WindowIds:
        return range(self.wids_after(span.start), self.wids(span.end - 1).stop)

    def wids_after(self, tick: int) -> int:
        return (tick - self.offset) // self.slide

    def __str__(self) -> str:
        measure = self.measure
        period = "" if self.period is None else f" LANDMARK {measure.text(self.period)}"
        offset = f" OFFSET {measure.text(self.offset)}" if self.offset else ""
        return f"RANGE UNBOUNDED SLIDE {measure.text(self.slide)}{period}{offset} WATTR {self.wattr}{partition_text(self.pattr)}"
