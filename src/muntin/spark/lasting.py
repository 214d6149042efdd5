"""The Columns of a pass that are the same for every batch, and mostly for the next plan too.

In: searches, group columns, partial columns. Out: cells, keys and aggregates as Columns. Convention: nothing here depends on the
constants of predicates: they are in columns beside the rows, by names that stay. Columns are built once: each costs round trips to the
JVM.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache

from pyspark.sql import Column
from pyspark.sql import functions as F

from muntin.expression.tree import Expression
from muntin.plan.shared import PartialColumn
from muntin.spark.cells import CellSearch, Search
from muntin.spark.decoding import CELL, SET, key_name, lane_prefix
from muntin.spark.lifting import is_used, partial_columns
from muntin.spark.rows import row_column

_LARGEST_INT = 2**31 - 1


def fragments_name(number: int) -> str:
    """The array that says which cell stands for each cell of a grouping."""
    return f"_muntin_s{number}"


def unmerged_name(number: int) -> str:
    return f"_muntin_d{number}"


@dataclass(frozen=True)
class LastingColumns:
    """For each grouping its searches, or None if it has no cells, and whether cells of one fragment are merged."""

    searches: tuple[tuple[Search, ...] | None, ...]
    merged: tuple[bool, ...]
    expressions: tuple[Expression, ...]
    columns: tuple[PartialColumn, ...]

    @cached_property
    def cells(self) -> CellSearch:
        return CellSearch(tuple(dict.fromkeys(one for searches in self.searches for one in searches or ())))

    @cached_property
    def keys(self) -> dict[str, Column]:
        return {key_name(number): row_column(key).value for number, key in enumerate(self.expressions)}

    @cached_property
    def unmerged(self) -> dict[str, Column]:
        """The cells that are about to be merged, in columns of their own: each is used twice."""
        return {unmerged_name(at): self._cell(at) for at, merged in enumerate(self.merged) if merged}

    def _cell(self, number: int) -> Column:
        return self.cells.cell(self.searches[number] or ())

    def _merged(self, number: int) -> Column:
        """The cell that stands for a row's; the array ends where there are only NULLs and failures of the last axis."""
        cell = F.col(unmerged_name(number))
        return F.coalesce(F.get(F.col(fragments_name(number)), F.least(cell, F.lit(_LARGEST_INT)).cast("int")), cell)

    @cached_property
    def coded_cells(self) -> list[Column]:
        """The cell of each grouping; all rows are in cell 0 of one that has none."""
        return [self._merged(at) if merged else self._cell(at) for at, merged in enumerate(self.merged)]

    @cached_property
    def split(self) -> list[Column]:
        """The group columns and cells of rows that are used; none where slices are all there is. Other rows fall into one shard."""
        used = is_used()
        keys = [F.when(used, key).alias(name) for name, key in self.keys.items()]
        cells = [F.when(used, cell) for cell in self.coded_cells]
        if len(cells) > 1:
            return [*keys, F.posexplode(F.array(*cells)).alias(SET, CELL)]
        return keys if self.searches[0] is None else [*keys, cells[0].alias(CELL)]

    @cached_property
    def aggregates(self) -> list[Column]:
        return [
            lane.alias(f"{lane_prefix(at)}{number}")
            for at, column in enumerate(self.columns)
            for number, lane in enumerate(partial_columns(column))
        ]


@lru_cache(maxsize=64)
def lasting_columns(
    searches: tuple[tuple[Search, ...] | None, ...],
    merged: tuple[bool, ...],
    expressions: tuple[Expression, ...],
    columns: tuple[PartialColumn, ...],
    _application: str,
) -> LastingColumns:
    """Kept: a plan whose queries changed often computes the same as the one before, and so does the next run of the same queries."""
    return LastingColumns(searches, merged, expressions, columns)
