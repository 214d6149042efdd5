"""What sharing costs and saves, in aggregate operations: the papers' formulas, with the papers' symbols.

In: windows, rates, counts. Out: operations per second of stream time. Convention: λ rows/s come in, γ slices/s are cut; times in
seconds. Papers: panes-2005, formulas (3.1) to (3.4); on-the-fly-sharing-2006, Tables 2 and 3 and inequality (1).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from muntin.plan.slices import SliceManager, Slicing, edges_of
from muntin.semantics import TimeWindow
from muntin.timeline import HOUR, SECOND, Interval

#: Edges counted at the most to find how many slices there are per second.
SAMPLE_EDGES = 50_000
#: Periods of the longest slide that a sample has at least, if that is not too many edges.
SAMPLE_PERIODS = 20


@dataclass(frozen=True)
class PaneCosts:
    """Per-operation costs of panes-2005: a row into a pane, a pane out, a pane into or out of a window; a row into a window."""

    row: float = 1.0
    output: float = 1.0
    pane: float = 1.0
    buffered_row: float = 1.0


EQUAL_COSTS = PaneCosts()


def panes_per_window(window: TimeWindow) -> int:
    return window.range // math.gcd(window.range, window.slide)


def paned_cost(window: TimeWindow, *, rows: float, groups: float, differential: bool, costs: PaneCosts = EQUAL_COSTS) -> float:
    """Formulas (3.1) and (3.2): a window's aggregate from panes; `rows` per window, `groups` per pane."""
    panes = panes_per_window(window)
    per_slide = window.slide // math.gcd(window.range, window.slide)
    assembling = 2 * per_slide if differential else panes
    return costs.row * rows / panes + costs.output * groups + costs.pane * assembling * groups


def buffered_cost(window: TimeWindow, *, rows: float, differential: bool, costs: PaneCosts = EQUAL_COSTS) -> float:
    """Formulas (3.3) and (3.4): the same without panes."""
    return costs.buffered_row * (2 * rows * window.slide / window.range if differential else rows)


def slices_per_second(slices: SliceManager) -> float:
    """γ: edges counted over a sample of a few periods, never over the common multiple."""
    longest = max(progression.period for progression in slices.progressions)
    span = max(HOUR, SAMPLE_PERIODS * longest)
    if slices.edges_per(span) > SAMPLE_EDGES:
        span = max(int(span * SAMPLE_EDGES / slices.edges_per(span)), slices.tick.period)
    return sum(1 for _ in slices.edges(Interval(0, span))) * SECOND / span


def slices_per_window(window: TimeWindow, slicing: Slicing) -> int:
    """Table 2: how many of its own slices a window is combined from."""
    inside = Interval(window.first_end - window.range, window.first_end)
    return sum(len(progression.within(inside)) for progression in edges_of(window, slicing))


@dataclass(frozen=True)
class SharingCost:
    """Operations per second: rows into slices, slices into windows."""

    partial: float
    final: float

    @property
    def total(self) -> float:
        return self.partial + self.final


def shared_cost(windows: Sequence[TimeWindow], *, rate: float, slices: float) -> SharingCost:
    """Table 3, shared: each row once; each window combines γ · RANGE slices, once per SLIDE."""
    return SharingCost(rate, sum(slices * window.range / window.slide for window in windows))


def unshared_cost(windows: Sequence[TimeWindow], *, rate: float, slicing: Slicing = Slicing.PAIRED) -> SharingCost:
    """Table 3, unshared: each row once per query; each window combines its own slices."""
    final = sum(slices_per_window(window, slicing) * SECOND / window.slide for window in windows)
    return SharingCost(rate * len(windows), final)


def least_rate_to_share(windows: Sequence[TimeWindow], *, slices: float, slicing: Slicing = Slicing.PAIRED) -> float:
    """Inequality (1): from how many rows per second sharing slices pays. Zero where it always does, infinite for a single query."""
    if len(windows) < 2:
        return math.inf
    shared, unshared = shared_cost(windows, rate=0, slices=slices), unshared_cost(windows, rate=0, slicing=slicing)
    return max(0.0, (shared.final - unshared.final) / (len(windows) - 1))
