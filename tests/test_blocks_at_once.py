"""Runs over very many blocks at once give what their cells give, and what block by block gives."""

from __future__ import annotations

import itertools
import random

import numpy as np
import pytest

from muntin.aggregates import AGGREGATES
from muntin.aggregates.base import LaneType, Partial
from muntin.aggregates.extrema import Direction, Extremum
from muntin.aggregates.sums import Count, FloatSum
from muntin.plan.shared import shared_plan
from muntin.query.check import check_pipeline
from muntin.timeline import BEGINNING, END
from muntin.windows.assembly import Assembly
from muntin.windows.atonce import combined_at_once
from muntin.windows.ranges import Pairs, Runs, Work
from muntin.windows.shards import Partials

PIPELINE = """
CREATE STREAM readings (ts TIMESTAMP, speed BIGINT) WITH (source = 'test', time = 'ts');
CREATE QUERY q AS SELECT max(speed) AS v FROM readings [RANGE {range} microseconds SLIDE {slide} microseconds];
"""


@pytest.mark.parametrize("partial", [Extremum(Direction.MIN, LaneType.INT64), FloatSum()])
@pytest.mark.parametrize(("length", "slide"), [(4, 4), (5, 3), (7, 1), (8, 8), (13, 5)])
def test_runs_over_many_blocks_are_those_of_their_cells(partial: Partial, length: int, slide: int) -> None:
    chance = np.random.default_rng(length * slide)
    starts = np.unique(chance.integers(0, 700, 400))  # slices that no row fell into are not there
    cells = chance.integers(-1000, 1000, (len(starts), 3)).astype(partial.lanes()[0].dtype)
    ends = np.arange(slide, 700, slide)
    first, last = np.searchsorted(starts, ends - length), np.searchsorted(starts, ends)
    some = last > first
    runs = Runs(first[some], last[some], (ends - length)[some], ends[some])
    run, strand = (np.array(one) for one in zip(*itertools.product(range(len(runs)), range(3)), strict=True))
    level = length.bit_length() - 1
    (found,) = combined_at_once(partial, (cells,), runs, Pairs(run, strand), level, starts, Work())
    whole = np.min if isinstance(partial, Extremum) else np.sum
    assert found.tolist() == [whole(cells[runs.first[at] : runs.last[at], of]) for at, of in zip(run, strand, strict=True)]


def windows(*, range: int, slide: int, cuts: list[int], ticks: list[int], speed: list[int]) -> list[tuple[int, int]]:
    """Window ends and values, with a punctuation at each cut."""
    plan = shared_plan(check_pipeline(PIPELINE.format(range=range, slide=slide), AGGREGATES).queries, AGGREGATES)
    assembly, found = Assembly(plan), []
    for low, high in itertools.pairwise([BEGINNING, *cuts, END]):
        rows = [at for at, tick in enumerate(ticks) if low <= tick < high]
        at, values = (np.array([some[row] for row in rows], dtype=np.int64) for some in (ticks, speed))
        ones = np.ones(len(rows), dtype=np.int64)
        states = tuple((ones,) if isinstance(column.partial, Count) else (values,) for column in plan.groupings[0].columns)
        for chunk in assembly.step([Partials(at, (), states)], high, int(at.max(initial=BEGINNING))):
            found += zip(chunk.table["window_end"].cast("int64").to_pylist(), chunk.table["v"].to_pylist(), strict=True)
    return found


@pytest.mark.parametrize(("range", "slide"), [(16, 4), (23, 7), (5, 1)])
def test_one_long_step_gives_the_windows_of_many_short_ones(range: int, slide: int) -> None:
    chance = random.Random(range)
    ticks = sorted(chance.sample(np.arange(4000).tolist(), 900))
    speed = [chance.randrange(1000) for _ in ticks]
    short = windows(range=range, slide=slide, cuts=np.arange(50, 4000, 50).tolist(), ticks=ticks, speed=speed)
    mixed = windows(range=range, slide=slide, cuts=[30, 60, 2000, 2030, 2060], ticks=ticks, speed=speed)
    assert windows(range=range, slide=slide, cuts=[], ticks=ticks, speed=speed) == short == mixed
