"""Which windows a punctuation closes: those that end between the last punctuation and this one and hold a slice with rows.

In: slice starts in hand, two punctuations, a window. Out: window-ids, and horizons below which slices are no longer needed.
Convention: only windows that meet a slice in hand are enumerated, so a jump of the clock over years costs nothing. A landmark window
without a period holds every slice before its end, so there is one at every SLIDE; at the end of the input the last is the first that
holds the latest row. Paper: window-id-2005, section 5.2 (output and purge on punctuation).
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from muntin.aggregates.base import Array
from muntin.semantics import LAST_ID, SlicedWindow, SlidingWindow, extent, wids_after
from muntin.timeline import BEGINNING, END, Interval


def wids_of(starts: Array, window: SlicedWindow) -> tuple[Array, Array]:
    """The first and the last window that holds each slice: `wids`, element by element."""
    first = (starts - window.first_end) // window.slide + 1
    if isinstance(window, SlidingWindow):
        return first, (starts + (window.range - window.first_end)) // window.slide
    if window.period is None:
        return first, np.full(len(starts), LAST_ID)
    landmark = starts - (starts - window.offset) % window.period
    return first, (landmark + (window.period - window.offset)) // window.slide - 1


def bounds(ids: Array, window: SlicedWindow) -> tuple[Array, Array]:
    """Starts and ends of the windows with these ids: `extent`, element by element."""
    ends = window.first_end + ids * window.slide
    if isinstance(window, SlidingWindow):
        return ends - window.range, ends
    if window.period is None:
        return np.full(len(ids), BEGINNING), ends
    return ends - 1 - (ends - 1 - window.offset) % window.period, ends


def is_endless(window: SlicedWindow) -> bool:
    """Whether a row is in every window after it."""
    return not isinstance(window, SlidingWindow) and window.period is None


def windows_closing(starts: Array, *, after: int, upto: int, latest: int, window: SlicedWindow, since: int = BEGINNING) -> Array:
    """Ids of windows that start at or after `since`, end in `(after, upto]` and hold at least one of the slices, ascending."""
    first_open, first_left = first_wid(after, since, window), wids_after(upto, window)
    if upto < END:  # a slice at or past the punctuation lies only in windows that stay open
        starts = starts[: np.searchsorted(starts, upto)]
    elif is_endless(window):
        first_left = wids_after(latest, window) + 1
    first, last = wids_of(starts, window)
    low, high = np.maximum(first, first_open), np.minimum(last, first_left - 1)
    low[1:] = np.maximum(low[1:], np.maximum.accumulate(high)[:-1] + 1) if len(low) else low[1:]
    counts = np.maximum(high - low + 1, 0)
    offsets = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
    ids: Array = np.repeat(low, counts) + offsets
    return ids


def first_wid(after: int, since: int, window: SlicedWindow) -> int:
    """The first window that ends after the one instant and starts at or after the other; an endless one has started long before."""
    return max(wids_after(after, window), first_wid_since(since, window)) if not is_endless(window) else wids_after(after, window)


def first_wid_since(since: int, window: SlicedWindow) -> int:
    """The first window that starts at or after an instant."""
    if isinstance(window, SlidingWindow):
        return wids_after(since + window.range - 1, window)
    assert window.period is not None
    return wids_after(window.landmark(since - 1) + window.period, window)


def last_end(*, upto: int, latest: int, window: SlicedWindow) -> int:
    """No window that closes and has to be enumerated ends after this."""
    if is_endless(window):
        return min(upto, latest + window.slide) if upto >= END else upto
    return min(upto, latest + window.reach)


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


def open_window(punctuation: int, window: SlicedWindow) -> Interval:
    """The earliest window that a punctuation leaves open."""
    return extent(wids_after(punctuation, window), window)


def horizon(punctuation: int, windows: Iterable[SlicedWindow]) -> int:
    """No open window starts before it, so no slice before it is needed."""
    return min(open_window(punctuation, window).start for window in windows)


def is_late(starts: Array, *, punctuation: Array | int, window: SlicedWindow) -> Array:
    """Whether the first window of each slice was closed when its rows came."""
    first, last = wids_of(starts, window)
    late: Array = (first <= last_closed(punctuation, window)) & (first <= last)
    return late


def last_closed(punctuation: Array | int, window: SlicedWindow) -> Array | int:
    """The last window that a punctuation closes."""
    return (punctuation - window.first_end) // window.slide


def missed(starts: Array, *, punctuation: Array | int, window: SlicedWindow, since: int = BEGINNING) -> tuple[Array, Array]:
    """For rows in slices with these starts, arriving at this punctuation: which miss a closed window, and which miss them all.

    Windows that start before `since` cannot be missed.
    """
    first, last = wids_of(starts, window)
    first = first if is_endless(window) else np.maximum(first, first_wid_since(since, window))
    closed = last_closed(punctuation, window)
    some = (first <= closed) & (first <= last)
    return some, some & (last <= closed)
