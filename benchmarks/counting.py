"""Aggregations counted by the paper's definition, without a machine: rows into slices (partial), slices into windows (final).

In: the windows of some queries and the span of the data. Out: how many slices hold rows, and how many aggregations of each kind.
Convention: every slice in the span holds a row, as it does with 316 trades a second and edges on whole seconds; every window that
meets the span and ends by `upto` counts, those that straddle its beginning or end with the slices they have inside.
Paper: on-the-fly-sharing-2006, sections 3.1 and 6.2; each of its figures is an average over ten sets of queries.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

import numpy as np

from muntin.demo.workloads import WindowedSum, workload_a
from muntin.plan.slices import SliceManager, Slicing
from muntin.semantics import TimeWindow, extent, windows
from muntin.spark.generator import SECONDS, START
from muntin.timeline import END, SECOND, Interval, instant_of

#: The hour of trades.
SPAN = Interval(instant_of(START), instant_of(START) + SECONDS * SECOND)
#: Sets of queries an average is taken over, as in the paper.
SETS = 10


class Scheme(Enum):
    """The paper's two ways to run many queries."""

    UNSHARED = "unshared"  # each cuts the stream into slices of its own
    SHARED = "shared"  # all stand on the same slices


@dataclass(frozen=True)
class Aggregations:
    """Slices that hold rows, and aggregations by the paper's definition. Averages over several sets are not whole."""

    slices: float
    partial: float
    final: float


def time_window(query: WindowedSum) -> TimeWindow:
    return TimeWindow(range=query.range * SECOND, slide=query.slide * SECOND)


def counted(queries: Sequence[WindowedSum], scheme: Scheme, slicing: Slicing, *, rows: int, upto: int = END) -> Aggregations:
    """The aggregations of one set of queries."""
    all_windows = [time_window(query) for query in queries]
    families = [[window] for window in all_windows] if scheme is Scheme.UNSHARED else [all_windows]
    slices = final = 0
    for family in families:
        starts = slice_starts(family, slicing)
        slices += len(starts)
        final += sum(slices_into_windows(window, starts, upto) for window in family)
    return Aggregations(slices, rows * len(families), final)


def slice_starts(family: Sequence[TimeWindow], slicing: Slicing) -> np.ndarray:
    """The starts of the slices that meet the span; the first one may begin before it."""
    edges = np.fromiter(SliceManager(family, slicing).edges(SPAN), dtype=np.int64)
    begins_on_edge = len(edges) and edges[0] == SPAN.start
    return edges if begins_on_edge else np.insert(edges, 0, SPAN.start)


def slices_into_windows(window: TimeWindow, starts: np.ndarray, upto: int = END) -> int:
    """Over all windows that meet the span and end by `upto`, the slices each is combined from."""
    return int(slices_of_windows(window, starts, np.ones(len(starts), dtype=bool), upto).sum())


def slices_of_windows(window: TimeWindow, starts: np.ndarray, held: np.ndarray, upto: int = END) -> np.ndarray:
    """For each window that meets the span and ends by `upto`, how many of the slices in it are `held`."""
    extents = [one for number in windows(SPAN, window) if (one := extent(number, window)).end <= upto]
    before = np.concatenate([[0], np.cumsum(held)])
    first = np.searchsorted(starts, [max(one.start, SPAN.start) for one in extents])
    last = np.searchsorted(starts, [one.end for one in extents])
    return np.asarray(before[last] - before[first])


def mean_counted(queries: int, scheme: Scheme, slicing: Slicing, *, rows: int, upto: int = END, sets: int = SETS) -> Aggregations:
    """The average over several sets of queries."""
    found = [counted(workload_a(queries, seed), scheme, slicing, rows=rows, upto=upto) for seed in range(1, sets + 1)]
    return Aggregations(*(float(np.mean([getattr(one, name) for one in found])) for name in ("slices", "partial", "final")))


def most_final(queries: int, *, sets: int = SETS) -> float:
    """The final aggregations if every second were a slice: no slicing of windows on whole seconds can have more."""
    starts = np.arange(SPAN.start, SPAN.end, SECOND)
    found = [sum(slices_into_windows(time_window(query), starts) for query in workload_a(queries, seed)) for seed in range(1, sets + 1)]
    return float(np.mean(found))
