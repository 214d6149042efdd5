"""Groups by number: each distinct tuple of group values has a number of its own.

In: group columns as Arrow arrays. Out: numbers, and the values back, in order. Convention: NULL is a group and NaN is one group,
as in Spark; a query without GROUP BY has the one group `()`. Python sees each distinct group of a batch once, not each row.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from muntin.aggregates.base import Array

_NAN = float("nan")


def _values(column: pa.Array) -> list[Any]:
    """Python values, with one NaN for all: two NaN objects are not equal, one is identical to itself."""
    values = column.to_pylist()
    return [_NAN if value != value else value for value in values] if pa.types.is_floating(column.type) else values


def sortable(name: str, column: pa.Array) -> dict[str, pa.Array]:
    """What to sort a column by so that NULL comes first and NaN last."""
    flag = {f"{name} is NaN": pc.is_nan(column)} if pa.types.is_floating(column.type) else {}
    return flag | {name: column}


def codes_of(columns: Sequence[pa.Array]) -> Array:
    """A number per row, equal for rows of equal values."""
    code: Array = np.zeros(len(columns[0]), dtype=np.int64)
    for column in columns:
        encoded = column.dictionary_encode(null_encoding="encode")
        part = encoded.indices.to_numpy().astype(np.int64)
        code = np.unique(code * len(encoded.dictionary) + part, return_inverse=True)[1]
    return code


class GroupIndex:
    """Numbers of groups, given in order of first appearance."""

    def __init__(self, types: tuple[pa.DataType, ...]) -> None:
        self.types = types
        self._numbers: dict[tuple[Any, ...], int] = {} if types else {(): 0}
        self._order: Array | None = None
        self._columns: list[pa.Array] | None = None

    def __len__(self) -> int:
        return len(self._numbers)

    def numbers(self, columns: Sequence[pa.Array], rows: int) -> Array:
        """The number of each row's group; unseen groups get the next ones."""
        before = len(self._numbers)
        if self.types and rows:
            _, firsts, code = np.unique(codes_of(columns), return_index=True, return_inverse=True)
            distinct = [_values(column.take(pa.array(firsts))) for column in columns]
            found = [self._numbers.setdefault(key, len(self._numbers)) for key in zip(*distinct, strict=True)]
            numbers = np.array(found, dtype=np.int64)[code]
        else:
            numbers = np.zeros(rows, dtype=np.int64)
        if len(self._numbers) != before:
            self._order = self._columns = None
        return numbers

    def columns(self) -> list[pa.Array]:
        """The group columns, one value per number."""
        if self._columns is None:
            keys = list(self._numbers)
            self._columns = [pa.array([key[at] for key in keys], type=type) for at, type in enumerate(self.types)]
        return self._columns

    def order(self) -> Array:
        """Numbers sorted by group values, NULL first."""
        if self._order is None:
            if self.types:
                table = pa.table({name: column for at, one in enumerate(self.columns()) for name, column in sortable(str(at), one).items()})
                keys = [(name, "ascending", "at_start") for name in table.column_names]
                self._order = pc.sort_indices(table, sort_keys=keys).to_numpy().astype(np.int64)
            else:
                self._order = np.arange(len(self), dtype=np.int64)
        return self._order

    def keep(self, numbers: Array) -> None:
        """Only these groups stay, renumbered in their order; the one group of a query without GROUP BY always does."""
        if not self.types:
            return
        keys = list(self._numbers)
        self._numbers = {keys[number]: at for at, number in enumerate(numbers)}
        self._order = self._columns = None
