"""Habits: what a plan that goes by keeps of the one before, so that Spark compiles nothing for it; a plan that stays has its own."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from muntin.aggregates import AGGREGATES
from muntin.plan.divide import Sharing
from muntin.plan.shared import shared_plan
from muntin.query.check import check_pipeline
from muntin.spark.collecting import Collecting
from muntin.spark.habits import Habits
from muntin.spark.slicekey import KeyKind
from test_changes_spark import BIG, Steps, stepping
from test_streaming import clicks

if TYPE_CHECKING:
    from muntin import Engine

__all__ = ["clicks", "stepping"]

STREAM = "CREATE STREAM s (ts TIMESTAMP, x DOUBLE) WITH (source = 'files', format = 'csv', path = '-', time = 'ts');"


def collecting(constants: list[float], seconds: list[int], held: Habits | None = None) -> Collecting:
    """A query for each constant, over windows of so many seconds in turn, every 10 seconds."""
    text = STREAM + "".join(
        f"CREATE QUERY q{number} AS SELECT count(*) AS c FROM s [RANGE {seconds[number % len(seconds)]} seconds SLIDE 10 seconds] "
        f"WHERE x > {constant};"
        for number, constant in enumerate(constants)
    )
    pipeline = check_pipeline(text, AGGREGATES)
    return Collecting(pipeline.streams[0], shared_plan(pipeline.queries, AGGREGATES, sharing=Sharing.SHARDS), held=held)


def kinds(of: Collecting) -> list[KeyKind]:
    return [key.kind for one in of.passes for key in one.slice_keys]


SPREAD = [float(one) for one in range(0, 1_000, 50)]


def test_a_grid_stays_while_constants_come_and_go() -> None:
    before = collecting(SPREAD, [10]).habits
    assert before is not None
    (grid,) = before.grids.values()
    after = collecting([*SPREAD[3:], 123.25], [10], before).habits
    assert after is not None
    assert list(after.grids.values()) == [grid]


def test_a_grid_that_does_not_fit_is_replaced_by_one_with_room_for_another_constant() -> None:
    before = collecting(SPREAD, [10]).habits
    close = [*SPREAD, 100.0001]
    after, alone = collecting(close, [10], before).habits, collecting(close, [10]).habits
    assert before is not None
    assert after is not None
    assert alone is not None
    ((held,), (found,), (best,)) = (one.grids.values() for one in (before, after, alone))
    assert held.compared == 1
    assert found.compared == best.compared + 1 > held.compared


@pytest.mark.parametrize(
    ("seconds", "first", "for_now"),
    [
        ([10, 11], KeyKind.FORMULA, KeyKind.FORMULA),  # an edge in 5 ticks
        ([10, 11, 12], KeyKind.FORMULA, KeyKind.TICK),  # 3 in 10
        ([10, 11, 12, 13, 14], KeyKind.TICK, KeyKind.TICK),
    ],
)
def test_where_a_plan_follows_another_rows_are_grouped_by_coarser_ticks(seconds: list[int], first: KeyKind, for_now: KeyKind) -> None:
    assert kinds(collecting(SPREAD, seconds)) == [first]
    assert kinds(collecting(SPREAD, seconds, Habits())) == [for_now]


def test_rows_stay_grouped_by_a_tick_that_fewer_and_fewer_edges_are_on() -> None:
    before = collecting(SPREAD, [10, 11, 12, 13, 14]).habits
    assert kinds(collecting(SPREAD, [10, 11], before)) == [KeyKind.TICK]


def test_a_plan_that_goes_by_has_the_habits_of_the_one_before_and_one_that_stays_its_own(
    stepping: Callable[..., tuple[Engine, Steps]],
) -> None:
    engine, steps = stepping()

    def held() -> Habits | None:
        return steps.job.jobs["clicks"]._reading.collecting.held

    steps.feed(1)
    assert held() is None
    engine.add(BIG, name="big")
    steps.feed(2)
    assert held() is not None
    steps.feed(3)
    assert held() is None
    steps.job.stop()
