"""Folding along an ordered expression: runs of cells, stretches of shards, and the same results whichever way shards are folded."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cases import COLUMNS, arguments, cut, lifted, query_sets, rows
from muntin import reference
from muntin.aggregates import AGGREGATES
from muntin.aggregates.base import State
from muntin.expression import functions
from muntin.expression.tree import Literal
from muntin.plan.cellruns import CellRuns, cell_runs
from muntin.plan.divide import Sharing
from muntin.plan.fragments import axes_of
from muntin.plan.shared import PartialColumn, shared_plan
from muntin.plan.signatures import CellTruths
from muntin.query.model import Query
from muntin.schema import INT
from muntin.windows.folding import MASK_NS
from muntin.windows.ordered import OrderedShards, RunningStates, whole_predicates
from muntin.windows.shards import Shards
from test_laws import close, run

#: What makes each way the cheapest wherever it can be taken at all.
WAYS: dict[str, dict[str, float]] = {
    "masks": {"folding.MASK_NS": 0.0, "folding.PREDICATE_NS": 0.0},
    "products": {"products.PRODUCT_NS": 0.0, "products.SPARSEST": math.inf},
    "runs": {"products.PRODUCT_NS": 1e9, "folding.MASK_NS": 1e9, "ordered.SPARSEST": math.inf},
}


def cells_of(runs: CellRuns, predicate: int) -> set[int]:
    mine = [(first, last) for of, first, last in zip(runs.predicate, runs.first, runs.last, strict=True) if of == predicate]
    return {rank for first, last in mine for rank in range(first, last)}


@given(codes=st.lists(st.integers(0, 39), min_size=1, max_size=20, unique=True), others=st.sampled_from([1, 4, 10]), bits=st.randoms())
def test_the_runs_of_a_predicate_are_the_cells_it_holds_in_and_no_two_of_them_touch(codes: list[int], others: int, bits: Any) -> None:
    holds = np.array([[bits.random() < 0.6 for _ in codes] for _ in range(4)])
    runs = cell_runs(np.array(codes), others, holds)
    in_order = np.argsort(runs.rank)
    assert [(codes[at] % others, codes[at] // others) for at in in_order] == sorted((code % others, code // others) for code in codes)
    for predicate in range(len(holds)):
        assert cells_of(runs, predicate) == {int(runs.rank[cell]) for cell in np.nonzero(holds[predicate])[0]}
    besides = np.array(codes)[in_order] % others
    for at in range(len(runs)):
        assert len(set(besides[runs.first[at] : runs.last[at]])) == 1, "a run stays with one combination of the other positions"
        follows = at + 1 < len(runs) and runs.predicate[at + 1] == runs.predicate[at] and runs.first[at + 1] == runs.last[at]
        assert not follows or besides[runs.first[at + 1]] != besides[runs.last[at] - 1]


@pytest.mark.parametrize("aggregate", sorted(AGGREGATES))
@given(
    data=st.data(),
    values=st.lists(rows, min_size=1, max_size=12),
    stretches=st.lists(st.tuples(st.integers(0, 12), st.integers(0, 12)), min_size=1, max_size=8),
)
def test_a_stretch_of_shards_is_their_combination(
    aggregate: str, data: st.DataObject, values: list[dict[str, Any]], stretches: list[tuple[int, int]]
) -> None:
    args = data.draw(st.sampled_from(arguments(aggregate)))
    low, high = np.sort(np.minimum(np.array(stretches), len(values)), axis=1).T
    for partial, taken in AGGREGATES[aggregate].partials(*(arg.type for arg in args)):
        column = PartialColumn(partial, tuple(args[at] for at in taken))
        state = partial.decode(*lifted(column, [[row] for row in values]))
        found = RunningStates(partial, state).between(low[:, None], high[:, None])
        for at, (first, last) in enumerate(zip(low.tolist(), high.tolist(), strict=True)):
            alone: State = tuple(np.array([one], dtype=lane.dtype) for one, lane in zip(partial.identity(), state, strict=True))
            for shard in range(first, last):
                alone = partial.combine(alone, tuple(lane[shard : shard + 1] for lane in state))
            assert close(tuple(lane[at] for lane in found), alone)


@settings(max_examples=300)
@given(
    some_queries=query_sets,
    some_rows=st.lists(rows, max_size=25),
    places=st.lists(st.integers(0, 100), max_size=3),
    way=st.sampled_from(sorted(WAYS)),
    slack=st.none() | st.integers(0, 30),
)
def test_whichever_way_shards_are_folded_results_are_those_of_the_reference(
    some_queries: tuple[Query, ...], some_rows: list[dict[str, Any]], places: list[int], way: str, slack: int | None
) -> None:
    batches = cut(some_rows, places)
    with pytest.MonkeyPatch.context() as patch:
        for name, value in WAYS[way].items():
            patch.setattr(f"muntin.windows.{name}", value)
        ours = run(shared_plan(some_queries, AGGREGATES, sharing=Sharing.SHARDS), batches, slack=slack)
    arrived, _ = reference.arrivals(batches, time="ts", slack=10**9 if slack is None else slack)
    for query in some_queries:
        ours.check(query, reference.results(query, arrived, AGGREGATES))


def shards_along(axis_cells: int, places: int, predicates: int) -> tuple[OrderedShards, Shards]:
    """A shard in each cell of `n` and each place; predicate p holds from cell p on."""
    wheres = [functions.call(">", COLUMNS["n"], Literal(number, INT)) for number in range(predicates)]
    cells = CellTruths(axes_of(tuple(wheres)), wheres)
    number = cells.numbers(np.arange(axis_cells))
    place, cell = np.repeat(np.arange(places), axis_cells), np.tile(number, places)
    shards = Shards(np.arange(places), np.zeros(places, dtype=np.int64), place, cell, ())
    return OrderedShards(shards, cells), shards


def test_runs_cost_little_where_predicates_are_many_and_nothing_is_looked_for_where_they_are_few() -> None:
    (count, _), *_ = AGGREGATES["count"].partials()
    users = np.arange(200)
    many, shards = shards_along(200, places=50, predicates=200)
    assert many.cost(count, users, below=math.inf) < MASK_NS * len(users) * len(shards.place) / 4
    assert many.cost(count, users, below=1_000.0) == math.inf


def test_predicates_are_taken_whole_however_few_runs_are_looked_up_at_once() -> None:
    predicate = np.array([0, 0, 0, 1, 3, 3])
    runs = CellRuns(np.arange(9), predicate, np.arange(6), np.arange(1, 7))
    for most in range(1, 8):
        parts = [part.predicate.tolist() for part in whole_predicates(runs, most)]
        assert [one for part in parts for one in part] == predicate.tolist()
        assert all(not set(one) & set(other) for at, one in enumerate(parts) for other in parts[:at])
    assert [len(part) for part in whole_predicates(runs, 4)] == [4, 2]
