"""Figure 8 of window-id-2005: window-ids against buffering, max over RANGE 4000 rows, SLIDE 1 to 4000 rows.

In: sizes. Out: `Buffering`: for each SLIDE the processor time of every way. Convention: rows come in order, in batches of NumPy columns, in
one process, without Spark; every way gives the same Arrow table, and the tables are compared first; runs are interleaved.

    window-id      the bucket operator gives each row the slice it is in and aggregates by it (in the engine Spark does this); then the
                   engine's own assembly makes windows of slices. What is held are slices
    materialised   the paper's buffering: rows are kept; when a window closes its extent is materialised and aggregated
    in place       the same buffer, each extent gone over where it lies: what a processor of today does best with 4000 numbers side by
                   side, and no system of rows could in 2005
    scan           the rows are gone over once
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache, partial

import numpy as np
import pyarrow as pa
from pyspark.sql import SparkSession
from rich.console import Console

from benchmarks.answers import differing
from benchmarks.measuring import progress
from muntin.aggregates import AGGREGATES
from muntin.aggregates.base import Array
from muntin.aggregates.sums import Count
from muntin.plan.shared import SharedPlan, shared_plan
from muntin.query.check import check_pipeline
from muntin.windows.assembly import Assembly
from muntin.windows.results import result_schema
from muntin.windows.segments import firsts_of
from muntin.windows.shards import Partials

CREATE = "CREATE STREAM readings (ts TIMESTAMP, speed BIGINT) WITH (source = 'benchmark', time = 'ts');"
#: Numbers materialised at once.
AT_ONCE = 1 << 22


@dataclass(frozen=True)
class Setup:
    range: int = 4000
    slides: tuple[int, ...] = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 4000)
    rows: int = 400_000
    batch: int = 50_000
    rounds: int = 3


@dataclass(frozen=True)
class Point:
    """Nanoseconds of processor time per row by way, the median round, and the most that window-ids and buffers held."""

    slide: int
    nanoseconds: dict[str, float]
    slices: int
    rows: int


@dataclass
class Buffering:
    setup: Setup
    points: list[Point] = field(default_factory=list)
    compared: int = 0


@dataclass
class Held:
    """The most of anything that was held after a batch."""

    most: int = 0

    def see(self, count: int) -> None:
        self.most = max(self.most, count)


Way = Callable[[Setup, int, Array, Held], pa.Table]


def batches(setup: Setup, speed: Array) -> Iterator[tuple[int, Array]]:
    """The number of its first row, and its values."""
    return ((at, speed[at : at + setup.batch]) for at in range(0, len(speed), setup.batch))


# -- window-ids ---------------------------------------------------------------------------------------------------------------------


def window_id(setup: Setup, slide: int, speed: Array, held: Held) -> pa.Table:
    plan = plan_of(setup, slide)
    assembly, found = Assembly(plan), []
    for first, values in batches(setup, speed):
        reached = first + len(values)  # row numbers come in order: that many are complete
        found += [chunk.table for chunk in assembly.step([bucketed(plan, first, values)], reached, reached - 1)]
        held.see(assembly.slices)
    return pa.concat_tables(found)


@lru_cache
def plan_of(setup: Setup, slide: int) -> SharedPlan:
    query = f"CREATE QUERY q AS SELECT max(speed) AS v FROM readings [RANGE {setup.range} rows SLIDE {slide} rows WATTR row_num];"
    return shared_plan(check_pipeline(CREATE + query, AGGREGATES).queries, AGGREGATES)


def bucketed(plan: SharedPlan, first: int, values: Array) -> Partials:
    """Rows aggregated by the slice they are in: a shard for each."""
    grouping = plan.groupings[0]
    slices = grouping.slice_manager().slices_of(np.arange(first, first + len(values)))
    firsts = firsts_of(slices)
    counts, tops = np.diff(np.append(firsts, len(values))), np.maximum.reduceat(values, firsts)
    return Partials(slices[firsts], (), tuple((counts,) if isinstance(one.partial, Count) else (tops,) for one in grouping.columns))


# -- buffering ----------------------------------------------------------------------------------------------------------------------


def buffered(maxima: Callable[[Array, Array, Array], Array], setup: Setup, slide: int, speed: Array, held: Held) -> pa.Table:
    """Rows are kept until no open window holds them; `maxima` are those of the extents `[low, high)` of the buffer."""
    buffer, begins, end, found = speed[:0], 0, slide, []
    schema = result_schema(plan_of(setup, slide).queries[0].query)
    for first, values in batches(setup, speed):
        buffer = np.concatenate([buffer, values])
        ends = np.arange(end, first + len(values) + 1, slide)
        low, high = np.maximum(ends - setup.range, 0) - begins, ends - begins
        found.append(
            pa.Table.from_arrays([pa.array(ends - setup.range), pa.array(ends), pa.array(maxima(buffer, low, high))], schema=schema)
        )
        end += slide * len(ends)
        done = max(end - setup.range - begins, 0)
        buffer, begins = buffer[done:], begins + done
        held.see(len(buffer))
    return pa.concat_tables(found)


def maxima_of_copies(buffer: Array, low: Array, high: Array) -> Array:
    """Each extent is materialised, so many at a time that they fit into memory."""
    at_once = max(1, AT_ONCE // int((high - low).max(initial=1)))
    parts = [_maxima_of_copies(buffer, low[at : at + at_once], high[at : at + at_once]) for at in range(0, len(low), at_once)]
    return np.concatenate(parts) if parts else buffer[:0]


def _maxima_of_copies(buffer: Array, low: Array, high: Array) -> Array:
    lengths = high - low
    firsts = np.cumsum(lengths) - lengths
    extents = buffer[np.arange(lengths.sum()) + np.repeat(low - firsts, lengths)]
    return np.maximum.reduceat(extents, firsts)


def maxima_in_place(buffer: Array, low: Array, high: Array) -> Array:
    """Of `[low, high)` and of what lies between one extent and the next, which is left out again."""
    if not len(low):
        return buffer[:0]
    beyond = np.append(buffer, buffer[-1])  # an extent may end where the buffer does
    return np.maximum.reduceat(beyond, np.stack([low, high], axis=1).ravel())[::2]


def scan(setup: Setup, _: int, speed: Array, _held: Held) -> pa.Table:
    tops = [int(values.max()) for _, values in batches(setup, speed)]
    return pa.table({"v": [max(tops)]})


WINDOW_ID, MATERIALISED, IN_PLACE, SCAN = "window-id", "buffering, materialised", "buffering, in place", "scan"
WAYS: dict[str, Way] = {
    WINDOW_ID: window_id,
    MATERIALISED: partial(buffered, maxima_of_copies),
    IN_PLACE: partial(buffered, maxima_in_place),
    SCAN: scan,
}


# -- measured -----------------------------------------------------------------------------------------------------------------------


def run(_: SparkSession, setup: Setup, console: Console) -> Buffering:
    outcome, speed = Buffering(setup), np.random.default_rng(1).integers(0, 1_000_000, setup.rows)
    with progress(console, "window-ids against buffering", len(setup.slides)) as tick:
        for slide in setup.slides:
            tick(f"SLIDE {slide}")
            outcome.compared += checked(setup, slide, speed)
            outcome.points.append(measured(setup, slide, speed))
    return outcome


def checked(setup: Setup, slide: int, speed: Array) -> int:
    ours, *others = (WAYS[name](setup, slide, speed, Held()) for name in (WINDOW_ID, MATERIALISED, IN_PLACE))
    if not all(ours.equals(other) for other in others):
        raise differing(f"SLIDE {slide}", "window-ids and buffers disagree")
    return int(ours.num_rows)


def measured(setup: Setup, slide: int, speed: Array) -> Point:
    """In every round every way once."""
    spent: dict[str, list[float]] = {name: [] for name in WAYS}
    most = {name: Held() for name in WAYS}
    for _ in range(setup.rounds):
        for name, way in WAYS.items():
            begun = time.process_time()
            way(setup, slide, speed, most[name])
            spent[name].append(time.process_time() - begun)
    medians = {name: statistics.median(seconds) / setup.rows * 1e9 for name, seconds in spent.items()}
    return Point(slide, medians, most[WINDOW_ID].most, most[MATERIALISED].most)
