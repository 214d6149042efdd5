"""A row's cell inside Spark: its position on every axis, by binary search, as one number.

In: a DataFrame and axes. Out: the DataFrame with a BIGINT column that codes the positions, the first axis least significant.
Convention: constants are data and not code: the splits of MLlib's `Bucketizer`, or the elements of a constant array that is searched
in steps, one projection each. So the generated code depends on how many axes and steps there are, not on how many constants or which;
and where there is a `Bucketizer`, the Columns do not either, and are kept when queries come and go.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from muntin.expression.tree import Expression
from muntin.plan.fragments import Axis, Scale
from muntin.spark.buckets import Buckets
from muntin.spark.columns import Compiled
from muntin.spark.cuts import constants_of, searched, spelled, splits_of
from muntin.spark.rows import row_column


@dataclass(frozen=True)
class Search:
    """What the Columns of a search depend on. Constants are among it only if there are steps through them."""

    expression: Expression
    scale: Scale
    constants: tuple[Any, ...] | None

    @classmethod
    def on(cls, axis: Axis) -> Search:
        return cls(axis.expression, axis.scale, None if splits_of(axis) else constants_of(axis))


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
    def bucket_name(self) -> str:
        return f"_muntin_b{self.number}"

    @cached_property
    def compiled(self) -> Compiled:
        return row_column(self.search.expression)

    @cached_property
    def value(self) -> tuple[Column, str]:
        return searched(self.compiled.value, self.search.expression.type)

    @property
    def bucketed(self) -> bool:
        return self.search.constants is None

    @property
    def steps(self) -> int:
        """As many as the constants need, and none where a `Bucketizer` searches."""
        return len(self.search.constants or ()).bit_length()

    @cached_property
    def table(self) -> Column:
        """The constants, ascending; padded with NULL, which no value passes, to one less than a power of two."""
        constants = self.search.constants or ()
        padded = [*constants, *[None] * ((1 << self.steps) - 1 - len(constants))]
        return F.from_json(F.lit("[" + ",".join(map(spelled, padded)) + "]"), f"array<{self.value[1]}>")

    def start(self) -> dict[str, Column]:
        """The columns that the search begins with. Adding zero makes one of both zeros, which a `Bucketizer` would tell apart."""
        failed = {} if self.compiled.failed is None else {self.failed_name: self.compiled.failed}
        if self.bucketed:
            return {self.value_name: self.value[0].cast("double") + F.lit(0.0), **failed}
        position = self._passed(self.value[0], F.lit(0), number=0) if self.steps else F.lit(0)
        return {self.value_name: self.value[0], self.position_name: position, **failed}

    def step(self, number: int) -> Column:
        """The position after step `number` of the search: twice as fine as before."""
        return self._passed(F.col(self.value_name), F.col(self.position_name), number=number)

    def _passed(self, value: Column, position: Column, *, number: int) -> Column:
        stride = 1 << (self.steps - 1 - number)
        passed = value >= F.get(self.table, position + F.lit(stride - 1))
        return F.when(passed, position + F.lit(stride)).otherwise(position)

    def coded(self) -> Column:
        """The position, or that of NULL or of a failure. NaN is past every cut: its bucket is one more than the last, if there is one."""
        found, scale = F.col(self.position_name), self.search.scale
        if self.bucketed:
            found = F.least(F.col(self.bucket_name).cast("int"), F.lit(scale.last))
        position = F.when(F.col(self.value_name).isNull(), F.lit(scale.null)).otherwise(found)
        if self.compiled.failed is not None:
            position = F.when(F.col(self.failed_name), F.lit(scale.failed)).otherwise(position)
        return position.cast("bigint")


@dataclass(frozen=True)
class CellSearch:
    """The searches on all axes of a set of groupings: in one call of a `Bucketizer` where doubles are exact, else step by step.

    Both are binary searches.
    """

    searches: tuple[Search, ...]

    @cached_property
    def columns(self) -> list[SearchColumns]:
        return [SearchColumns(search, number) for number, search in enumerate(self.searches)]

    @cached_property
    def bucketed(self) -> list[SearchColumns]:
        return [one for one in self.columns if one.bucketed]

    def buckets(self, axes: Mapping[Search, Axis]) -> Buckets | None:
        """What is called for axes that have these searches; None if all of them are stepped through."""
        if not self.bucketed:
            return None
        inputs, outputs = [one.value_name for one in self.bucketed], [one.bucket_name for one in self.bucketed]
        return Buckets(inputs, outputs, [splits_of(axes[one.search]) for one in self.bucketed])

    @cached_property
    def projections(self) -> list[dict[str, Column]]:
        """What is added to a frame, one projection after the other: values and first steps, then a step of every search that goes on."""
        stepped = [one for one in self.columns if not one.bucketed]
        start = {name: column for one in self.columns for name, column in one.start().items()}
        steps = range(1, max((one.steps for one in stepped), default=1))
        return [start, *({one.position_name: one.step(number) for one in stepped if number < one.steps} for number in steps)]

    def positions(self, frame: DataFrame, others: Mapping[str, Column], buckets: Buckets | None) -> DataFrame:
        """The frame with a position per axis, and with some other columns: each projection costs analysis."""
        first, *following = self.projections
        frame = frame.withColumns({**others, **first})
        for columns in following:
            frame = frame.withColumns(columns)
        return buckets.transform(frame) if buckets else frame

    def cell(self, searches: Sequence[Search]) -> Column:
        """The cell on some of the axes, as one number: each position is a digit, as large as its axis."""
        by_search = {one.search: one for one in self.columns}
        cell, stride = F.lit(0).cast("bigint"), 1
        for search in searches:
            cell = cell + by_search[search].coded() * F.lit(stride)
            stride *= search.scale.size
        return cell
