"""Slices on the fly: the edges of all registered windows, enumerated as time goes on.

In: windows, with a way to slice each (paned or paired). Out: the edges in a span, the slice of an instant, the common tick.
Papers: panes-2005, section 3.1; on-the-fly-sharing-2006, sections 3.1 to 3.3 and Algorithm 1.
Convention: a slice is named by its start. The common multiple of the slides is never built: a priority queue holds the next edge
of each progression, and equal progressions of different windows are one entry.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator
from enum import Enum
from functools import lru_cache
from heapq import merge
from itertools import groupby

import numpy as np

from muntin.aggregates.base import Array
from muntin.choice import named
from muntin.plan.numbering import distinct
from muntin.semantics import LandmarkWindow, TupleSlide, Window
from muntin.timeline import Interval, Progression


class Slicing(Enum):
    """How one window is cut. Paired never has more slices than paned (on-the-fly-sharing-2006, Theorem 1)."""

    PANED = "paned"  # equal slices of gcd(RANGE, SLIDE)
    PAIRED = "paired"  # at most two slices a period: where windows end and where they start

    @classmethod
    def named(cls, name: str | Slicing) -> Slicing:
        return named(cls, name, "windows are cut into panes or pairs", found=f"slicing = {name!r}")


def edges_of(window: Window, slicing: Slicing) -> frozenset[Progression]:
    """The edges that a window asks for. Landmarks are ends of windows too; a slide-by-tuple window may end at any tick."""
    if isinstance(window, TupleSlide):
        return frozenset({Progression(period=1, phase=0)})
    if isinstance(window, LandmarkWindow):
        return frozenset({window.ends})
    if slicing is Slicing.PANED:
        return frozenset({Progression(period=math.gcd(window.range, window.slide), phase=window.ends.phase)})
    return frozenset({window.starts, window.ends})


class SliceManager:
    """The edges of a changing set of windows.

    >>> from muntin.semantics import SlidingWindow
    >>> manager = SliceManager([SlidingWindow(range=18, slide=15), SlidingWindow(range=12, slide=9)])
    >>> list(manager.edges(Interval(1, 46)))
    [6, 9, 12, 15, 18, 24, 27, 30, 33, 36, 42, 45]
    """

    def __init__(self, windows: Iterable[Window] = (), slicing: Slicing = Slicing.PAIRED) -> None:
        self.slicing = slicing
        self._uses: Counter[Progression] = Counter()
        self._needed: tuple[Progression, ...] | None = None
        for window in windows:
            self.add(window)

    def add(self, window: Window) -> None:
        self._needed = None
        self._uses.update(edges_of(window, self.slicing))

    def remove(self, window: Window) -> None:
        """Take a window's edges away, except those that another window also asks for."""
        self._needed = None
        self._uses.subtract(edges_of(window, self.slicing))
        self._uses += Counter()

    @property
    def progressions(self) -> tuple[Progression, ...]:
        """The distinct progressions, without those whose every edge another one has."""
        if self._needed is None:
            self._needed = needed(frozenset(self._uses))
        return self._needed

    def edges(self, span: Interval) -> Iterator[int]:
        """Edges in `span`, ascending, each once: the priority queue of Algorithm 1, lazily."""
        return (edge for edge, _ in groupby(merge(*(progression.within(span) for progression in self.progressions))))

    def slice_starts(self, instants: Array) -> Array:
        """The start of the slice each instant lies in: the latest edge at or before it."""
        if not len(instants):
            return instants
        low, high = int(instants.min()), int(instants.max())
        if self.edges_per(high - low) + len(self.progressions) < len(instants) * len(self.progressions):
            edges = [np.arange(one.floor(low), high + 1, one.period) for one in self.progressions]
            known = distinct(np.concatenate(edges))
            return known[np.searchsorted(known, instants, side="right") - 1]
        starts = np.full(instants.shape, np.iinfo(np.int64).min, dtype=np.int64)
        for progression in self.progressions:
            np.maximum(starts, instants - (instants - progression.phase) % progression.period, out=starts)
        return starts

    def slices_of(self, instants: Array) -> Array:
        """The same for very many instants of few slices: where they lie close together, each tick is looked up once."""
        if not len(instants):
            return instants
        tick = self.tick
        first, last = tick.floor(int(instants.min())), int(instants.max())
        ticks = (last - first) // tick.period + 1
        if ticks > len(instants):
            return self.slice_starts(instants)
        starts = self.slice_starts(np.arange(first, last + 1, tick.period, dtype=np.int64))
        found: Array = starts[(instants - first) // tick.period]
        return found

    @property
    def tick(self) -> Progression:
        """The coarsest progression that holds every edge."""
        phases = [progression.phase for progression in self._uses]
        steps = [progression.period for progression in self._uses] + [phase - phases[0] for phase in phases]
        return Progression(period=math.gcd(*steps), phase=phases[0])

    def edges_per(self, micros: int) -> float:
        """An upper bound on edges in a stretch of time: coinciding edges of different progressions count each."""
        return sum(micros / progression.period for progression in self.progressions)


@lru_cache(maxsize=64)
def needed(progressions: frozenset[Progression]) -> tuple[Progression, ...]:
    """Without those whose every edge a finer one has. Kept: several managers of one plan ask for the same, and so does its next run."""
    phases: dict[int, set[int]] = {}
    for one in progressions:
        phases.setdefault(one.period, set()).add(one.phase)
    periods = np.array(sorted(phases), dtype=np.int64)
    coarser, finer = np.nonzero((periods[:, None] % periods == 0) & (periods[:, None] > periods))
    inside: dict[int, list[int]] = {}
    for period, part in zip(periods[coarser].tolist(), periods[finer].tolist(), strict=True):
        inside.setdefault(period, []).append(part)

    def is_covered(one: Progression) -> bool:
        return any(one.phase % part in phases[part] for part in inside.get(one.period, ()))

    return tuple(one for one in sorted(progressions) if not is_covered(one))
