"""Groups have numbers of their own, whatever their types, and whatever their hashes."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from muntin.windows import groups
from muntin.windows.groups import GroupIndex
from muntin.windows.hashes import row_hashes

KINDS = {
    pa.string(): st.one_of(st.none(), st.text(max_size=2)),
    pa.int32(): st.one_of(st.none(), st.integers(-3, 3)),
    pa.float64(): st.one_of(st.none(), st.sampled_from([0.0, -0.0, 1.5, float("nan"), float("inf")])),
    pa.decimal128(20, 2): st.one_of(st.none(), st.integers(-(10**19), 10**19).map(lambda one: Decimal(one).scaleb(-2))),
    pa.bool_(): st.one_of(st.none(), st.booleans()),
    pa.timestamp("us", tz="UTC"): st.one_of(st.none(), st.integers(-5, 5)),
}


@st.composite
def batches(draw: st.DrawFn) -> tuple[list[pa.DataType], list[list[list[object]]]]:
    types = draw(st.lists(st.sampled_from(list(KINDS)), min_size=1, max_size=3))
    sizes = draw(st.lists(st.integers(0, 12), min_size=1, max_size=4))
    return types, [[draw(st.lists(KINDS[one], min_size=size, max_size=size)) for one in types] for size in sizes]


def obvious(value: object) -> object:
    """A value as a key of a dict: NaN is one value, and so are both zeros."""
    if isinstance(value, float):
        return "NaN" if value != value else value + 0.0
    return value


def numbered(types: list[pa.DataType], parts: list[list[list[object]]]) -> list[tuple[object, int]]:
    """Every row's values with the number it was given."""
    index = GroupIndex(tuple(types))
    found = []
    for part in parts:
        columns = [pa.array(values, type=type) for values, type in zip(part, types, strict=True)]
        numbers = index.numbers(columns, len(part[0]))
        found += zip(zip(*(column.to_pylist() for column in columns), strict=True), numbers.tolist(), strict=True)
        for values, number in found:
            held = tuple(column[number].as_py() for column in index.columns())
            assert tuple(map(obvious, held)) == tuple(map(obvious, values))
    return [(tuple(map(obvious, values)), number) for values, number in found]


@given(batches())
def test_equal_groups_have_one_number_and_different_ones_have_two(case: tuple[list[pa.DataType], list[list[list[object]]]]) -> None:
    pairs = numbered(*case)
    assert len({values for values, _ in pairs}) == len(set(pairs)) == len({number for _, number in pairs})


@given(batches())
def test_groups_whose_hashes_collide_are_still_told_apart(case: tuple[list[pa.DataType], list[list[list[object]]]]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(groups, "row_hashes", lambda columns: row_hashes(columns) % 2)
        pairs = numbered(*case)
    assert len({values for values, _ in pairs}) == len(set(pairs)) == len({number for _, number in pairs})


def test_kept_groups_are_found_under_their_new_numbers() -> None:
    index = GroupIndex((pa.int64(),))
    index.numbers([pa.array(range(10))], 10)
    values = index.columns()[0].to_pylist()
    index.keep(np.array([7, 2]))
    assert index.numbers([pa.array([values[7], values[2], 99])], 3).tolist() == [0, 1, 2]
    assert index.columns()[0].to_pylist() == [values[7], values[2], 99]
