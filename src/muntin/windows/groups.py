"""Groups by number: each distinct tuple of group values has a number of its own.

In: group columns as Arrow arrays. Out: numbers, and the values back, in order. Convention: NULL is a group and NaN is one group,
as in Spark; a query without GROUP BY has the one group `()`. All groups of a batch are looked up at once,
by binary search among the hashes of those known.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from muntin.aggregates.base import Array
from muntin.plan.numbering import Numbering
from muntin.windows.hashes import mixed, row_hashes, same_rows, takes_no_time


def sortable(name: str, column: pa.Array) -> dict[str, pa.Array]:
    """What to sort a column by so that NULL comes first and NaN last."""
    flag = {f"{name} is NaN": pc.is_nan(column)} if pa.types.is_floating(column.type) else {}
    return flag | {name: column}


def codes_of(columns: Sequence[pa.Array]) -> Array:
    """A number per row, equal for rows of equal values, from 0 on in order of first appearance."""
    code, _ = _encoded(columns[0])
    for column in columns[1:]:
        part, values = _encoded(column)
        code, _ = _encoded(pa.array(code * values + part))
    return code


def _encoded(column: pa.Array) -> tuple[Array, int]:
    found = column.dictionary_encode(null_encoding="encode")
    return found.indices.to_numpy().astype(np.int64), len(found.dictionary)


class GroupIndex:
    """Numbers of groups: found by a hash of their values, told apart by the values themselves."""

    def __init__(self, types: tuple[pa.DataType, ...]) -> None:
        self.types = types
        self._hashes = Numbering()
        self._columns = [pa.array([], type=type) for type in types]
        self._order: Array | None = None

    def __len__(self) -> int:
        return len(self._hashes) if self.types else 1

    def numbers(self, columns: Sequence[pa.Array], rows: int) -> Array:
        """The number of each row's group; unseen groups get the next ones."""
        if not self.types or not rows:
            return np.zeros(rows, dtype=np.int64)
        if all(takes_no_time(type) for type in self.types):
            return self._numbers(columns)
        code = codes_of(columns)
        firsts = np.empty(int(code.max()) + 1, dtype=np.int64)
        firsts[code[::-1]] = np.arange(rows)[::-1]
        return self._numbers([column.take(pa.array(firsts)) for column in columns])[code]

    def _numbers(self, columns: Sequence[pa.Array]) -> Array:
        """Row by row. One whose hash another group has tries the next hash."""
        found = np.empty(len(columns[0]), dtype=np.int64)
        hashes, waiting = row_hashes(columns), np.arange(len(found))
        while len(waiting):
            numbers, known = self._hashes.known(hashes[waiting])
            at = np.nonzero(known)[0]
            there = [column.take(pa.array(numbers[at])) for column in self._columns]
            same = same_rows(there, [column.take(pa.array(waiting[at])) for column in columns])
            found[waiting[at[same]]] = numbers[at[same]]
            other, unseen = waiting[at[~same]], waiting[~known]
            hashes[other] = mixed(hashes[other].view(np.uint64) + np.uint64(1)).view(np.int64)
            first = np.unique(hashes[unseen], return_index=True)[1]
            found[unseen[first]] = self._add(hashes[unseen[first]], [column.take(pa.array(unseen[first])) for column in columns])
            waiting = np.concatenate([other, np.delete(unseen, first)])
        return found

    def _add(self, hashes: Array, columns: Sequence[pa.Array]) -> Array:
        """Groups with ascending hashes that no other group has."""
        if len(hashes):
            self._columns = [pa.concat_arrays([held, new]) for held, new in zip(self._columns, columns, strict=True)]
            self._order = None
        return self._hashes.numbers(hashes)

    def columns(self) -> list[pa.Array]:
        """The group columns, one value per number."""
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
        if self.types:
            self._hashes = Numbering(self._hashes.codes[numbers])
            self._columns = [column.take(pa.array(numbers)) for column in self._columns]
            self._order = None
