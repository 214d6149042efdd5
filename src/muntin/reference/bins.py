"""The aggregate operator for slide-by-tuple windows as the paper has it: start bins and end bins, one tuple after the other.

In: tuples as a tick of RATTR and a value, punctuations. Out: window-ids with their partial aggregates.
Paper: window-id-2005, section 6.1, Figures 4 to 6. Convention: S and E map window-ids to partial aggregates; a bin's value holds for
every id from its own up to the next bin. Put right against Figure 6: end bins go to E; E is purged too; and the last bin below the
punctuation stays, as the base of later ones.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

from muntin.timeline import BEGINNING

Value = TypeVar("Value")
Partial = TypeVar("Partial")


class Bins(Generic[Partial, Value]):
    """`update` adds a tuple's value to a partial aggregate; `initial` is that of no tuple.

    >>> bins = Bins(range=10, initial=0, update=lambda count, _: count + 1)
    >>> for tick in (1, 5, 12): bins.process_tuple(tick, None)
    >>> bins.process_punctuation(6)
    [(1, 1), (5, 2)]
    """

    def __init__(self, *, range: int, initial: Partial, update: Callable[[Partial, Value], Partial]) -> None:
        self.range = range
        self.update = update
        self.start: dict[int, Partial] = {}
        self.end: dict[int, Partial] = {BEGINNING: initial}

    def process_tuple(self, tick: int, value: Value) -> None:
        """Split the bins that the tuple's own two fall into, then add the tuple to all from the first up to the second."""
        first, beyond = tick, tick + self.range
        for bins, window_id in ((self.start, first), (self.end, beyond)):
            bins.setdefault(window_id, self.partial(window_id))
        for bins in (self.start, self.end):
            bins |= {window_id: self.update(partial, value) for window_id, partial in bins.items() if first <= window_id < beyond}

    def partial(self, window_id: int) -> Partial:
        """What the tuples so far contribute to the extent of an id: the value of the last bin at or before it."""
        both = self.end | self.start  # where both have a bin they hold the same
        return both[max(known for known in both if known <= window_id)]

    def process_punctuation(self, below: int) -> list[tuple[int, Partial]]:
        """The windows that no more tuples can reach, ascending; their bins go, except for the last."""
        closed = sorted((window_id, partial) for window_id, partial in self.start.items() if window_id < below)
        base = max(known for known in self.end | self.start if known < max(below, BEGINNING + 1))
        kept = self.partial(base)
        self.start = {window_id: partial for window_id, partial in self.start.items() if window_id >= below}
        self.end = {base: kept} | {window_id: partial for window_id, partial in self.end.items() if window_id >= below}
        return closed
