"""Slide-by-tuple windows: the paper's bins, step by step as in its Figure 4; the core over arrays = the bins = the reference."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal
from typing import Any

import numpy as np
import pytest
from benchmarks import tuple_core
from hypothesis import given, settings
from hypothesis import strategies as st

from cases import cut, lifted
from muntin.aggregates import AGGREGATES
from muntin.aggregates.base import LaneType, Partial
from muntin.aggregates.extrema import Direction, Extremum
from muntin.aggregates.moments import Moments
from muntin.aggregates.sums import Count, FloatSum, NarrowSum
from muntin.columnar import to_arrow
from muntin.plan.shared import PartialColumn
from muntin.query.model import Query
from muntin.reference import Promise, Step, emitted
from muntin.reference.bins import Bins
from muntin.reference.rows import group_key, passes
from muntin.semantics import SlideOrder, TupleSlide
from muntin.timeline import BEGINNING, END
from muntin.windows import tupleids
from muntin.windows.bytuple import TupleWindows
from muntin.windows.segments import LONG, Places, ascending, firsts_of, running, running_backwards
from muntin.windows.tuplerows import TupleColumns, TupleRows
from muntin.windows.tuplesnapshots import held, restore
from traffic import query, reading, tick

# -- the paper's operator --------------------------------------------------------------------------------------------------------------

S1, S5, S2, S3, S4, LENGTH = 10, 12, 15, 18, 22, 10


def test_figure_4_the_arrival_of_t1_to_t5_step_by_step() -> None:
    """RANGE i is 10; t4 comes after t1's end bin at 20, and t5 comes out of order, between t1 and t2."""
    bins: Bins[int, None] = Bins(range=LENGTH, initial=0, update=lambda count, _: count + 1)
    init = {BEGINNING: 0}
    bins.process_tuple(S1, None)  # (a)
    assert (bins.start, bins.end) == ({S1: 1}, init | {S1 + LENGTH: 0})
    bins.process_tuple(S2, None)  # (b) Ss2 is Ss1 plus 1, Es2 is initialized from Es1, Es1 is incremented
    assert (bins.start, bins.end) == ({S1: 1, S2: 2}, init | {S1 + LENGTH: 1, S2 + LENGTH: 0})
    bins.process_tuple(S3, None)  # (c) Es1 and Es2 are incremented
    assert (bins.start, bins.end) == ({S1: 1, S2: 2, S3: 3}, init | {S1 + LENGTH: 2, S2 + LENGTH: 1, S3 + LENGTH: 0})
    bins.process_tuple(S4, None)  # (d) Ss4 is initialized from Es1: t2 and t3 are in its extent, t1 is not
    assert (bins.start[S4], bins.end[S1 + LENGTH]) == (3, 2)
    bins.process_tuple(S5, None)  # (e) Ss5 from Ss1 and Es5 from Es1; Ss2, Ss3 and Es1 are incremented
    assert (bins.start[S5], bins.end[S5 + LENGTH]) == (2, 3)
    assert (bins.start[S2], bins.start[S3], bins.end[S1 + LENGTH]) == (3, 4, 3)
    assert bins.process_punctuation(S2 + 1) == [(S1, 1), (S5, 2), (S2, 3)]
    assert sorted(bins.start) == [S3, S4]


@given(
    ticks=st.lists(st.integers(0, 40), max_size=15),
    range_=st.integers(1, 20),
    places=st.lists(st.integers(0, 15), max_size=4),
)
def test_bins_hold_what_their_extents_do_and_later_bins_do_not_need_purged_ones(ticks: list[int], range_: int, places: list[int]) -> None:
    bins: Bins[tuple[int, ...], int] = Bins(range=range_, initial=(), update=lambda seen, value: tuple(sorted((*seen, value))))
    found = []
    for at, batch in enumerate(batches := cut(ticks, places)):
        for one in batch:
            bins.process_tuple(one, one)
        found += bins.process_punctuation(min((one for rest in batches[at + 1 :] for one in rest), default=100))
    assert found == [(w, tuple(sorted(one for one in ticks if w - range_ < one <= w))) for w in sorted(set(ticks))]


# -- the core = the reference ----------------------------------------------------------------------------------------------------------

VALUES = "count(*) AS n, sum(vehicles) AS v, max(speed) AS fastest, avg(mile) AS mile, variance(speed) AS spread, min(seg_id) AS least"
BY_BOTH = "SELECT seg_id, vehicles, sum(speed) FROM traffic [RANGE {range} us RATTR ts SLIDE {slide} SATTR {sattr}"
SQL = [
    text.format(range=range_, slide=slide, sattr=sattr)
    for text in (
        f"SELECT {VALUES} FROM traffic [RANGE {{range}} us RATTR ts SLIDE {{slide}} SATTR {{sattr}}]",
        f"SELECT {VALUES} FROM traffic [RANGE {{range}} us RATTR ts SLIDE {{slide}} SATTR {{sattr}}] WHERE vehicles > 1",
        "SELECT count(*) AS n FROM traffic [RANGE {range} us RATTR ts SLIDE {slide} SATTR {sattr}] WHERE vehicles > 1 EMIT EMPTY",
        f"SELECT seg_id, {VALUES} FROM traffic [RANGE {{range}} us RATTR ts SLIDE {{slide}} SATTR {{sattr}}] GROUP BY seg_id",
        f"SELECT seg_id, {VALUES} FROM traffic [RANGE {{range}} us RATTR ts SLIDE {{slide}} SATTR {{sattr}} PATTR seg_id]",
        f"{BY_BOTH} PATTR seg_id] GROUP BY vehicles",
    )
    for range_ in (1, 7, 30)
    for slide, sattr in (("1 row", "row_num"), ("3 rows", "row_num"), ("3 rows", "rank(ts)"))
]
readings = st.builds(
    lambda at, seg, vehicles, speed, mile: reading(at, seg, vehicles=vehicles, speed=speed, mile=mile),
    st.integers(-20, 60),
    st.none() | st.sampled_from("ab"),
    st.integers(0, 3),
    st.none() | st.integers(-40, 40).map(lambda number: number / 8),
    st.none() | st.integers(-500, 500).map(lambda cents: Decimal(cents).scaleb(-2)),
)


class Pipe:
    """What the engine would do around the core: partials per series and tick, then values of results."""

    def __init__(self, one: Query) -> None:
        assert isinstance(one.window, TupleSlide)
        self.query, self.window = one, one.window
        self.parts = [
            (PartialColumn(partial, tuple(call.args[at] for at in taken)), call)
            for call in one.aggregate_calls
            for partial, taken in AGGREGATES[call.aggregate].partials(*(arg.type for arg in call.args))
        ]
        columns = [PartialColumn(Count(), ()), *(column for column, _ in self.parts)]
        self.columns = columns
        lanes = [column.partial.lanes(*(arg.type for arg in column.args)) for column in columns]
        self.lanes = lanes
        self.core = self._new()
        self.series: dict[str, int] = {}
        self.partitions: dict[str, int] = {}
        self.keys: list[tuple[Any, ...]] = []
        self.numbers: dict[str, int] = {}

    def _new(self) -> TupleWindows:
        return TupleWindows(self.window, TupleColumns([column.partial for column in self.columns], self.lanes), empty=self.query.emit_empty)

    def restart(self) -> None:
        state, self.core = held(self.core), self._new()
        restore(self.core, state)

    def absorb(self, batch: list[dict[str, Any]]) -> int:
        shards: dict[tuple[int, int], list[dict[str, Any]]] = {}
        marks: dict[tuple[int, int], int] = {}
        for row in batch:
            key = (self._series_of(row), tick(row))
            shards.setdefault(key, []).append(row)
            marks[key] = marks.get(key, 0) + self._mark(row)
        if not shards:
            return 0
        passing = [[row for row in shard if passes(self.query, row)] for shard in shards.values()]
        states = tuple(column.partial.decode(*lifted(column, passing)) for column in self.columns)
        series, ticks = (np.array(some, dtype=np.int64) for some in zip(*shards, strict=True))
        return self.core.absorb(TupleRows(series, ticks, np.array(list(marks.values()), dtype=np.int64), states))

    def _series_of(self, row: dict[str, Any]) -> int:
        key, partition = group_key(self.query, row), repr(tuple(row[name] for name in self.window.pattr))
        if repr(key) not in self.series:
            self.series[repr(key)] = len(self.series)
            self.keys.append(key)
            self.core.add_series(np.array([self.partitions.setdefault(partition, len(self.partitions))]))
        return self.series[repr(key)]

    def _mark(self, row: dict[str, Any]) -> int:
        partition = repr(tuple(row[name] for name in self.window.pattr))
        number = self.numbers[partition] = self.numbers.get(partition, 0) + 1
        return int(self.window.order is SlideOrder.RANK or number % self.window.slide == 0)

    def close(self, punctuation: int) -> Iterator[str]:
        for ends in self.core.close(punctuation):
            values = {}
            at = 1
            for call in self.query.aggregate_calls:
                count = len(AGGREGATES[call.aggregate].partials(*(arg.type for arg in call.args)))
                lowered = AGGREGATES[call.aggregate].lower(call.type, *ends.states[at : at + count])
                values[call] = to_arrow(lowered.values, lowered.valid, call.type).to_pylist()
                at += count
            for number, (series, end) in enumerate(zip(ends.series.tolist(), ends.ticks.tolist(), strict=True)):
                yield repr((end, self.keys[series], [rounded(column[number]) for column in values.values()]))


def rounded(value: Any) -> Any:
    return round(value, 6) if isinstance(value, float) else value


def expected(one: Query, steps: list[Step]) -> list[str]:
    calls = [output.name for output in one.outputs[len(one.group_by) :]]
    keys = [output.name for output in one.outputs[: len(one.group_by)]]
    return [
        repr((tick({"ts": row["window_end"]}), tuple(row[name] for name in keys), [rounded(row[name]) for name in calls]))
        for row in emitted(one, steps, AGGREGATES)
    ]


@settings(max_examples=300)
@given(
    sql=st.sampled_from(SQL),
    rows=st.lists(readings, max_size=20),
    places=st.lists(st.integers(0, 20), max_size=4),
    punctuations=st.lists(st.integers(-30, 90), min_size=5, max_size=5),
    restart_after=st.none() | st.integers(0, 3),
)
def test_the_core_gives_the_reference_result_for_any_cut_order_and_punctuations(
    sql: str, rows: list[dict[str, Any]], places: list[int], punctuations: list[int], restart_after: int | None
) -> None:
    """Punctuations come as they like, so rows may be late: they count in the windows that are open, in both."""
    one = query(sql)
    pipe, ours, late, reached = Pipe(one), list[str](), 0, BEGINNING
    steps = []
    for batch, punctuation in zip(cut(rows, places), punctuations, strict=False):
        late += pipe.absorb(batch)
        assert late or all(tick(row) >= reached for row in batch)
        reached = max(reached, punctuation)
        ours += pipe.close(punctuation)
        if len(steps) == restart_after:
            pipe.restart()
        steps.append(Step(batch, [Promise(punctuation)]))
    ours += pipe.close(END)
    assert sorted(ours) == sorted(expected(one, [*steps, Step((), [Promise(END)])]))


def test_groups_that_multiply_windows_are_taken_some_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tupleids, "PAIRS_AT_ONCE", 5)
    one = query("SELECT seg_id, count(*) AS n FROM traffic [RANGE 7 us RATTR ts SLIDE 1 row SATTR row_num] GROUP BY seg_id")
    rows = [reading(at * 7 % 31, "abc"[at % 3]) for at in range(40)]
    pipe = Pipe(one)
    pipe.absorb(rows)
    assert sorted(pipe.close(END)) == sorted(expected(one, [Step(rows, [Promise(END)])]))


def test_what_is_held_is_distinct_ticks_of_less_than_twice_the_range_and_no_tuple() -> None:
    core = TupleWindows(TupleSlide(100), TupleColumns([Count()], [[LaneType.INT64]]))
    core.add_series(np.array([0]))
    one = np.ones(500, dtype=np.int64)
    for start in range(0, 10_000, 50):
        ticks = np.repeat(np.arange(start, start + 50), 10)
        core.absorb(TupleRows(np.zeros(500, dtype=np.int64), ticks, one, ((one,),)))
        list(core.close(start + 50))
        state = held(core)
        assert len(state.previous) + len(state.current) + len(state.waiting) < 200


# -- segments --------------------------------------------------------------------------------------------------------------------------


@given(keys=st.lists(st.integers(0, 20), max_size=40) | st.lists(st.integers(0, 20), max_size=40).map(sorted))
def test_rows_are_put_in_order_and_equal_ones_stay_as_they_came(keys: list[int]) -> None:
    array = np.array(keys, dtype=np.int64)
    order = ascending(array)
    assert (order.tolist() if order is not None else list(range(len(keys)))) == np.argsort(array, kind="stable").tolist()


def test_a_few_rows_out_of_order_are_put_in_order_without_sorting_all() -> None:
    array = np.arange(1000)
    array[::10] -= 37
    order = ascending(array)
    assert order is not None
    assert order.tolist() == np.argsort(array, kind="stable").tolist()


@given(
    pairs=st.lists(st.tuples(st.integers(0, 5), st.integers(0, 50)), min_size=1, max_size=20),
    series=st.sampled_from([6, 2**20]),
    stretch=st.sampled_from([1, 2**50]),
)
def test_places_are_in_the_order_of_series_and_ticks_however_far_apart_they_are(
    pairs: list[tuple[int, int]], series: int, stretch: int
) -> None:
    numbers, ticks = (np.array(some, dtype=np.int64) for some in zip(*pairs, strict=True))
    ticks = ticks * stretch - 7
    places = Places(series, int(ticks.min()), int(ticks.max()), ticks).of(numbers, ticks)
    order = np.lexsort((ticks, numbers))
    assert np.argsort(places, kind="stable").tolist() == order.tolist()
    assert len(np.unique(places)) == len(set(pairs))


def test_ticks_too_far_apart_for_64_bits_change_nothing() -> None:
    some = [(0, 5), (1, 5), (0, 2**61), (1, 2**61 + 1), (2, 2**61 + 1)]
    core = TupleWindows(TupleSlide(2**60), TupleColumns([Count()], [[LaneType.INT64]]))
    core.add_series(np.arange(5))
    series, ticks = (np.array(part, dtype=np.int64) for part in zip(*some, strict=True))
    one = np.ones(len(some), dtype=np.int64)
    core.absorb(TupleRows(series, ticks, one, ((one,),)))
    assert sum(len(ends.ticks) for ends in core.close(2**61)) == 2
    ((ends,),) = [tuple(core.close(2**61 + 2))]
    assert sorted(zip(ends.series.tolist(), ends.states[0][0].tolist(), strict=True)) == [(0, 1), (1, 1), (2, 1)]


PARTIALS: list[tuple[Partial, int]] = [
    (Count(), 1),
    (NarrowSum(), 1),
    (FloatSum(), 1),
    (Extremum(Direction.MAX, LaneType.INT64), 1),
    (Extremum(Direction.MIN, LaneType.FLOAT64), 1),
    (Moments(), 3),
]


@given(
    which=st.sampled_from(PARTIALS),
    lengths=st.lists(st.sampled_from([1, 2, 3, 9, LONG - 1, LONG, LONG + 1]), min_size=1, max_size=6),
    seed=st.integers(0, 9),
)
def test_running_combines_stay_in_their_segments(which: tuple[Partial, int], lengths: list[int], seed: int) -> None:
    partial, lanes = which
    chance = np.random.default_rng(seed)
    count = sum(lengths)
    state = tuple(chance.integers(1, 50, count).astype(float) for _ in range(lanes))
    firsts = firsts_of(np.repeat(np.arange(len(lengths)), lengths))
    forwards, backwards = running(partial, state, firsts), running_backwards(partial, state, firsts)
    for first, length in zip(firsts.tolist(), lengths, strict=True):
        inside = tuple(lane[first : first + length] for lane in state)
        for made, truth in zip(forwards, partial.accumulate(inside), strict=True):
            assert np.allclose(made[first : first + length], truth)
        for made, truth in zip(backwards, partial.accumulate(tuple(lane[::-1] for lane in inside)), strict=True):
            assert np.allclose(made[first : first + length], truth[::-1])


def test_the_benchmark_of_the_core_checks_what_it_times() -> None:
    for case in tuple_core.cases(20_000):
        assert tuple_core.measured(replace(case, batch=3_000, range=case.range // 100), times=1) > 0
