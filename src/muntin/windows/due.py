"""Which windows a punctuation closes: those that end between the last punctuation and this one and hold a slice with rows.

In: slice starts in hand, two punctuations, windows. Out: window-ids, and horizons below which slices are no longer needed.
Convention: only windows that meet a slice in hand are enumerated, so a jump of the clock over years costs nothing.
Paper: window-id-2005, section 5.2 (output and purge on punctuation).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from muntin.aggregates.base import Array
from muntin.semantics import SlicedWindow, TimeWindow, wids_after
from muntin.timeline import BEGINNING, END

#: Windows that are enumerated without a thought, however few slices there are.
FEW_WINDOWS = 64


def windows_closing(starts: Array, *, after: int, upto: int, window: TimeWindow, since: int = BEGINNING) -> Array:
    """Ids of windows that start at or after `since`, end in `(after, upto]` and hold at least one of the slices, ascending."""
    first_open, first_left = first_wid(after, since, window), wids_after(upto, window)
    if upto < END:  # a slice at or past the punctuation lies only in windows that stay open
        starts = starts[: np.searchsorted(starts, upto)]
    low = np.maximum((starts - window.first_end) // window.slide + 1, first_open)
    high = np.minimum((starts + (window.range - window.first_end)) // window.slide, first_left - 1)
    low[1:] = np.maximum(low[1:], np.maximum.accumulate(high)[:-1] + 1) if len(low) else low[1:]
    counts = np.maximum(high - low + 1, 0)
    return enumerated(low, counts)[1]


@dataclass(frozen=True)
class WindowSet:
    """The sliding windows of several queries side by side; `landmarks.LandmarkSet` is the same for landmark windows."""

    windows: tuple[TimeWindow, ...]

    @cached_property
    def range(self) -> Array:
        return np.array([window.range for window in self.windows], dtype=np.int64)

    @cached_property
    def slide(self) -> Array:
        return np.array([window.slide for window in self.windows], dtype=np.int64)

    @cached_property
    def first_end(self) -> Array:
        return np.array([window.first_end for window in self.windows], dtype=np.int64)

    def wids_after(self, instants: Array | int) -> Array:
        ids: Array = (instants - self.first_end) // self.slide + 1
        return ids

    def last_end(self, *, upto: int, latest: int) -> int:
        """No window that has to be enumerated ends after this."""
        return min(upto, latest + int(self.range.max()))

    def closing(self, starts: Array, *, after: int, upto: int, latest: int, since: Array) -> tuple[Array, Array]:
        """The windows of every query that close, as `windows_closing` gives them: the query's number, and the window's id.

        Queries with no more windows in the time of the slices than there are slices are enumerated together.
        """
        if not len(starts):
            return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)
        first = np.maximum(self.wids_after(np.maximum(after, since + self.range - 1)), self.wids_after(int(starts[0])))
        last = np.minimum(self.wids_after(upto) - 1, self.wids_after(int(starts[-1]) + self.range) - 1)
        count = np.maximum(last - first + 1, 0)
        sparse = count > len(starts) + FEW_WINDOWS
        owner, ids = enumerated(first, np.where(sparse, 0, count))
        start, end = self.bounds(owner, ids)
        holds = np.searchsorted(starts, start) < np.searchsorted(starts, end)
        owners, found = [owner[holds]], [ids[holds]]
        for at in np.nonzero(sparse)[0].tolist():
            found.append(windows_closing(starts, after=after, upto=upto, window=self.windows[at], since=int(since[at])))
            owners.append(np.full(len(found[-1]), at))
        return np.concatenate(owners), np.concatenate(found)

    def bounds(self, owner: Array, ids: Array) -> tuple[Array, Array]:
        """Starts and ends of windows: `extent`, element by element."""
        ends = self.first_end[owner] + ids * self.slide[owner]
        return ends - self.range[owner], ends

    def missed(self, starts: Array, *, punctuation: int, since: Array, corrected_for: int = 0) -> tuple[Array, Array]:
        """For rows in slices with these starts, arriving at this punctuation: which have a window that is closed, and which miss them
        all: a window is missed if it was closed for `corrected_for` and longer.

        Queries × slices. Windows that start before `since` cannot be missed.
        """
        offset, slide = self.first_end[:, None], self.slide[:, None]
        first = np.maximum((starts - offset) // slide + 1, self.wids_after(since + self.range - 1)[:, None])
        last = (starts + self.range[:, None] - offset) // slide
        closed = self.wids_after(punctuation)[:, None] - 1
        given_up = self.wids_after(punctuation - corrected_for)[:, None] - 1
        some = (first <= closed) & (first <= last)
        return some, some & (last <= given_up)

    def horizon(self, punctuation: int) -> int:
        """Where the earliest window starts that a punctuation leaves open: no slice before it is needed."""
        return int((self.first_end + self.wids_after(punctuation) * self.slide - self.range).min())


def enumerated(first: Array, count: Array) -> tuple[Array, Array]:
    """`count` ids from `first` for each member, one member after another: the member, and the id."""
    owner = np.repeat(np.arange(len(first)), count)
    return owner, np.arange(len(owner)) + np.repeat(first - (np.cumsum(count) - count), count)


def first_wid(after: int, since: int, window: TimeWindow) -> int:
    """The first window that ends after the one instant and starts at or after the other."""
    return max(wids_after(after, window), wids_after(since + window.range - 1, window))


def with_empty(ids: Array, *, after: int, upto: int, latest: int, window: SlicedWindow, begun: bool) -> Array:
    """The same ids with the gaps between them filled, for EMIT EMPTY.

    Once the query has begun to emit, empty windows run from one punctuation to the next; at the end of the input they stop with the
    latest row, as they would have if a punctuation had come just after it.
    """
    if not len(ids) and not begun:
        return ids
    first = wids_after(after, window) if begun else int(ids[0])
    last = max(wids_after(min(upto, latest), window) - 1, int(ids[-1]) if len(ids) else first - 1)
    return np.arange(first, last + 1, dtype=np.int64)
