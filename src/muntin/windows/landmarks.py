"""Landmark windows that close, and which windows rows of any attribute, late ones too, belong to.

In: slice starts, punctuations, windows. Out: window-ids, as `due` gives them for sliding windows.
Convention: a landmark window without a period (an endless one) holds every slice before its end, so there is one at every SLIDE; at the end
of the input the last is the first that holds the latest row. Paper: window-id-2005, sections 3.3 and 5.2.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from muntin.aggregates.base import Array
from muntin.semantics import LAST_ID, LandmarkWindow, SlicedWindow, SlidingWindow, extent, wids_after
from muntin.timeline import BEGINNING, END
from muntin.windows.due import WindowSet, enumerated


def wids_of(starts: Array, window: SlicedWindow) -> tuple[Array, Array]:
    """The first and the last window that holds each slice: `wids`, element by element."""
    first = (starts - window.first_end) // window.slide + 1
    if isinstance(window, SlidingWindow):
        return first, (starts + (window.range - window.first_end)) // window.slide
    if window.period is None:
        return first, np.full(len(starts), LAST_ID)
    landmark = starts - (starts - window.offset) % window.period
    return first, (landmark + (window.period - window.offset)) // window.slide - 1


def is_endless(window: SlicedWindow) -> bool:
    """Whether a row is in every window after it."""
    return isinstance(window, LandmarkWindow) and window.period is None


def first_wid_since(since: int, window: SlicedWindow) -> int:
    """The first window that starts at or after an instant; an endless one has started long before."""
    if isinstance(window, SlidingWindow):
        return wids_after(since + window.range - 1, window)
    return -LAST_ID if window.period is None else wids_after(window.landmark(since - 1) + window.period, window)


def is_late(starts: Array, *, punctuation: Array | int, window: SlicedWindow) -> Array:
    """Whether the first window of each slice was closed when its rows came."""
    first, last = wids_of(starts, window)
    late: Array = (first <= last_closed(punctuation, window)) & (first <= last)
    return late


def missed(
    starts: Array, *, punctuation: Array | int, window: SlicedWindow, since: int = BEGINNING, corrected_for: int = 0
) -> tuple[Array, Array]:
    """For rows in slices with these starts, each with the punctuation it came under: which have a window that is closed, which miss
    them all: a window is missed if it was closed for `corrected_for` and longer.

    Windows that start before `since` cannot be missed.
    """
    first, last = wids_of(starts, window)
    first, closed = np.maximum(first, first_wid_since(since, window)), last_closed(punctuation, window)
    some = (first <= closed) & (first <= last)
    return some, some & (last <= last_closed(punctuation - corrected_for, window))


def last_closed(punctuation: Array | int, window: SlicedWindow) -> Array | int:
    """The last window that a punctuation closes."""
    return (punctuation - window.first_end) // window.slide


@dataclass(frozen=True)
class LandmarkSet:
    """The landmark windows of several queries: what `WindowSet` is for sliding ones, one after the other."""

    windows: tuple[LandmarkWindow, ...]

    @cached_property
    def slide(self) -> Array:
        return np.array([window.slide for window in self.windows], dtype=np.int64)

    def last_end(self, *, upto: int, latest: int) -> int:
        """No window that has to be enumerated ends after this."""
        return max(self._last_end(window, upto, latest) for window in self.windows)

    @staticmethod
    def _last_end(window: LandmarkWindow, upto: int, latest: int) -> int:
        return upto if is_endless(window) and upto < END else min(upto, latest + (window.period or window.slide))

    def closing(self, starts: Array, *, after: int, upto: int, latest: int, since: Array) -> tuple[Array, Array]:
        """The windows of every query that close: the query's number, and the window's id."""
        nothing = np.empty(0, dtype=np.int64)
        owners, found = [nothing], [nothing]
        for at, window in enumerate(self.windows):
            if since[at] < END:  # a query that stopped has none
                found.append(windows_closing(starts, after=after, upto=upto, latest=latest, window=window, since=int(since[at])))
                owners.append(np.full(len(found[-1]), at))
        return np.concatenate(owners), np.concatenate(found)

    def bounds(self, owner: Array, ids: Array) -> tuple[Array, Array]:
        """Starts and ends of windows: `extent`, element by element."""
        first_end = np.array([window.first_end for window in self.windows], dtype=np.int64)
        offset = np.array([window.offset for window in self.windows], dtype=np.int64)
        period = np.array([window.period or 0 for window in self.windows], dtype=np.int64)[owner]
        ends = first_end[owner] + ids * self.slide[owner]
        landmarks = ends - 1 - (ends - 1 - offset[owner]) % np.maximum(period, 1)
        return np.where(period == 0, BEGINNING, landmarks), ends

    def missed(self, starts: Array, *, punctuation: int, since: Array, corrected_for: int = 0) -> tuple[Array, Array]:
        """As `WindowSet.missed`: queries × slices."""
        found = [
            missed(starts, punctuation=punctuation, window=window, since=int(since[at]), corrected_for=corrected_for)
            for at, window in enumerate(self.windows)
        ]
        return np.array([some for some, _ in found]), np.array([every for _, every in found])

    def horizon(self, punctuation: int) -> int:
        """Where the earliest window starts that a punctuation leaves open: no slice before it is needed."""
        return min(extent(wids_after(punctuation, window), window).start for window in self.windows)


def windows_closing(starts: Array, *, after: int, upto: int, latest: int, window: LandmarkWindow, since: int) -> Array:
    """Ids of windows that start at or after `since`, end in `(after, upto]` and hold at least one of the slices, ascending."""
    first_open, first_left = max(wids_after(after, window), first_wid_since(since, window)), wids_after(upto, window)
    if upto < END:  # a slice at or past the punctuation lies only in windows that stay open
        starts = starts[: np.searchsorted(starts, upto)]
    elif is_endless(window):
        first_left = wids_after(latest, window) + 1
    first, last = wids_of(starts, window)
    low, high = np.maximum(first, first_open), np.minimum(last, first_left - 1)
    low[1:] = np.maximum(low[1:], np.maximum.accumulate(high)[:-1] + 1) if len(low) else low[1:]
    return enumerated(low, np.maximum(high - low + 1, 0))[1]


def window_set(windows: Sequence[SlicedWindow]) -> WindowSet | LandmarkSet:
    """The windows of a store: all of them slide, or all have landmarks."""
    landmarks = tuple(window for window in windows if isinstance(window, LandmarkWindow))
    return LandmarkSet(landmarks) if landmarks else WindowSet(tuple(window for window in windows if isinstance(window, SlidingWindow)))
