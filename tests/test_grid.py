"""A grid over constants: what arithmetic leaves to comparisons is never too little, and positions are the same in Spark."""

from __future__ import annotations

import bisect
import math
from decimal import Decimal
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from muntin.expression.functions import call
from muntin.expression.tree import Column, Literal
from muntin.plan.fragments import Axis, axes_of
from muntin.schema import BIGINT, DOUBLE, STRING, Type, decimal
from muntin.spark.cells import CellSearch, Search
from muntin.spark.columns import spark_type
from muntin.spark.grid import Grid, grid_over

finite = st.floats(allow_nan=False, allow_infinity=False)
whole = st.integers(-(2**63), 2**63 - 1)
skewed = st.floats(0, 40).map(math.exp)


near = st.integers(-1_000, 1_000)
several = {"min_size": 4, "max_size": 60, "unique": True}


@given(
    st.one_of(
        *(
            st.tuples(st.lists(kind, **several).map(sorted), st.lists(other, max_size=20))
            for kind, other in ((finite, st.one_of(finite, skewed)), (whole, whole), (near, st.one_of(near, whole)), (skewed, finite))
        )
    )
)
def test_a_value_lies_among_the_constants_that_its_square_leaves_to_compare_with(case: tuple[list[Any], list[Any]]) -> None:
    constants, others = case
    grid = grid_over(constants, room=127)
    if grid is not None:
        holds(grid, constants, others)


def holds(grid: Grid, constants: list[Any], others: list[Any]) -> None:
    following = [one + 1 if isinstance(one, int) else math.nextafter(one, math.inf) for one in constants]
    endless = [] if isinstance(constants[0], int) else [math.inf, -math.inf]
    values = sorted([*constants, *others, *following, *endless])
    squares = grid.square_of(np.array([float(value) for value in values]))
    assert (np.diff(squares) >= 0).all()
    bases = grid.bases(constants)
    for value, square in zip(values, squares, strict=True):
        assert bases[square] <= bisect.bisect_right(constants, value) <= bases[square] + grid.compared


@given(st.lists(near, **several).map(sorted), st.lists(whole, max_size=20))
def test_whole_numbers_with_a_square_each_are_compared_with_nothing(constants: list[int], others: list[int]) -> None:
    grid = grid_over(constants, room=127)
    assert grid is not None
    assert (grid.compared, grid.roots, grid.power) == (0, 0, 0)
    holds(grid, constants, others)


@pytest.mark.parametrize("last", [2**53 - 1_000, 2**53, 2**53 + 2, 2**62])
def test_whole_numbers_that_doubles_do_not_tell_apart_are_compared(last: int) -> None:
    constants = list(range(last - 59, last + 1))
    grid = grid_over(constants, room=127)
    assert grid is None or grid.compared > 0
    if grid:
        holds(grid, constants, [last - 60, last + 2, 2**63 - 1, -(2**63)])


@given(st.lists(st.integers(20, 2_000), min_size=40, max_size=60, unique=True).map(sorted))
def test_constants_that_come_and_go_in_the_middle_leave_the_grid_as_it_is(constants: list[int]) -> None:
    ends = [20, *constants, 2_000]
    grids = [grid_over(sorted({*ends} - {gone}), room=127) for gone in constants[5:15]]
    assert len({(grid.low, grid.power) for grid in grids if grid and grid.roots == 0}) <= 1


@given(*(st.lists(one, **several).map(sorted) for one in (skewed, skewed)))
def test_a_grid_that_is_held_stays_while_it_fits(before: list[float], after: list[float]) -> None:
    held = grid_over(before, room=127)
    found = grid_over(after, 127, held)
    if held is None or found is None:
        return
    fits = int(np.bincount(held.square_of(np.array(after))).max()) <= held.compared
    assert (found == held) or not fits
    holds(found, after, before)


def test_a_grid_for_another_number_of_constants_is_not_kept() -> None:
    constants = [float(one) for one in range(100)]
    held = grid_over(constants, room=127)
    found = grid_over(constants, 1_023, held)
    assert held is not None
    assert found is not None
    assert (held.squares, found.squares) == (127 * 16, 1_023 * 16)


def test_where_no_grid_helps_there_is_none() -> None:
    assert grid_over([], room=127) is None
    assert grid_over(["a", "b", "c", "d"], room=127) is None
    assert grid_over([-1.7e308, 0.0, 1.0, 2.0, 1.7e308], room=127) is None
    assert grid_over([0.0, 1.0, 2.0, math.inf], room=127) is None


def axis_over(type: Type, constants: list[Any]) -> Axis:
    column = Column("x", type)
    (axis,) = axes_of(tuple(call(comparison, column, Literal(one, type)) for one in constants for comparison in (">", "<")))
    return axis


TENTHS = decimal(20, 1)


@pytest.mark.parametrize(
    ("type", "constants", "values", "gridded"),
    [
        (BIGINT, [5, 6, 7, 90, 1_000], [-(2**63), 0, 4, 5, 6, 7, 8, 999, 1_000, 1_001, 2_031, 2_032, 2**53 + 1, 2**63 - 1], True),
        (BIGINT, [5, 6, 7, 90, 1_000, 10**6, 2**53 + 1, 2**62], [0, 4, 5, 6, 7, 8, 2**53, 2**53 + 1, 2**53 + 2, 2**63 - 1], True),
        (DOUBLE, [0.1 * n for n in range(-40, 40)], [0.1 * n for n in range(-41, 41)] + [0.0, -0.0, math.nan, math.inf, -math.inf], True),
        (DOUBLE, [10.0**n for n in range(-12, 12)], [0.0, 1e-13, 1e-12, 3.0, 1e11, 1e12, math.nan, -1.0], True),
        (STRING, list("bdfhjln"), list("abcdno"), False),
        (TENTHS, list(range(2, 20, 3)), list(range(25)), False),
    ],
)  # fmt: skip
def test_a_row_is_where_its_axis_has_its_value(
    spark: SparkSession, type: Type, constants: list[Any], values: list[Any], gridded: bool
) -> None:
    if type == TENTHS:
        constants, values = [Decimal(one) for one in constants], [Decimal(one) for one in values]
    axis = axis_over(type, constants)
    search = Search.on(axis)
    assert (search.grid is not None) == gridded
    cells = CellSearch((search,))
    frame = spark.createDataFrame([(value,) for value in [*values, None]], f"x {spark_type(type).simpleString()}").coalesce(1)
    found = cells.positions(frame, {}, cells.tables({search: axis})).select(F.col("x"), cells.cell((search,)).alias("cell")).collect()
    assert [row["cell"] for row in found] == [axis.position(value) for value in [*values, None]]
