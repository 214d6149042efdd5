"""The laws on the pure core: shared = unshared = reference, for random queries, rows, batch cuts and arrival orders."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence, Set
from copy import deepcopy
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cases import (
    COLUMNS,
    SCHEMA,
    arguments,
    calls,
    cut,
    fallible_predicates,
    lifted,
    moment,
    python_partials,
    queries,
    query_sets,
    rows,
    windows,
)
from muntin import reference
from muntin.aggregates import AGGREGATES
from muntin.aggregates.base import Differential
from muntin.columnar import to_arrow
from muntin.expression import functions
from muntin.expression.tree import AggregateCall, Expression, Literal
from muntin.plan.divide import Sharing
from muntin.plan.shared import PartialColumn, SharedPlan, shared_plan
from muntin.plan.slices import SliceManager, Slicing
from muntin.query.model import GroupColumn, Output, Query
from muntin.schema import BIGINT, INT
from muntin.semantics import TimeWindow, extent, wids
from muntin.semantics import windows as window_ids
from muntin.timeline import BEGINNING, END, Interval, instant_of
from muntin.windows.assembly import Assembly
from muntin.windows.lowering import ResultChunk, tables_by_query
from muntin.windows.shards import grouping_layout
from muntin.windows.snapshots import restore, snapshot

Batches = list[list[dict[str, Any]]]
STRATEGIES = [(sharing, slicing) for sharing in Sharing for slicing in Slicing]


pytestmark = pytest.mark.usefixtures("small_pieces")


@dataclass(frozen=True)
class Outcome:
    """What a run emitted for each query, and which of them stopped on their data."""

    rows: dict[str, list[dict[str, Any]]]
    stopped: Set[str]

    @staticmethod
    def of(names: Iterable[str], chunks: Sequence[ResultChunk]) -> Outcome:
        tables = tables_by_query(chunks)
        rows = {name: tables[name].to_pylist() if name in tables else [] for name in names}
        return Outcome(rows, {chunk.query for chunk in chunks if chunk.error})

    def check(self, query: Query, truth: reference.Results) -> None:
        """A query emits what the reference says and stops where the reference does."""
        ours = self.rows[query.name]
        assert same(ours, truth), f"{query}\nours  {ours}\ntruth {truth}"
        assert (query.name in self.stopped) == (truth.error is not None), f"{query}\nstopped {self.stopped}, but {truth.error}"


def run(
    plan: SharedPlan,
    batches: Batches,
    *,
    slack: int | None,
    restart_after: int | None = None,
    tables: reference.Tables | None = None,
) -> Outcome:
    """The engine's steps over Python rows: absorb each batch, punctuate by slack (or only at the end), close all at the end."""
    assembly = Assembly(plan)
    chunks = []
    for at, batch in enumerate(batches):
        punctuation = assembly.punctuation
        if slack is not None and batch:
            punctuation = max(instant_of(row["ts"]) for row in batch) - slack
        latest = max((instant_of(row["ts"]) for row in batch), default=BEGINNING)
        chunks += assembly.step([python_partials(batch, grouping, tables) for grouping in plan.groupings], punctuation, latest)
        if at == restart_after:
            assembly = restarted(assembly)
    chunks += assembly.step([grouping_layout(grouping).empty() for grouping in plan.groupings], END, BEGINNING)
    return Outcome.of([plan.query.name for plan in plan.queries], chunks)


def restarted(old: Assembly) -> Assembly:
    """A new assembly from a snapshot of an old one."""
    new = Assembly(old.plan, latest=old.latest, lives=deepcopy(old.lives))
    restore(new, snapshot(old), old.punctuation)
    return new


def same(ours: list[dict[str, Any]], truth: list[dict[str, Any]]) -> bool:
    return len(ours) == len(truth) and all(
        list(a) == list(b) and all(same_value(a[name], b[name]) for name in a) for a, b in zip(ours, truth, strict=True)
    )


def same_value(a: Any, b: Any) -> bool:
    if isinstance(a, float) and isinstance(b, float):
        return (math.isnan(a) and math.isnan(b)) or math.isclose(a, b, rel_tol=1e-9, abs_tol=1e-6)
    return type(a) is type(b) and a == b


@settings(max_examples=2000)
@given(
    some_queries=query_sets,
    some_rows=st.lists(rows, max_size=25),
    places=st.lists(st.integers(0, 100), max_size=4),
    strategy=st.sampled_from(STRATEGIES),
    slack=st.none() | st.integers(0, 30),
    restart_after=st.none() | st.integers(0, 3),
)
def test_every_strategy_cut_and_arrival_order_gives_the_reference_result(
    some_queries: tuple[Query, ...],
    some_rows: list[dict[str, Any]],
    places: list[int],
    strategy: tuple[Sharing, Slicing],
    slack: int | None,
    restart_after: int | None,
) -> None:
    """Rows come in any order: with slack, those that come too late miss closed windows here and in the reference alike."""
    sharing, slicing = strategy
    plan = shared_plan(some_queries, AGGREGATES, sharing=sharing, slicing=slicing)
    batches = cut(some_rows, places)
    ours = run(plan, batches, slack=slack, restart_after=restart_after)
    arrived, _ = reference.arrivals(batches, time="ts", slack=10**9 if slack is None else slack)
    for query in some_queries:
        ours.check(query, reference.results(query, arrived, AGGREGATES))


@settings(max_examples=300)
@given(
    some_queries=query_sets,
    some_rows=st.lists(rows, max_size=25),
    disorder=st.lists(st.integers(0, 12), min_size=25, max_size=25),
    places=st.tuples(st.lists(st.integers(0, 100), max_size=4), st.lists(st.integers(0, 100), max_size=4)),
)
def test_cutting_the_input_differently_changes_nothing_while_no_row_is_late(
    some_queries: tuple[Query, ...], some_rows: list[dict[str, Any]], disorder: list[int], places: tuple[list[int], list[int]]
) -> None:
    keyed = sorted(enumerate(some_rows), key=lambda item: instant_of(item[1]["ts"]) + disorder[item[0]])
    arriving = [row for _, row in keyed]
    plan = shared_plan(some_queries, AGGREGATES)
    assert run(plan, cut(arriving, places[0]), slack=12) == run(plan, cut(arriving, places[1]), slack=12)


@given(some_queries=query_sets, some_rows=st.lists(rows, max_size=20), places=st.lists(st.integers(0, 100), max_size=3))
def test_a_query_does_not_depend_on_its_neighbours(
    some_queries: tuple[Query, ...], some_rows: list[dict[str, Any]], places: list[int]
) -> None:
    batches = cut(some_rows, places)
    together = run(shared_plan(some_queries, AGGREGATES), batches, slack=5)
    for query in some_queries:
        alone = run(shared_plan([query], AGGREGATES), batches, slack=5)
        assert same(together.rows[query.name], alone.rows[query.name])
        assert alone.stopped == together.stopped & {query.name}


@settings(max_examples=2000)
@given(
    some_queries=query_sets,
    predicate=fallible_predicates,
    some_rows=st.lists(rows, max_size=20),
    places=st.lists(st.integers(0, 100), max_size=3),
    sharing=st.sampled_from(Sharing),
)
def test_a_query_whose_predicate_fails_stops_at_that_window_and_the_others_go_on(
    some_queries: tuple[Query, ...], predicate: Expression, some_rows: list[dict[str, Any]], places: list[int], sharing: Sharing
) -> None:
    failing = replace(some_queries[0], where=predicate)
    together = [failing, *some_queries[1:]]
    ours = run(shared_plan(together, AGGREGATES, sharing=sharing), cut(some_rows, places), slack=None)
    for query in together:
        ours.check(query, reference.results(query, [reference.Arrival(row) for row in some_rows], AGGREGATES))


@given(window=windows, instant=st.integers(-500, 500), window_id=st.integers(-50, 50))
def test_extent_and_wids_are_inverse(window: TimeWindow, instant: int, window_id: int) -> None:
    assert all(instant in extent(w, window) for w in wids(instant, window))
    assert (instant in extent(window_id, window)) == (window_id in wids(instant, window))
    assert extent(window_id, window).end - extent(window_id, window).start == window.range


@given(window=windows, low=st.integers(-100, 100), length=st.integers(1, 60))
def test_windows_are_those_whose_extent_meets_the_span(window: TimeWindow, low: int, length: int) -> None:
    span = Interval(low, low + length)
    found = set(window_ids(span, window))
    meeting = {w for instant in range(span.start, span.end) for w in wids(instant, window)}
    assert meeting <= found
    assert all(extent(w, window).start < span.end and extent(w, window).end > span.start for w in found)


@given(some=st.lists(windows, min_size=1, max_size=6), slicing=st.sampled_from(Slicing), low=st.integers(-200, 200))
def test_each_instant_is_in_one_slice_and_a_window_is_a_run_of_whole_slices(some: list[TimeWindow], slicing: Slicing, low: int) -> None:
    manager = SliceManager(some, slicing)
    span = Interval(low, low + 120)
    edges = list(manager.edges(span))
    assert edges == sorted(set(edges))
    instants = np.arange(span.start, span.end)
    starts = manager.slice_starts(instants)
    assert all(edge in set(starts.tolist()) for edge in edges)
    for instant, start in zip(instants.tolist(), starts.tolist(), strict=True):
        assert start <= instant
        assert {tuple(wids(instant, window)) for window in some} == {tuple(wids(start, window)) for window in some}
        assert [wids(instant, window) for window in some] == [wids(start, window) for window in some]
        assert manager.tick.floor(instant) >= start


@pytest.mark.parametrize("aggregate", sorted(AGGREGATES))
@given(data=st.data(), values=st.lists(rows, min_size=1, max_size=12), places=st.tuples(st.integers(0, 12), st.integers(0, 12)))
def test_combine_obeys_its_laws(aggregate: str, data: st.DataObject, values: list[dict[str, Any]], places: tuple[int, int]) -> None:
    """Associative, commutative, with identity; uncombine undoes combine; any split lowers to the aggregate over the whole."""
    args = data.draw(st.sampled_from(arguments(aggregate)))
    function = AGGREGATES[aggregate]
    type = function.result_type(*(arg.type for arg in args))
    a, b, c = [*cut(values, list(places))]
    lowered = []
    for partial, taken in function.partials(*(arg.type for arg in args)):
        column = PartialColumn(partial, tuple(args[at] for at in taken))
        x, y, z = (partial.decode(*lifted(column, [shard])) for shard in (a, b, c))
        identity = tuple(np.array([one], dtype=lane.dtype) for one, lane in zip(partial.identity(), x, strict=True))
        left, right = partial.combine(partial.combine(x, y), z), partial.combine(x, partial.combine(y, z))
        assert close(left, right)
        assert close(partial.combine(x, y), partial.combine(y, x))
        assert close(partial.combine(identity, x), x)
        assert close(partial.combine(x, identity), x)
        if isinstance(partial, Differential):
            assert all((p == q).all() for p, q in zip(partial.uncombine(left, z), partial.combine(x, y), strict=True))
        running = partial.accumulate(tuple(np.concatenate(parts) for parts in zip(x, y, z, strict=True)))
        assert close(tuple(lane[-1:] for lane in running), left)
        reduced = partial.reduce(tuple(np.concatenate(parts) for parts in zip(x, y, z, strict=True)), np.array([0, 2]))
        assert close(tuple(lane[:1] for lane in reduced), partial.combine(x, y))
        lowered.append(left)
    result = function.lower(type, *lowered)
    ours = to_arrow(result.values, result.valid, type).to_pylist()[0]
    truth = function.evaluate([tuple(reference.value(arg, row) for arg in args) for row in values], type)
    assert same_value(ours, truth), (ours, truth)


def close(a: tuple[Any, ...], b: tuple[Any, ...]) -> bool:
    return all(same_value(p, q) or p == q for x, y in zip(a, b, strict=True) for p, q in zip(x.tolist(), y.tolist(), strict=True))


@given(call=calls)
def test_every_aggregate_can_be_tried(call: AggregateCall) -> None:
    assert call.aggregate in AGGREGATES
    assert all(arg.type in {field.type for field in SCHEMA.fields} or arg.type.precision for arg in call.args)


@given(query=queries())
def test_a_partial_column_is_stored_once(query: Query) -> None:
    twin = Query(**{**query.__dict__, "name": "twin"})
    plan = shared_plan([query, twin], AGGREGATES)
    assert len(plan.groupings) == 1
    assert plan.groupings[0].columns == shared_plan([query], AGGREGATES).groupings[0].columns


def test_decimals_keep_every_digit() -> None:
    assert same_value(Decimal("0.10"), Decimal("0.10"))
    assert not same_value(1, True)


def test_having_guards_the_select_list() -> None:
    """Groups that HAVING leaves out are not computed, so they cannot fail."""
    count = AggregateCall("count", (), BIGINT)
    less_one = functions.call("-", count, Literal(1, BIGINT))
    query = Query(
        name="q",
        stream="s",
        window=TimeWindow(range=10, slide=10),
        outputs=(Output("r", functions.call("/", Literal(10, INT), less_one)),),
        group_by=(GroupColumn("seg", COLUMNS["seg"]),),
        having=functions.call(">", count, Literal(1, INT)),
    )
    some_rows = [{"ts": moment(at), "seg": seg} for at, seg in ((1, "a"), (2, "a"), (3, "b"))]
    assert [row["r"] for row in run(shared_plan([query], AGGREGATES), [some_rows], slack=None).rows["q"]] == [10.0]


def test_many_slices_and_groups_are_taken_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Memory of a batch that spans a long time is bounded, and the pieces change no result."""
    monkeypatch.setattr("muntin.windows.assembly.CELLS_AT_ONCE", 50)
    monkeypatch.setattr("muntin.windows.closing.CELLS_AT_ONCE", 7)
    monkeypatch.setattr("muntin.windows.closing.WINDOWS_AT_ONCE", 3)
    count = AggregateCall("count", (), BIGINT)
    top = AggregateCall("max", (COLUMNS["lane"],), INT)
    outputs = (Output("c", count), Output("m", top))
    by_seg = Query("g", "s", TimeWindow(range=17, slide=5), outputs, group_by=(GroupColumn("seg", COLUMNS["seg"]),))
    total = Query("t", "s", TimeWindow(range=8, slide=3), outputs, emit_empty=True)
    some_rows = [{"ts": moment(at * at % 997 * 3), "seg": f"s{at % 37}", "lane": at % 11} for at in range(300)]
    ours = run(shared_plan([by_seg, total], AGGREGATES), [some_rows[:200], some_rows[200:]], slack=None).rows
    arrived = [reference.Arrival(row) for row in some_rows]
    assert same(ours["g"], reference.results(by_seg, arrived, AGGREGATES))
    assert same(ours["t"], reference.results(total, arrived, AGGREGATES))
