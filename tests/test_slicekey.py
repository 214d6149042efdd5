"""Row → slice inside Spark: each of the three ways puts a row into its slice, and nothing that moves is compiled into code."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from pyspark.sql import functions as F

from muntin.plan.slices import SliceManager
from muntin.semantics import Alignment, TimeWindow
from muntin.spark import slicekey
from muntin.spark.slicekey import KeyKind, SliceKey, key_kind, moving
from muntin.timeline import SECOND, Interval

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ODD = [TimeWindow(range=10 * SECOND, slide=3_010_000)]
MANY = [TimeWindow(range=(600 + 7 * at) * SECOND + 10_000 * at, slide=(300 + 13 * at) * SECOND + 10_000 * at) for at in range(12)]
MINUTES = [TimeWindow(range=hours * 3600 * SECOND, slide=60 * SECOND) for hours in (1, 12, 24)]
SPARSE = [TimeWindow(range=50 * SECOND, slide=300 * SECOND)]
STARTS = [TimeWindow(range=50 * SECOND, slide=30 * SECOND, offset=-7 * SECOND, alignment=Alignment.STARTS)]


def instants(count: int = 500) -> np.ndarray:
    """Some of today, some before 1970, some far away, and the neighbourhood of edges."""
    chance = np.random.default_rng(3)
    near = 1_700_000_000 * SECOND + chance.integers(0, 3600 * SECOND, count)
    return np.concatenate([near, chance.integers(-(10**15), 10**15, count), near // (10 * SECOND) * (10 * SECOND), [0, -1, 1]])


@pytest.mark.parametrize(
    ("windows", "grouped", "kind"),
    [
        (ODD, False, KeyKind.FORMULA),
        (MANY, False, KeyKind.RING),
        (MINUTES, True, KeyKind.TICK),
        (SPARSE, True, KeyKind.FORMULA),
        (SPARSE, False, KeyKind.TICK),
    ],
)
def test_the_way_is_chosen_by_how_fine_ticks_are_and_how_many_progressions(windows: list[TimeWindow], grouped: bool, kind: KeyKind) -> None:
    assert key_kind(SliceManager(windows), grouped=grouped) is kind


@pytest.mark.parametrize("windows", [ODD, MANY, MINUTES, STARTS, SPARSE])
@pytest.mark.parametrize("span", [None, Interval(1_700_000_000 * SECOND, 1_700_001_800 * SECOND)])
def test_every_row_gets_an_instant_of_its_own_slice(spark: SparkSession, windows: list[TimeWindow], span: Interval | None) -> None:
    slices, all_instants = SliceManager(windows), instants()
    frame = spark.createDataFrame([(int(one),) for one in all_instants], "t bigint")
    found = frame.select("t", SliceKey(slices, grouped=True).column(F.col("t"), span).alias("at")).toArrow()
    t, at = (np.array(column.to_numpy()) for column in found.columns)
    assert sorted(t.tolist()) == sorted(all_instants.tolist())
    assert (slices.slice_starts(at) == slices.slice_starts(t)).all()
    assert (at <= t).all()


def test_a_ring_gives_fewer_keys_than_ticks_where_it_reaches(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slicekey, "RING_TICKS", 90_000)  # half the span: the other half falls back to ticks
    slices = SliceManager(MANY)
    span = Interval(1_700_000_000 * SECOND, 1_700_001_800 * SECOND)
    frame = spark.range(20_000).select((F.lit(span.start) + F.col("id") * 90_000).alias("t"))
    keyed = frame.select("t", SliceKey(slices, grouped=True).column(F.col("t"), span).alias("at"))
    low, high = (
        keyed.where(where).select("at").distinct().count()
        for where in (F.col("t") < span.start + 900 * SECOND, F.col("t") >= span.start + 900 * SECOND)
    )
    assert low < 100 < high


def test_a_moving_number_is_the_same_for_every_row(spark: SparkSession) -> None:
    frame = spark.createDataFrame([(-3,), (0,), (7,)], "t bigint")
    assert frame.select(moving(2**60 + 1, F.col("t")).alias("m")).distinct().collect()[0]["m"] == 2**60 + 1
