"""Law 2 for every type of window: `extent` and `wids` are inverse; and what ticks, row numbers and classes are."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cases import moment, windows
from muntin.errors import Refusal
from muntin.schema import BIGINT, DATE, DOUBLE, FLOAT, INT, STRING, TIMESTAMP, decimal
from muntin.semantics import (
    ROWS,
    TIME,
    Context,
    LandmarkWindow,
    Measure,
    SlideOrder,
    SlidingWindow,
    TupleSlide,
    Unit,
    Window,
    context_of,
    extent,
    measure_of,
    row_numbers,
    state_of,
    wids,
    wids_after,
)
from muntin.semantics import windows as window_ids
from muntin.timeline import BEGINNING, DAY, HOUR, MINUTE, SECOND, Interval

landmarks = st.builds(
    lambda slide, times, offset: LandmarkWindow(slide, times and times * slide, offset),
    st.integers(1, 12),
    st.none() | st.integers(1, 5),
    st.integers(-7, 20),
)
tuple_slides = st.builds(TupleSlide, range=st.integers(1, 20), slide=st.integers(1, 5), order=st.sampled_from(SlideOrder))
ticks = st.integers(-60, 90)


@given(window=windows | landmarks, tick=ticks, span=st.tuples(ticks, st.integers(1, 60)))
def test_extent_and_wids_are_inverse(window: SlidingWindow | LandmarkWindow, tick: int, span: tuple[int, int]) -> None:
    some = Interval(span[0], span[0] + span[1])
    for window_id in range(-160, 160):
        inside = extent(window_id, window)
        assert (tick in inside) == (window_id in wids(tick, window))
        assert (inside.end > tick) == (window_id >= wids_after(tick, window))
        meets = any(one in inside for one in range(some.start, some.end))
        assert meets == (window_id in window_ids(some, window))


@given(window=tuple_slides, arrived=st.lists(st.integers(0, 40), max_size=20))
def test_extent_and_wids_of_slide_by_tuple_windows_are_inverse(window: TupleSlide, arrived: list[int]) -> None:
    ids = window_ids(arrived, window)
    assert set(ids) <= set(arrived)
    for tick in arrived:
        assert [w for w in ids if tick in extent(w, window)] == [w for w in ids if w in wids(tick, window)]


@given(arrived=st.lists(st.integers(0, 9), max_size=20), slide=st.integers(1, 5))
def test_every_nth_tuple_by_arrival_or_in_order_ends_a_window(arrived: list[int], slide: int) -> None:
    by_arrival, by_rank = (TupleSlide(range=3, slide=slide, order=order) for order in SlideOrder)
    assert window_ids(arrived, by_arrival) == sorted({tick for at, tick in enumerate(arrived, 1) if at % slide == 0})
    assert window_ids(arrived, by_rank) == sorted({tick for at, tick in enumerate(sorted(arrived), 1) if at % slide == 0})
    assert window_ids(sorted(arrived), by_arrival) == window_ids(arrived, by_rank)


@given(partitions=st.lists(st.sampled_from("abc"), max_size=20))
def test_row_numbers_count_each_partition_by_itself(partitions: list[str]) -> None:
    numbers = row_numbers(partitions)
    for one in set(partitions):
        assert [number for number, partition in zip(numbers, partitions, strict=True) if partition == one] == list(
            range(partitions.count(one))
        )


@given(partitions=st.lists(st.sampled_from("ab"), max_size=20), range_=st.integers(1, 6), slide=st.integers(1, 4))
def test_extent_and_wids_of_partitioned_windows_are_inverse(partitions: list[str], range_: int, slide: int) -> None:
    """An id is a partition and a number; a tuple is in it if it is of the partition and its number there is in the extent."""
    window = SlidingWindow(range_, slide, wattr="row_num", measure=ROWS, pattr=("p",))
    tuples = list(zip(partitions, row_numbers(partitions), strict=True))
    ids = [(partition, number) for partition in "ab" for number in range(30)]
    for partition, number in tuples:
        mine = {(partition, w) for w in wids(number, window)}
        assert mine == {one for one in ids if one[0] == partition and number in extent(one[1], window)}


def test_a_landmark_window_cumulates_up_to_the_next_landmark() -> None:
    daily = LandmarkWindow(6 * HOUR, DAY)
    assert [extent(w, daily) for w in range(3, 6)] == [
        Interval(0, 24 * HOUR),
        Interval(DAY, DAY + 6 * HOUR),
        Interval(DAY, DAY + 12 * HOUR),
    ]
    assert [list(wids(at, daily)) for at in (DAY - 1, DAY, DAY + 6 * HOUR)] == [[3], [4, 5, 6, 7], [5, 6, 7]]
    for_ever = LandmarkWindow(HOUR)
    assert extent(7, for_ever) == Interval(BEGINNING, 8 * HOUR)
    assert [wids(at, for_ever).start for at in (HOUR - 1, HOUR, HOUR + 1)] == [0, 1, 1]


@pytest.mark.parametrize("period", [0, -6, 10])
def test_a_landmark_period_is_a_multiple_of_slide(period: int) -> None:
    with pytest.raises(Refusal, match="LANDMARK a multiple of it"):
        LandmarkWindow(6, period)


def test_lengths_are_positive() -> None:
    for broken in (lambda: SlidingWindow(5, 0), lambda: TupleSlide(0), lambda: TupleSlide(5, -1), lambda: LandmarkWindow(0)):
        with pytest.raises(Refusal, match="longer than zero"):
            broken()


# -- ticks --------------------------------------------------------------------------------------------------------------------------


@given(value=st.floats(-1e9, 1e9), edge=st.integers(-(10**15), 10**15))
def test_a_double_stands_on_the_side_of_an_edge_that_comparing_doubles_says(value: float, edge: int) -> None:
    measure = measure_of(DOUBLE)
    assert measure is not None
    nearest = float(Fraction(edge, 10**6))  # the double nearest to the edge, as a literal in SQL is read
    assert (measure.tick(value) >= edge) == (value >= nearest)
    assert measure.tick(nearest) == edge
    assert measure.value(edge) == nearest


@given(value=st.decimals(-1000, 1000, places=2), edge=st.integers(-1000, 1000))
def test_a_decimal_has_the_ticks_of_its_last_digit(value: Decimal, edge: int) -> None:
    measure = Measure(Unit.NUMBER, 2)
    assert (measure.tick(value) >= edge) == (value >= Decimal(edge).scaleb(-2))
    assert measure.value(measure.tick(value)) == value


@pytest.mark.parametrize(
    ("type", "measure", "bound"),
    [
        (TIMESTAMP, TIME, TIMESTAMP),
        (INT, Measure(Unit.NUMBER), BIGINT),
        (BIGINT, Measure(Unit.NUMBER), BIGINT),
        (decimal(10, 2), Measure(Unit.NUMBER, 2), decimal(20, 2)),
        (decimal(18, 0), Measure(Unit.NUMBER), BIGINT),
        (FLOAT, Measure(Unit.DOUBLE, 6), DOUBLE),
    ],
)
def test_the_type_of_a_column_fixes_its_ticks_and_the_type_of_bounds(type: object, measure: Measure, bound: object) -> None:
    assert measure_of(type) == measure  # type: ignore[arg-type]
    assert measure.bound_type == bound


@pytest.mark.parametrize("type", [STRING, DATE, decimal(19, 2)])
def test_other_types_order_no_windows(type: object) -> None:
    assert measure_of(type) is None  # type: ignore[arg-type]


@pytest.mark.parametrize("value", [float("nan"), float("inf"), 2.0**53 / 10**6, -(2.0**53) / 10**6])
def test_doubles_without_exact_ticks_are_refused(value: float) -> None:
    with pytest.raises(Refusal, match="cast the column to DECIMAL"):
        Measure(Unit.DOUBLE, 6).tick(value)
    assert Measure(Unit.DOUBLE, 6).tick(9007199254.0) == 9007199254 * 10**6


def test_values_come_back_from_ticks() -> None:
    assert TIME.value(TIME.tick(moment(5))) == moment(5)
    assert ROWS.value(7) == 7
    assert [Measure(Unit.NUMBER, 2).text(length) for length in (250, 100, 5)] == ["2.5", "1", "0.05"]
    assert [ROWS.text(length) for length in (1, 10)] == ["1 row", "10 rows"]
    with pytest.raises(Refusal, match="at most 2 digits after the point"):
        Measure(Unit.NUMBER, 2).length(Decimal("0.125"))


# -- classes ------------------------------------------------------------------------------------------------------------------------

CLASSES: list[tuple[Window, Context, str]] = [
    (SlidingWindow(300, 60), Context.CF, "partials of the slices in the last RANGE, 300 microseconds"),
    (
        SlidingWindow(1000, 10, wattr="row_num", measure=ROWS),
        Context.CF,
        "partials of the slices in the last RANGE, 1000 rows, one row counter",
    ),
    (
        SlidingWindow(1000, 10, wattr="row_num", measure=ROWS, pattr=("seg",)),
        Context.FCF,
        "partials of the slices in the last RANGE, 1000 rows, a row counter per partition",
    ),
    (LandmarkWindow(HOUR), Context.CF, "one partial per slice that is open, one for all since the beginning"),
    (LandmarkWindow(HOUR, DAY), Context.CF, "one partial per slice that is open, one for all since the landmark"),
    (TupleSlide(300 * SECOND), Context.FCB, "one partial per distinct ts in the last RANGE, 5 minutes"),
    (
        TupleSlide(MINUTE, 5),
        Context.FCB,
        "one partial per distinct ts in the last RANGE, 1 minute, which of them an n-th tuple ended, one row counter",
    ),
    (
        TupleSlide(MINUTE, 5, order=SlideOrder.RANK),
        Context.FCU,
        "one partial per distinct ts in the last RANGE, 1 minute, how many tuples have each, a count of those below",
    ),
]


@pytest.mark.parametrize(("window", "context", "state"), CLASSES)
def test_each_window_has_the_class_and_the_state_of_the_paper(window: Window, context: Context, state: str) -> None:
    assert context_of(window) is context
    assert state_of(window) == state
