"""Predicates taken apart: the truth of a cell is the truth of every row in it."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from cases import COLUMNS, fallible_predicates, position_of, rows
from muntin.errors import DataError
from muntin.expression import functions
from muntin.expression.tree import Expression, Literal
from muntin.plan.fragments import Truth, axes_of, decomposed
from muntin.plan.signatures import Signatures
from muntin.reference import value
from muntin.schema import INT


def truth_of(predicate: Expression, row: dict[str, Any]) -> Truth:
    try:
        held = value(predicate, row)
    except DataError:
        return Truth.FAILED
    return Truth.NULL if held is None else Truth(int(held))


@settings(max_examples=1000)
@given(some=st.lists(fallible_predicates, min_size=1, max_size=4), some_rows=st.lists(rows, min_size=1, max_size=8))
def test_the_signature_of_a_cell_is_the_truth_of_every_predicate_on_its_rows(
    some: list[Expression], some_rows: list[dict[str, Any]]
) -> None:
    taken_apart = [decomposed(predicate) for predicate in some]
    signatures = Signatures(axes_of(tuple(some)))
    cells = {expression: np.array([position_of(axis, row) for row in some_rows]) for expression, axis in signatures.axes.items()}
    for predicate, parts in zip(some, taken_apart, strict=True):
        truths = signatures.truths(parts, cells, len(some_rows))
        assert [Truth(truth) for truth in truths] == [truth_of(predicate, row) for row in some_rows], str(predicate)


def test_constants_of_many_predicates_cut_one_axis() -> None:
    some = [functions.call(">", COLUMNS["n"], Literal(number, INT)) for number in (5, 3, 5, 9)]
    (axis,) = axes_of(tuple(some))
    assert [cut.value for cut in axis.cuts] == [4, 6, 10], "above 3 is at least 4"
    assert [axis.position(number) for number in (3, 4, 9, 10)] == [0, 1, 2, 3]
