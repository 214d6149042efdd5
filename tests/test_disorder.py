"""Punctuations: what each maker promises, that promises are kept where their assumption holds, and what happens when it does not."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cases import cut
from muntin.disorder import (
    ArrivalClock,
    BelievedClock,
    Carried,
    Counts,
    Heartbeat,
    Key,
    Maker,
    Observation,
    Ordered,
    Punctuations,
    Punctuator,
    RowCount,
    Seen,
    Slack,
    TupleSlack,
    record,
    restored,
)
from muntin.errors import Refusal
from muntin.timeline import BEGINNING, END, MINUTE, SECOND

Row = tuple[Key, int]


def observed(rows: list[Row], clock: int = 0, markers: dict[Key, int] | None = None) -> Observation:
    """A batch of (sub-stream, tick) as its observation."""
    ticks: dict[Key, list[int]] = {key: [] for key in markers or {}}
    for key, tick in rows:
        ticks.setdefault(key, []).append(tick)
    return Observation(
        clock,
        {
            key: Seen(len(some), min(some, default=END), max(some, default=BEGINNING), (markers or {}).get(key, BEGINNING))
            for key, some in ticks.items()
        },
    )


def whole(*ticks: int) -> list[Row]:
    return [((), tick) for tick in ticks]


def after(punctuator: Punctuator, *observations: Observation) -> Punctuator:
    for one in observations:
        punctuator = punctuator.observe(one)
    return punctuator


def overall(*makers: Maker, rows: list[list[Row]]) -> list[int]:
    """The punctuation after each batch."""
    punctuator, made = Punctuator(makers), []
    for batch in rows:
        punctuator = punctuator.observe(observed(batch))
        made.append(punctuator.punctuations.overall)
    return made


# -- makers ----------------------------------------------------------------------------------------------------------------------------


def test_slack_is_the_greatest_less_the_slack_and_never_goes_back() -> None:
    assert overall(Slack(5), rows=[whole(10, 3), whole(7), [], whole(20)]) == [5, 5, 5, 15]


def test_slack_by_tuples_promises_what_enough_rows_came_after() -> None:
    assert overall(TupleSlack(3), rows=[whole(10, 4), whole(8, 11), whole(9), whole(12, 13, 14)]) == [BEGINNING, BEGINNING, 10, 11]
    assert overall(TupleSlack(0), rows=[whole(10), whole(12)]) == [10, 12]


def test_sorted_sub_streams_are_complete_each_by_itself_and_together_below_the_least() -> None:
    a, b = ("a",), ("b",)
    punctuator = after(Punctuator((Ordered(),)), observed([(a, 5), (b, 9)]), observed([(a, 7)]))
    assert punctuator.punctuations == Punctuations(7, {a: 7, b: 9})
    assert [punctuator.punctuations.at(key) for key in (a, b, ("new",))] == [7, 9, 7]


def test_sub_streams_that_are_expected_hold_back_before_they_are_heard() -> None:
    punctuator = Punctuator((Ordered(slack=2),), expected=frozenset({("a",), ("b",)}))
    punctuator = punctuator.observe(observed([(("a",), 50)]))
    assert punctuator.punctuations == Punctuations(BEGINNING, {("a",): 48})
    assert punctuator.observe(observed([(("b",), 30)])).punctuations.overall == 28


def test_a_marker_of_a_sub_stream_completes_it_and_one_without_a_sub_stream_completes_all() -> None:
    s6, s7 = ("s6",), ("s7",)
    punctuator = after(Punctuator((Carried(),)), observed([(s6, 5), (s7, 6)]), observed([], markers={s6: 11}))
    assert punctuator.punctuations == Punctuations(BEGINNING, {s6: 11, s7: BEGINNING})
    assert punctuator.observe(observed([(s7, 9)], markers={s7: 8})).punctuations.overall == 8
    assert punctuator.observe(observed([], markers={(): 10})).punctuations.at(s7) == 10


def test_a_heartbeat_moves_the_punctuation_while_nothing_comes() -> None:
    punctuator = after(Punctuator((Slack(5), Heartbeat(delay=30))), observed(whole(10), clock=20), observed([], clock=100))
    assert punctuator.punctuations.overall == 70


def test_makers_combine_to_the_strongest_promise() -> None:
    assert overall(Slack(100), TupleSlack(2), rows=[whole(10), whole(200, 5), whole(50, 60)]) == [-90, 100, 200]


def test_row_numbers_are_complete_below_the_count_and_partitions_do_not_wait_for_each_other() -> None:
    assert overall(RowCount(), rows=[whole(7, 7), [], whole(1)]) == [2, 2, 3]
    punctuator = after(Punctuator((RowCount(),)), observed([(("a",), 0)] * 5 + [(("b",), 0)]))
    assert [punctuator.punctuations.at(key) for key in (("a",), ("b",), ("new",))] == [5, 1, BEGINNING]


def test_arrival_is_complete_up_to_now() -> None:
    assert after(Punctuator((ArrivalClock(),)), observed(whole(3), clock=50)).punctuations.overall == 50


def test_something_makes_punctuations() -> None:
    with pytest.raises(Refusal, match="give a slack, an order, a heartbeat or markers"):
        Punctuator(())


# -- promises are kept -----------------------------------------------------------------------------------------------------------------


def displaced(some: list[int], tuples: int) -> bool:
    """Whether every row comes at most `tuples` positions after a greater one."""
    return all(not any(one > late for one in some[: max(0, at - tuples)]) for at, late in enumerate(some))


rows_and_cuts = {"some": st.lists(st.integers(0, 30), max_size=15), "places": st.lists(st.integers(0, 15), max_size=5)}


@given(**rows_and_cuts, data=st.data())
def test_a_promise_is_kept_where_its_bound_on_disorder_holds(some: list[int], places: list[int], data: st.DataObject) -> None:
    late_by = max((max(some[:at], default=0) - tick for at, tick in enumerate(some)), default=0)
    positions = next(bound for bound in range(len(some) + 1) if displaced(some, bound))
    makers: list[Maker] = [Slack(max(late_by, 0)), TupleSlack(positions)]
    chosen = data.draw(st.lists(st.sampled_from(makers), min_size=1, unique=True))
    punctuator = Punctuator(tuple(chosen))
    before = BEGINNING
    for batch in cut(some, places):
        punctuator = punctuator.observe(observed(whole(*batch)))
        assert punctuator.punctuations.overall >= before
        before = punctuator.punctuations.overall
    assert punctuator.counts.broken == 0


@given(
    rows=st.lists(st.tuples(st.sampled_from([("a",), ("b",), ("c",)]), st.integers(0, 30)), max_size=15),
    places=st.lists(st.integers(0, 15), max_size=5),
)
def test_sorted_sub_streams_in_any_interleaving_break_no_promise(rows: list[Row], places: list[int]) -> None:
    values = {key: iter(sorted(tick for one, tick in rows if one == key)) for key in {key for key, _ in rows}}
    interleaved = [(key, next(values[key])) for key, _ in rows]
    punctuator = Punctuator((Ordered(),), expected=frozenset(values))
    for batch in cut(interleaved, places):
        punctuator = punctuator.observe(observed(batch))
    assert punctuator.counts.broken == 0


# -- what goes wrong -------------------------------------------------------------------------------------------------------------------


def test_an_idle_source_leaves_the_punctuation_where_it_is_and_is_counted() -> None:
    punctuator = after(
        Punctuator((Ordered(),), idle_after=SECOND), observed([(("a",), 5)]), *(observed([], clock=MINUTE * at) for at in (1, 2))
    )
    assert punctuator.punctuations.overall == 5
    assert punctuator.counts.idle == 2


@pytest.mark.parametrize(("silent", "reached", "stalled"), [(9, 5, 0), (10, 5, 0), (11, 40, 1)])
def test_a_stalled_partition_holds_the_others_back_until_it_is_idle(silent: int, reached: int, stalled: int) -> None:
    slow, fast = (0,), (1,)
    punctuator = Punctuator((Ordered(),), idle_after=10).observe(observed([(slow, 5), (fast, 6)], clock=100))
    punctuator = punctuator.observe(observed([(fast, 40)], clock=100 + silent))
    assert (punctuator.punctuations.overall, punctuator.counts.stalled) == (reached, stalled)


def test_a_partition_that_returns_is_late_by_its_own_order_and_holds_back_again() -> None:
    slow, fast = (0,), (1,)
    given_to = [
        observed([(slow, 5), (fast, 6)], clock=0),
        observed([(fast, 40)], clock=11),
        observed([(slow, 7)], clock=12),
        observed([(slow, 45), (fast, 90)], clock=13),
    ]
    punctuator = after(Punctuator((Ordered(),), idle_after=10), *given_to)
    assert punctuator.punctuations.overall == 45
    assert punctuator.counts == Counts(stalled=1, broken=1)


def test_a_broken_promise_is_counted_and_the_punctuation_stays() -> None:
    s6 = ("s6",)
    punctuator = after(Punctuator((Carried(),)), observed([(s6, 5)], markers={s6: 11}))
    for tick, broken in ((12, 0), (11, 0), (10, 1)):
        then = punctuator.observe(observed([(s6, tick)]), rows_late=broken)
        assert (then.counts.broken, then.counts.rows_late) == (broken, broken)
        assert then.punctuations.at(s6) == 11


def test_a_clock_that_leaps_is_followed_step_by_step_and_one_that_goes_back_stands_still() -> None:
    clock, believed = BelievedClock(step=10), []
    for reading in (100, 105, 115, 10_000, 10_001, 120, 131, 90, 135):
        clock = clock.observe(reading)
        believed.append(clock.now)
    assert believed == [100, 105, 115, 125, 135, 135, 135, 135, 135]
    assert clock.jumps == 5  # ahead, back, ahead by 11, back, ahead


def test_a_clock_that_leaps_does_not_close_everything() -> None:
    punctuator = Punctuator((Heartbeat(delay=0),), clock=BelievedClock(step=MINUTE)).observe(observed([], clock=0))
    leapt = punctuator.observe(observed([], clock=10**15))
    assert leapt.punctuations.overall == MINUTE
    assert leapt.counts.clock_jumps == 1


def test_the_end_of_the_input_completes_everything() -> None:
    assert after(Punctuator((Ordered(),)), observed([(("a",), 5)])).closed().punctuations.at(("b",)) == END


# -- checkpoints -----------------------------------------------------------------------------------------------------------------------

MAKERS: list[Maker] = [Slack(3), TupleSlack(2), Ordered(1), Carried(), Heartbeat(9), RowCount(), ArrivalClock()]


@given(
    makers=st.lists(st.sampled_from(MAKERS), min_size=1, max_size=4),
    batches=st.lists(st.lists(st.tuples(st.sampled_from([(), ("a", 1), (None,)]), st.integers(0, 30)), max_size=5), max_size=4),
    at=st.integers(0, 4),
)
def test_a_punctuator_comes_back_from_json(makers: list[Maker], batches: list[list[Row]], at: int) -> None:
    declared = Punctuator(tuple(makers), idle_after=10)
    through = whole_run = declared
    for number, batch in enumerate(batches):
        one = observed(batch, clock=number * 7, markers={("a", 1): number})
        whole_run = whole_run.observe(one)
        through = through.observe(one)
        if number == at:
            written: dict[str, Any] = json.loads(json.dumps(record(through)))
            through = restored(declared, written)
    assert through == whole_run


def test_a_state_of_other_makers_is_refused() -> None:
    with pytest.raises(Refusal, match="restored as it was declared"):
        restored(Punctuator((Slack(1),)), record(Punctuator((Slack(1), Carried()))))
    with pytest.raises(Refusal, match="named by strings"):
        record(after(Punctuator((Ordered(),)), observed([((1.5,), 3)])))
