"""Predicates taken apart: the truth of a cell is the truth of every row in it."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from cases import COLUMNS, fallible_predicates, position_of, rows
from muntin.errors import DataError
from muntin.expression import functions
from muntin.expression.tree import Column, Expression, Literal
from muntin.plan.fragments import Truth, axes_of, decomposed
from muntin.plan.signatures import CellTruths, Signatures, fragments
from muntin.reference import value
from muntin.schema import BOOLEAN, INT


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


@settings(max_examples=300)
@given(some=st.lists(fallible_predicates, min_size=1, max_size=4), some_rows=st.lists(rows, min_size=1, max_size=8))
def test_the_cell_that_stands_for_a_fragment_has_the_signature_of_each_of_its_cells(
    some: list[Expression], some_rows: list[dict[str, Any]]
) -> None:
    axes = axes_of(tuple(some))
    standing = fragments(axes, tuple(some)) if axes else None
    if standing is None:
        return
    codes = [
        sum(position_of(axis, row) * math.prod(one.scale.size for one in axes[:at]) for at, axis in enumerate(axes)) for row in some_rows
    ]
    merged = [int(standing[code]) if code < len(standing) else code for code in codes]
    truths = CellTruths(axes, some)
    numbers = truths.numbers(np.array(codes + merged))
    told = np.where(truths.truths == Truth.NULL, Truth.FALSE, truths.truths)[:, numbers]
    assert (told[:, : len(codes)] == told[:, len(codes) :]).all()


def test_cells_that_no_predicate_tells_apart_are_one_fragment() -> None:
    n, flag = COLUMNS["n"], Column("flag", BOOLEAN)
    some = tuple(functions.call("and", flag, functions.call(">", n, Literal(number, INT))) for number in (1, 5, 9))
    axes = sorted(axes_of(some), key=lambda axis: axis.scale.steps)
    standing = fragments(tuple(axes), some)
    assert standing is not None
    false, true = 0, 1
    assert len(set(standing[false :: axes[0].scale.size])) == 1, "without the flag nothing holds, however large n is"
    assert len(set(standing[true :: axes[0].scale.size])) == 4
