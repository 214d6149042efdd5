"""Own aggregates that overflow: in NumPy nothing wraps unseen, in Spark the query stops alone."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from muntin import Engine, LaneType, MemorySink, Part, Sharing, own_aggregate
from muntin.aggregates.base import Differential, State
from muntin.aggregates.own import OwnAggregate
from muntin.errors import Refusal
from muntin.schema import BIGINT

TOTAL = Part("total", LaneType.INT64)


def total(name: str, lift: Callable[..., Any], **options: Any) -> OwnAggregate:
    """A sum of whole numbers: what `lift` makes of the rows is added up."""
    given = {"combine": {"total": "sum"}} | options
    return own_aggregate(name, lift=lift, lower=lambda part: part["total"], parts=[TOTAL], result_type=BIGINT, **given)


def nothing(*_: Any) -> Any:
    raise AssertionError("these tests make states of numbers")


BY_NAME = total("by_name", nothing)
BY_FUNCTION = total(
    "by_function",
    nothing,
    combine=lambda a, b: {"total": a["total"] + b["total"]},
    uncombine=lambda a, b: {"total": a["total"] - b["total"]},
)


def state(number: int) -> State:
    return np.array([number]), np.array([0]), np.array([0])


@pytest.mark.parametrize("aggregate", [BY_NAME, BY_FUNCTION], ids=lambda aggregate: aggregate.name)
@given(numbers=st.lists(st.integers(-(2**63), 2**63 - 1) | st.integers(-9, 9), min_size=2, max_size=9), data=st.data())
def test_a_sum_is_exact_or_has_overflowed_also_after_subtracting(aggregate: OwnAggregate, numbers: list[int], data: st.DataObject) -> None:
    partial = aggregate.partial
    assert isinstance(partial, Differential)
    whole = state(numbers[0])
    for number in numbers[1:]:
        whole = partial.combine(whole, state(number))
    check(aggregate, whole, sum(numbers))
    taken = data.draw(st.integers(1, len(numbers) - 1))
    for number in numbers[:taken]:
        whole = partial.uncombine(whole, state(number))
    check(aggregate, whole, sum(numbers[taken:]))


def check(aggregate: OwnAggregate, found: State, truth: int) -> None:
    lowered = aggregate.lower(BIGINT, found)
    fits = -(2**63) <= truth < 2**63
    assert (lowered.overflow is None) == fits
    assert lowered.valid.all()
    assert not fits or lowered.values.tolist() == [truth]


def test_extremes_and_bitwise_operations_do_not_overflow() -> None:
    low, high = own_aggregate(
        "span", lift=nothing, combine={"low": "min", "high": "max"}, lower=lambda part: part["high"],
        parts=[Part("low", LaneType.INT64), Part("high", LaneType.INT64)],
    ), total("bits", nothing, combine=lambda a, b: {"total": a["total"] | b["total"]})  # fmt: skip
    ends = [np.array([-(2**63)]), np.array([2**63 - 1]), np.array([0]), np.array([0]), np.array([0])]
    identity = tuple(np.array([one]) for one in low.partial.identity())
    assert not low.partial.overflowed(low.partial.combine(identity, tuple(ends))).any()
    assert not high.partial.overflowed(high.partial.combine(state(2**62), state(-1))).any()


def test_a_failure_in_a_shard_stays_in_the_windows_that_hold_it() -> None:
    partial = BY_NAME.partial
    assert isinstance(partial, Differential)
    failed = (np.array([0]), np.array([0]), np.array([1]))
    both = partial.combine(state(5), failed)
    assert partial.overflowed(both).all()
    assert not partial.overflowed(partial.uncombine(both, failed)).any()


LIFTS: dict[str, Callable[..., Any]] = {
    "summed": lambda F, n: {"total": F.sum(n)},  # noqa: N803
    "squared": lambda F, n: {"total": F.sum(n * n)},  # noqa: N803
    "guarded": lambda F, n: {"total": F.sum(F.when(F.abs(n) < 1000, n * n).when(n == 0, 1).otherwise(n % 10))},  # noqa: N803
    "inverse": lambda F, n: {"total": F.count_if((100 / n) > 20)},  # noqa: N803
    "guarded_too": lambda F, n: {"total": F.count_if((n != 0) & ((100 / n) > 20))},  # noqa: N803
    "narrow": lambda F, n: {"total": F.max((-n).cast("tinyint")).cast("bigint")},  # noqa: N803
    "of_shard": lambda F, n: {"total": F.max(n) * F.count(n) * F.lit(2**20)},  # noqa: N803
    "counted": lambda F, n: {"total": F.count(n)},  # noqa: N803
}
START = datetime(2026, 1, 1, tzinfo=UTC)
#: Windows of ten seconds: the first is harmless, the second has a zero, the third a large number, the fourth two.
ROWS = [(1, 3), (2, 5), (11, 0), (12, 7), (21, 2**40), (31, 2**62), (32, 2**62), (33, None), (41, 1)]
STOPS = {"summed": 40, "squared": 30, "inverse": 20, "narrow": 30, "of_shard": 40}


@pytest.mark.parametrize("sharing", [Sharing.SHARDS, Sharing.SLICES])
def test_a_query_whose_own_aggregate_fails_stops_there_and_the_others_go_on(spark: SparkSession, sharing: Sharing) -> None:
    engine = Engine(spark, aggregates=[total(name, lift) for name, lift in LIFTS.items()], sharing=sharing)
    rows = [(START + timedelta(seconds=second), n) for second, n in ROWS]
    engine.stream("s", spark.createDataFrame(rows, "ts TIMESTAMP, n BIGINT"), time="ts")
    for name in LIFTS:
        engine.add(f"SELECT {name}(n) AS v FROM s [RANGE 10 seconds SLIDE 10 seconds]", name=name)
        engine.add(f"SELECT {name}(n) AS v FROM s [RANGE 10 seconds SLIDE 10 seconds] WHERE n BETWEEN 1 AND 100", name=f"{name}_of_few")
    sink = MemorySink()
    stopped = engine.run(sink).stopped
    found = {
        name: {int((row["window_end"] - START).total_seconds()): row["v"] for row in sink.table(name).to_pylist()}
        for name in (query.name for query in engine.queries)
        if name in sink.tables()
    }
    assert set(stopped) == set(STOPS)
    for name, end in STOPS.items():
        assert set(found.get(name, {})) == {10, 20, 30, 40, 50} & set(range(end)), name
    assert found["squared"] == {10: 34, 20: 49}
    assert found["guarded"] == {10: 34, 20: 49, 30: 2**40 % 10, 40: 2 * (2**62 % 10), 50: 1}
    assert found["guarded_too"] == {10: 1, 20: 0, 30: 0, 40: 0, 50: 1}
    assert found["squared_of_few"] == {10: 34, 20: 49, 50: 1}
    assert found["inverse_of_few"] == {10: 1, 20: 0, 50: 1}
    assert "squared(n) fits its type bigint" in stopped["squared"]


def test_windows_of_slices_overflow_where_the_slices_do_not(spark: SparkSession) -> None:
    engine = Engine(spark, aggregates=[total("summed", LIFTS["summed"])])
    rows = [(START + timedelta(seconds=second), 2**62) for second in (1, 11, 31)]
    engine.stream("s", spark.createDataFrame(rows, "ts TIMESTAMP, n BIGINT"), time="ts")
    engine.add("SELECT summed(n) AS v FROM s [RANGE 20 seconds SLIDE 10 seconds]", name="long")
    engine.add("SELECT summed(n) AS v FROM s [RANGE 10 seconds SLIDE 10 seconds]", name="short")
    sink = MemorySink()
    assert set(engine.run(sink).stopped) == {"long"}
    assert [row["v"] for row in sink.table("long").to_pylist()] == [2**62]
    assert [row["v"] for row in sink.table("short").to_pylist()] == [2**62] * 3


def test_a_lift_that_does_not_use_what_it_is_given_is_refused(spark: SparkSession) -> None:
    from pyspark.sql import functions

    engine = Engine(spark, aggregates=[total("mine", lambda F, n: {"total": functions.sum(n)})])  # noqa: N803
    engine.stream("s", spark.createDataFrame([(START, 1)], "ts TIMESTAMP, n BIGINT"), time="ts")
    engine.add("SELECT mine(n) AS v FROM s [RANGE 20 seconds SLIDE 10 seconds]", name="q")
    with pytest.raises(Refusal, match="the lift of mine makes a Column for each part, of the functions and Columns it is given"):
        engine.run()
