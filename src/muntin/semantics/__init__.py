"""`windows`, `extent` and `wids` for every type of window: the definitions every other path is tested against.

In: a window, and ticks of its windowing attribute or a window-id. Out: extents as half-open intervals of ticks, window-ids.
Paper: window-id-2005, sections 3.3, 3.4 and 4. Convention: everything is an exact integer (`measure`). A window over row numbers that
has PATTR has an id per partition and number; these functions are about the number, with row numbers counted per partition.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from typing import overload

from muntin.semantics.attribute import ARRIVAL, ARRIVAL_TIME, ROW_NUMBER, Attribute, row_number
from muntin.semantics.bytuple import SlideOrder, TupleSlide
from muntin.semantics.context import Context, Window, context_of, state_of
from muntin.semantics.landmark import LAST_ID, LandmarkWindow
from muntin.semantics.measure import ROWS, TIME, Measure, Unit, measure_of
from muntin.semantics.sliding import Alignment, SlidingWindow, WindowKind
from muntin.timeline import Interval

__all__ = [
    "ARRIVAL", "ARRIVAL_TIME", "LAST_ID", "ROWS", "ROW_NUMBER", "TIME", "Alignment", "Attribute", "Context", "LandmarkWindow", "Measure",
    "SlicedWindow", "SlideOrder", "SlidingWindow", "TimeWindow", "TupleSlide", "Unit", "Window", "WindowKind", "context_of", "extent",
    "measure_of", "row_number", "row_numbers", "state_of", "wids", "wids_after", "windows",
]  # fmt: skip

#: A sliding window is over time unless its measure says otherwise.
TimeWindow = SlidingWindow
#: Windows whose edges do not depend on rows: they are runs of slices.
SlicedWindow = SlidingWindow | LandmarkWindow


def extent(window_id: int, window: Window) -> Interval:
    """The ticks that belong to the window with this id."""
    return window.extent(window_id)


def wids(tick: int, window: Window) -> range:
    """The ids of the windows whose extent holds `tick`: none, one or many."""
    return window.wids(tick)


@overload
def windows(of: Interval, window: SlidingWindow | LandmarkWindow) -> range: ...
@overload
def windows(of: Sequence[int], window: TupleSlide) -> list[int]: ...
def windows(of: Interval | Sequence[int], window: Window) -> range | list[int]:
    """The ids of the windows whose extents meet a span; of slide-by-tuple windows, those that these tuples end."""
    if isinstance(window, TupleSlide):
        assert not isinstance(of, Interval)
        return window.windows(of)
    assert isinstance(of, Interval)
    return window.windows(of)


def wids_after(tick: int, window: Window) -> int:
    """The first id whose extent ends after `tick`: what a punctuation at `tick` leaves open."""
    return window.wids_after(tick)


def row_numbers(partitions: Iterable[Hashable]) -> list[int]:
    """Arrival positions from 0, counted for each partition by itself; the same partition for all means no PATTR.

    >>> row_numbers(["a", "b", "a", "a"])
    [0, 0, 1, 2]
    """
    seen: Counter[Hashable] = Counter()
    numbers = []
    for partition in partitions:
        numbers.append(seen[partition])
        seen[partition] += 1
    return numbers
