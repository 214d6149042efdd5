"""A row's cell inside Spark: its position on every axis, by search, as one number.

In: a DataFrame and axes. Out: the DataFrame with a BIGINT column that codes the positions, the first axis least significant.
Convention: constants are data and not code: elements of constant arrays that are searched in steps, from where a `Grid` says. So the
generated code depends on the axes and the shapes of their searches, not on how many constants there are or which; and where there
is a grid, the Columns do not either, and are kept when queries come and go: its arrays are columns beside the rows, which Spark's
optimizer puts where they are used.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from muntin.expression.tree import Expression
from muntin.plan.fragments import Axis, Scale
from muntin.spark.arrays import constant_array
from muntin.spark.columns import Compiled
from muntin.spark.cuts import FEW_CUTS, constants_of, searched
from muntin.spark.grid import FEW_COMPARED, Grid, grid_over
from muntin.spark.rows import row_column


@dataclass(frozen=True)
class Search:
    """What the Columns of a search depend on. Constants are among it only if there is no grid over them."""

    expression: Expression
    scale: Scale
    grid: Grid | None
    constants: tuple[Any, ...] = ()

    @classmethod
    @lru_cache(maxsize=256)
    def on(cls, axis: Axis, held: Grid | None = None) -> Search:
        """With the grid that is held, if that fits. Kept: axes of several groupings are the same, and of several plans too."""
        constants = constants_of(axis)
        grid = grid_over(constants, axis.scale.last, held) if len(constants) > FEW_CUTS else None
        return cls(axis.expression, axis.scale, grid, () if grid else constants)


@dataclass(frozen=True)
class SearchColumns:
    """The Columns of a search on one axis: `number` tells its working columns from those of others."""

    search: Search
    number: int

    @property
    def value_name(self) -> str:
        return f"_muntin_v{self.number}"

    @property
    def failed_name(self) -> str:
        return f"_muntin_f{self.number}"

    @property
    def position_name(self) -> str:
        return f"_muntin_c{self.number}"

    @property
    def constants_name(self) -> str:
        return f"_muntin_t{self.number}"

    @property
    def bases_name(self) -> str:
        return f"_muntin_g{self.number}"

    @cached_property
    def compiled(self) -> Compiled:
        return row_column(self.search.expression)

    @cached_property
    def value(self) -> tuple[Column, str]:
        return searched(self.compiled.value, self.search.expression.type)

    @cached_property
    def steps(self) -> int:
        """As many as the constants need, or those of one square."""
        return (self.search.grid.compared if self.search.grid else len(self.search.constants)).bit_length()

    @cached_property
    def table(self) -> Column:
        """The constants, ascending. Beyond the last one there is NULL, which no value passes."""
        return F.col(self.constants_name) if self.search.grid else constant_array(self.search.constants, self.value[1])

    def tables(self, axis: Axis) -> dict[str, Column]:
        """The arrays of a search with a grid, for an axis that has it."""
        if not self.search.grid:
            return {}
        constants = constants_of(axis)
        bases = constant_array(self.search.grid.bases(constants), "int")
        return {self.constants_name: constant_array(constants, self.value[1]), self.bases_name: bases}

    def projections(self) -> list[dict[str, Column]]:
        """Columns that are added to the rows one after another; the position is in the last, or in the only one."""
        failed = {} if self.compiled.failed is None else {self.failed_name: self.compiled.failed}
        start = {self.value_name: self.value[0], **failed}
        if self.search.grid:
            base = F.get(F.col(self.bases_name), self.search.grid.square(F.col(self.value_name)))
            return [start, *({self.position_name: column} for column in (base, *self._in_square(self.search.grid)))]
        first = self._passed(self.value[0], F.lit(0), number=0) if self.steps else F.lit(0)
        return [{**start, self.position_name: first}, *({self.position_name: self._step(number)} for number in range(1, self.steps))]

    def _in_square(self, grid: Grid) -> list[Column]:
        """The positions after each step from the base: past as many constants of the square as the value passes."""
        if not 0 < grid.compared <= FEW_COMPARED:
            return [self._step(number) for number in range(self.steps)]
        value, base = F.col(self.value_name), F.col(self.position_name)
        position = base
        for at in range(grid.compared):
            position = F.when(value >= F.get(self.table, base + F.lit(at)), base + F.lit(at + 1)).otherwise(position)
        return [position]

    def _step(self, number: int) -> Column:
        """The position after step `number` of the search: twice as fine as before."""
        return self._passed(F.col(self.value_name), F.col(self.position_name), number=number)

    def _passed(self, value: Column, position: Column, *, number: int) -> Column:
        stride = 1 << (self.steps - 1 - number)
        passed = value >= F.get(self.table, position + F.lit(stride - 1))
        return F.when(passed, position + F.lit(stride)).otherwise(position)

    def coded(self) -> Column:
        """The position, or that of NULL or of a failure."""
        scale = self.search.scale
        position = F.when(F.col(self.value_name).isNull(), F.lit(scale.null)).otherwise(F.col(self.position_name))
        if self.compiled.failed is not None:
            position = F.when(F.col(self.failed_name), F.lit(scale.failed)).otherwise(position)
        return position.cast("bigint")


@dataclass(frozen=True)
class CellSearch:
    """The searches on all axes of a set of groupings."""

    searches: tuple[Search, ...]

    @cached_property
    def columns(self) -> list[SearchColumns]:
        return [SearchColumns(search, number) for number, search in enumerate(self.searches)]

    def tables(self, axes: Mapping[Search, Axis]) -> dict[str, Column]:
        """What is searched, for axes that have these searches."""
        return {name: table for one in self.columns for name, table in one.tables(axes[one.search]).items()}

    @cached_property
    def projections(self) -> list[dict[str, Column]]:
        """What is added to a frame, one projection after the other, for all searches at once."""
        each = [one.projections() for one in self.columns]
        longest = max(map(len, each), default=1)
        return [{name: column for one in each for name, column in (one[at] if at < len(one) else {}).items()} for at in range(longest)]

    def positions(self, frame: DataFrame, others: Mapping[str, Column], tables: Mapping[str, Column]) -> DataFrame:
        """The frame with a position per axis, and with some other columns: each projection costs analysis."""
        first, *following = self.projections
        frame = frame.withColumns({**others, **tables, **first})
        for columns in following:
            frame = frame.withColumns(columns)
        return frame

    def cell(self, searches: Sequence[Search]) -> Column:
        """The cell on some of the axes, as one number: each position is a digit, as large as its axis."""
        by_search = {one.search: one for one in self.columns}
        cell, stride = F.lit(0).cast("bigint"), 1
        for search in searches:
            cell = cell + by_search[search].coded() * F.lit(stride)
            stride *= search.scale.size
        return cell
