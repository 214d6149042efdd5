"""The oracle on every type of window, late policy and early result: small cases by hand, and that cuts and orders change nothing."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cases import cut
from muntin.aggregates import AGGREGATES
from muntin.reference import Arrival, Promise, Step, emitted, results
from muntin.timeline import END, SECOND, datetime_of
from traffic import clock_time, query, reading, steps, tick

COUNT = "SELECT count(*) AS n FROM traffic"


def rows_of(found: Sequence[dict[str, Any]], *names: str) -> list[tuple[Any, ...]]:
    return [tuple(row[name] for name in names) for row in found]


def ends_and(found: Sequence[dict[str, Any]], *names: str) -> list[tuple[Any, ...]]:
    """Window ends in microseconds where they are times, then columns."""
    return [(tick({"ts": row["window_end"]}), *(row[name] for name in names)) for row in found]


def arrived(*times: int, seg: str = "s1") -> list[dict[str, Any]]:
    return [reading(at, seg) for at in times]


# -- the running example of window-id-2005, section 2 ----------------------------------------------------------------------------------

Q1 = query(
    "SELECT seg_id, max(speed) AS fastest, min(speed) AS slowest FROM traffic [RANGE 300 seconds SLIDE 60 seconds WATTR ts] GROUP BY seg_id"
)


def test_the_running_example_punctuation_p1_closes_extent_10_of_segment_s6_and_no_other() -> None:
    t1 = reading(clock_time("12:10:30"), "s6", speed=55.0)
    others = [reading(clock_time("12:10:10"), "s6", speed=61.0), reading(clock_time("12:08:00"), "s7", speed=40.0)]
    p1 = Promise(clock_time("12:11"), of=(("seg_id", "s6"),))
    (m1,) = [row for row in emitted(Q1, [Step([t1, *others], [p1])], AGGREGATES) if row["window_end"] > datetime_of(clock_time("12:10"))]
    assert m1 == {
        "window_start": datetime_of(clock_time("12:06")),
        "window_end": datetime_of(clock_time("12:11")),
        "seg_id": "s6",
        "fastest": 61.0,
        "slowest": 55.0,
    }


def test_a_row_of_another_segment_is_not_late_for_a_punctuation_on_s6() -> None:
    promise = Promise(clock_time("12:11"), of=(("seg_id", "s6"),))
    late = [reading(clock_time("12:06:30"), seg, speed=50.0) for seg in ("s6", "s7")]
    found = emitted(Q1, [Step((), [promise]), Step(late), Step((), [Promise(END)])], AGGREGATES)
    at_eleven = [row["seg_id"] for row in found if row["window_end"] == datetime_of(clock_time("12:11"))]
    assert at_eleven == ["s7"]


# -- rows and partitions ---------------------------------------------------------------------------------------------------------------


def test_windows_of_rows_count_arrivals_whatever_their_times() -> None:
    q2 = query(f"{COUNT} [RANGE 4 rows SLIDE 2 rows WATTR row_num]")
    batches = [arrived(50, 40, 30), arrived(20, 10)]
    assert rows_of(emitted(q2, [Step(batch) for batch in batches], AGGREGATES), "window_start", "window_end", "n") == [
        (-2, 2, 2),
        (0, 4, 4),
    ]
    assert rows_of(emitted(q2, steps(batches), AGGREGATES), "window_end", "n") == [(2, 2), (4, 4), (6, 3), (8, 1)]


def test_where_comes_after_the_window_so_row_numbers_count_every_row() -> None:
    odd = query("SELECT sum(vehicles) AS v FROM traffic [RANGE 2 rows SLIDE 2 rows] WHERE vehicles <> 2")
    some = [reading(0, vehicles=number) for number in (1, 2, 2, 2, 5, 6)]
    assert rows_of(emitted(odd, [Step(some)], AGGREGATES), "window_end", "v") == [(2, 1), (6, 11)]


def test_pattr_gives_each_partition_windows_of_its_own_and_group_by_divides_each_window() -> None:
    """The example of docs/windows.md: Q2 and Q4 of the paper over six rows."""
    some = [reading(at, seg) for at, seg in enumerate("aabaab")]
    grouped = query("SELECT seg_id, count(*) AS n FROM traffic [RANGE 4 rows SLIDE 2 rows WATTR row_num] GROUP BY seg_id")
    partitioned = query("SELECT seg_id, count(*) AS n FROM traffic [RANGE 4 rows SLIDE 2 rows WATTR row_num PATTR seg_id]")
    by_group, by_partition = (
        rows_of(emitted(one, [Step(some)], AGGREGATES), "window_end", "seg_id", "n") for one in (grouped, partitioned)
    )
    assert by_group == [(2, "a", 2), (4, "a", 3), (4, "b", 1), (6, "a", 2), (6, "b", 2)]
    assert by_partition == [(2, "a", 2), (2, "b", 2), (4, "a", 4)]


def test_pattr_over_time_is_group_by() -> None:
    some = [reading(at, seg) for at, seg in enumerate("aabaab")]
    both = [
        query(f"SELECT seg_id, count(*) AS n FROM traffic {clause}")
        for clause in ("[RANGE 3 us SLIDE 2 us PATTR seg_id]", "[RANGE 3 us SLIDE 2 us] GROUP BY seg_id")
    ]
    first, second = (emitted(one, steps([some]), AGGREGATES) for one in both)
    assert first == second


# -- numbers, arrival ------------------------------------------------------------------------------------------------------------------


def test_windows_over_a_decimal_have_bounds_of_its_type() -> None:
    by_mile = query(f"{COUNT} [RANGE 1.5 SLIDE 0.5 WATTR mile]")
    some = [reading(0, mile=Decimal(mile)) for mile in ("0.49", "0.50", "1.25")]
    assert rows_of(emitted(by_mile, steps([some]), AGGREGATES), "window_start", "window_end", "n") == [
        (Decimal(start), Decimal(end), n)
        for start, end, n in [("-1", "0.5", 1), ("-0.5", "1", 2), ("0", "1.5", 3), ("0.5", "2", 2), ("1", "2.5", 1)]
    ]


def test_a_double_at_an_edge_belongs_to_the_window_that_starts_there() -> None:
    by_speed = query(f"{COUNT} [RANGE 0.1 SLIDE 0.1 WATTR speed]")
    some = [reading(0, speed=0.1 * 3), reading(0, speed=0.3), reading(0, speed=0.29999999999999993)]
    assert rows_of(emitted(by_speed, steps([some]), AGGREGATES), "window_start", "n") == [(0.2, 1), (0.3, 2)]


def test_arrival_ts_is_the_clock_and_a_clock_that_goes_back_stands_still() -> None:
    by_arrival = query(f"{COUNT} [RANGE 10 us SLIDE 10 us WATTR arrival_ts]")
    some = [Step(arrived(99), clock=5), Step(arrived(1, 2), clock=12), Step(arrived(3), clock=11), Step(arrived(4), clock=30)]
    assert ends_and(emitted(by_arrival, some, AGGREGATES), "n") == [(10, 1), (20, 3)]


# -- landmarks -------------------------------------------------------------------------------------------------------------------------


def test_landmark_windows_grow_from_the_beginning() -> None:
    landmark = query("SELECT count(*) AS n, window_start AS s FROM traffic [RANGE UNBOUNDED SLIDE 10 us WATTR ts]")
    assert rows_of(emitted(landmark, steps([arrived(-3, 5, 31)]), AGGREGATES), "window_start", "s", "n") == [
        (None, None, n) for n in (1, 2, 2, 2, 3)
    ]


def test_landmark_windows_with_a_period_begin_anew() -> None:
    daily = query(f"{COUNT} [RANGE UNBOUNDED SLIDE 5 us LANDMARK 10 us WATTR ts]")
    found = emitted(daily, steps([arrived(1, 6, 9, 10, 22)]), AGGREGATES)
    assert ends_and(found, "n") == [(5, 1), (10, 3), (15, 1), (20, 1), (25, 1), (30, 1)]
    assert [tick({"ts": row["window_start"]}) for row in found] == [0, 0, 10, 10, 20, 20]


def test_a_landmark_window_without_new_rows_is_emitted_when_the_punctuation_reaches_it() -> None:
    landmark = query(f"{COUNT} [RANGE UNBOUNDED SLIDE 10 us WATTR ts]")
    assert ends_and(emitted(landmark, [Step(arrived(5), [Promise(42)])], AGGREGATES), "n") == [(10, 1), (20, 1), (30, 1), (40, 1)]


# -- slide-by-tuple --------------------------------------------------------------------------------------------------------------------


def test_a_window_ends_at_each_tuple_and_holds_it_but_not_one_a_whole_range_before() -> None:
    q3 = query("SELECT count(*) AS n, window_start AS s FROM traffic [RANGE 10 us RATTR ts SLIDE 1 row SATTR row_num]")
    found = emitted(q3, steps([arrived(0, 9, 10, 11)]), AGGREGATES)
    assert ends_and(found, "n") == [(0, 1), (9, 2), (10, 2), (11, 3)]
    assert [tick({"ts": row["s"]}) for row in found] == [-10, -1, 0, 1]


def test_tuples_of_one_time_share_a_window() -> None:
    q3 = query(f"{COUNT} [RANGE 10 us RATTR ts SLIDE 1 row SATTR row_num]")
    assert ends_and(emitted(q3, steps([arrived(5, 3, 5)]), AGGREGATES), "n") == [(3, 1), (5, 3)]


def test_the_nth_tuple_ends_a_window_by_arrival_or_by_rank() -> None:
    times = arrived(7, 1, 5, 2, 3, 4)
    by_arrival = query(f"{COUNT} [RANGE 100 us RATTR ts SLIDE 2 rows SATTR row_num]")
    by_rank = query(f"{COUNT} [RANGE 100 us RATTR ts SLIDE 2 rows SATTR rank(ts)]")
    assert ends_and(emitted(by_arrival, steps([times]), AGGREGATES), "n") == [(1, 1), (2, 2), (4, 4)]
    assert ends_and(emitted(by_rank, steps([times]), AGGREGATES), "n") == [(2, 2), (4, 4), (7, 6)]


def test_group_by_divides_every_tuples_window_and_pattr_gives_each_partition_its_own() -> None:
    some = [reading(1, "a"), reading(2, "b")]
    grouped = query("SELECT seg_id, count(*) AS n FROM traffic [RANGE 10 us RATTR ts SLIDE 1 row SATTR row_num] GROUP BY seg_id")
    partitioned = query("SELECT seg_id, count(*) AS n FROM traffic [RANGE 10 us RATTR ts SLIDE 1 row SATTR row_num PATTR seg_id]")
    assert ends_and(emitted(grouped, steps([some]), AGGREGATES), "seg_id", "n") == [(1, "a", 1), (2, "a", 1), (2, "b", 1)]
    assert ends_and(emitted(partitioned, steps([some]), AGGREGATES), "seg_id", "n") == [(1, "a", 1), (2, "b", 1)]


def test_a_late_tuple_makes_no_window_but_counts_in_those_that_are_open() -> None:
    q3 = query(f"{COUNT} [RANGE 10 us RATTR ts SLIDE 1 row SATTR row_num]")
    batches = [arrived(1, 8), arrived(3), arrived(9)]
    assert ends_and(emitted(q3, steps(batches, [5, 5, 20]), AGGREGATES), "n") == [(1, 1), (8, 3), (9, 4)]


# -- late rows -------------------------------------------------------------------------------------------------------------------------

#: Windows [0, 10), [5, 15), …; the row at 7 comes when the first of its two windows is closed.
LATE = [arrived(2, 9, 14), arrived(7), arrived(30)]
SLIDING = f"{COUNT} [RANGE 10 us SLIDE 5 us]"


@pytest.mark.parametrize(
    ("policy", "found"),
    [
        ("LATE GENEROUS", [(5, 1), (10, 2), (15, 3), (20, 1), (35, 1), (40, 1)]),
        ("LATE CONSISTENT", [(5, 1), (10, 2), (15, 2), (20, 1), (35, 1), (40, 1)]),
    ],
)
def test_a_late_row_counts_in_its_open_windows_or_in_none(policy: str, found: list[tuple[int, int]]) -> None:
    assert ends_and(emitted(query(f"{SLIDING} {policy}"), steps(LATE, [12, 12, 32]), AGGREGATES), "n") == found


def test_a_corrected_result_is_emitted_again_with_the_next_revision() -> None:
    corrected = query(f"{SLIDING} LATE REEMIT FOR 8 us")
    found = emitted(corrected, steps([*LATE[:2], arrived(8), arrived(1)], [12, 12, 18, 18]), AGGREGATES)
    assert ends_and(found, "n", "revision") == [
        (5, 1, 0), (10, 2, 0),  # closed by the punctuation 12
        (10, 3, 1),  # the row at 7
        (10, 4, 2), (15, 4, 0),  # the row at 8: it corrects one window, and its own punctuation 18 closes the other
        (20, 1, 0),  # at the end; the row at 1 came past the horizon of both its windows
    ]  # fmt: skip


def test_a_window_is_not_corrected_past_its_horizon() -> None:
    corrected = query(f"{SLIDING} LATE REEMIT FOR 8 us")
    for punctuation, revisions in ((17, [0, 1]), (18, [0]), (19, [0])):
        found = emitted(corrected, [Step(arrived(7), [Promise(punctuation)]), Step(arrived(8))], AGGREGATES)
        assert [row["revision"] for row in found if row["window_end"] == datetime_of(10)] == revisions


def test_a_late_row_alone_in_its_window_is_its_first_result() -> None:
    corrected = query(f"{SLIDING} LATE REEMIT FOR 100 us")
    found = emitted(corrected, [Step(arrived(40), [Promise(40)]), Step(arrived(7))], AGGREGATES)
    assert ends_and(found, "n", "revision") == [(10, 1, 0), (15, 1, 0)]


# -- early results ---------------------------------------------------------------------------------------------------------------------


def test_early_results_are_of_open_windows_with_new_rows_and_not_final() -> None:
    early = query("SELECT seg_id, count(*) AS n FROM traffic [RANGE 10 us SLIDE 10 us] GROUP BY seg_id EMIT EVERY '10 seconds'")
    given = [
        Step(arrived(1, seg="a"), clock=3 * SECOND),
        Step(arrived(2, seg="b"), clock=9 * SECOND),
        Step(arrived(3, seg="a"), clock=11 * SECOND),  # the first step of a new period
        Step(arrived(4, seg="b"), clock=19 * SECOND),
        Step((), clock=31 * SECOND),  # a timer: b alone has news
        Step((), [Promise(10)], clock=45 * SECOND),
    ]
    found = emitted(early, given, AGGREGATES)
    assert rows_of(found, "seg_id", "n", "final") == [("a", 2, False), ("b", 1, False), ("b", 2, False), ("a", 2, True), ("b", 2, True)]


# -- what must not matter --------------------------------------------------------------------------------------------------------------

IN_ANY_ORDER = [
    "SELECT seg_id, count(*) AS n, max(vehicles) AS m FROM traffic [RANGE 12 us SLIDE 5 us] GROUP BY seg_id",
    f"{COUNT} [RANGE 7 SLIDE 2 WATTR vehicles] EMIT EMPTY",
    f"{COUNT} [RANGE UNBOUNDED SLIDE 7 us LANDMARK 21 us] WHERE vehicles > 2",
    f"{COUNT} [RANGE UNBOUNDED SLIDE 7 us]",
    "SELECT seg_id, sum(vehicles) AS v FROM traffic [RANGE 9 us RATTR ts SLIDE 1 row SATTR row_num] GROUP BY seg_id",
    "SELECT seg_id, min(vehicles) AS v FROM traffic [RANGE 9 us RATTR ts SLIDE 1 row SATTR row_num PATTR seg_id]",
    "SELECT seg_id, min(vehicles) AS v FROM traffic [RANGE 9 us RATTR ts SLIDE 3 rows SATTR rank(ts) PATTR seg_id]",
    f"{COUNT} [RANGE 9 us RATTR ts SLIDE 3 rows SATTR rank(ts)] EMIT EMPTY LATE CONSISTENT",
    "SELECT sum(vehicles) AS v FROM traffic [RANGE 12 us SLIDE 5 us] LATE REEMIT FOR 5 us",
]
BY_ARRIVAL = [
    "SELECT seg_id, sum(vehicles) AS v FROM traffic [RANGE 5 rows SLIDE 2 rows] GROUP BY seg_id",
    "SELECT seg_id, sum(vehicles) AS v FROM traffic [RANGE 5 rows SLIDE 2 rows PATTR seg_id]",
    f"{COUNT} [RANGE UNBOUNDED SLIDE 2 rows LANDMARK 6 rows]",
    f"{COUNT} [RANGE 9 us RATTR ts SLIDE 2 rows SATTR row_num]",
]
readings = st.lists(
    st.builds(lambda at, seg, vehicles: reading(at, seg, vehicles=vehicles), st.integers(0, 40), st.sampled_from("ab"), st.integers(0, 5)),
    max_size=12,
)


def kept_promises(batches: list[list[dict[str, Any]]], wattr: str, holding: list[int]) -> list[Step]:
    """After each batch a promise as high as it can be kept, less something; not beyond the latest, where landmark windows would go on."""
    made = []
    ticks = [[tick(row) if wattr == "ts" else row[wattr] for row in batch] for batch in batches]
    latest = max((one for batch in ticks for one in batch), default=0)
    for at, batch in enumerate(batches):
        below = min((one for rest in ticks[at + 1 :] for one in rest), default=latest) - holding[at % len(holding)]
        made.append(Step(batch, () if holding[at % len(holding)] > 9 else (Promise(below),)))
    return [*made, Step((), (Promise(END),))]


def in_order(found: list[dict[str, Any]]) -> list[str]:
    return sorted(map(repr, found))


@given(
    sql=st.sampled_from(IN_ANY_ORDER),
    some=readings,
    data=st.data(),
    places=st.lists(st.integers(0, 12), max_size=4),
    holding=st.lists(st.integers(0, 11), min_size=1, max_size=4),
)
def test_no_cut_order_or_kept_promise_changes_a_result(
    sql: str, some: list[dict[str, Any]], data: st.DataObject, places: list[int], holding: list[int]
) -> None:
    one = query(sql)
    shuffled = data.draw(st.permutations(some))
    given_steps = kept_promises(cut(shuffled, places), one.window.wattr, holding)
    ours = emitted(one, given_steps, AGGREGATES)
    assert in_order(ours) == in_order(emitted(one, steps([some]), AGGREGATES))
    if not one.late.horizon:
        assert ours == results(one, [Arrival(row) for row in shuffled], AGGREGATES)


@given(sql=st.sampled_from(BY_ARRIVAL), some=readings, places=st.lists(st.integers(0, 12), max_size=4))
def test_no_cut_changes_a_window_of_arrivals(sql: str, some: list[dict[str, Any]], places: list[int]) -> None:
    one = query(sql)
    assert in_order(emitted(one, steps(cut(some, places)), AGGREGATES)) == in_order(emitted(one, steps([some]), AGGREGATES))
