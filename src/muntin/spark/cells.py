"""A row's cell inside Spark: its position on every axis, by binary search, as one number.

In: a DataFrame and axes. Out: the DataFrame with a BIGINT column that codes the positions, the first axis least significant.
Convention: exact for every type: constants are compared in the expression's own type, or as doubles where those are exact. They are
data and not code: the splits of MLlib's `Bucketizer`, or the elements of a constant array that is searched in steps, one projection
each. So the generated code depends on how many axes and steps there are, not on how many constants or which.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from functools import cached_property
from itertools import pairwise
from typing import Any

from pyspark.ml.feature import Bucketizer
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from muntin.plan.fragments import Axis, Cut, Side
from muntin.schema import INTEGRAL_BITS, Kind, Type
from muntin.spark.columns import Compiled
from muntin.spark.rows import row_column
from muntin.timeline import instant_of

_EPOCH_DAY = date(1970, 1, 1).toordinal()
_LONGEST = 2**63 - 1
_EXACT = 2**53
#: Cuts that a few steps find as fast as a call.
FEW_CUTS = 3


def searched(column: Column, type: Type) -> tuple[Column, str]:
    """An expression in the form its constants are held in, and that form's Spark type."""
    if type.temporal:
        return F.unix_micros(column.cast("timestamp")), "bigint"
    if type.kind is Kind.DATE:
        return F.unix_date(column).cast("bigint"), "bigint"
    if type.kind is Kind.BOOLEAN or type.kind in INTEGRAL_BITS:
        return column.cast("bigint"), "bigint"
    return (column.cast("double"), "double") if type.fractional else (column, str(type))


def at_least(cut: Cut, type: Type) -> Any:
    """The least value that passes a cut, in the searched form; None if no value does."""
    value = cut.value
    if isinstance(value, datetime):
        value = instant_of(value)
    elif isinstance(value, date):
        value = value.toordinal() - _EPOCH_DAY
    if cut.side is Side.BELOW:
        value = int(value) if isinstance(value, bool) else value
        return None if isinstance(value, int) and value > _LONGEST else value
    if isinstance(value, str):
        return value + "\0"
    if isinstance(value, Decimal):
        following = value + Decimal(1).scaleb(-type.scale)
        return following if abs(following) < Decimal(10) ** (type.precision - type.scale) else None
    if isinstance(value, float):
        return math.nextafter(value, math.inf) if value < math.inf else None
    return int(value) + 1 if int(value) < _LONGEST else None


def constant(number: int) -> Column:
    """A number that changes when queries come and go: kept out of the generated code, an element of an array at a place not known there."""
    return F.get(F.from_json(F.lit(f"[{number}]"), "array<int>"), F.spark_partition_id() * 0)


def spelled(value: Any) -> str:
    """A constant as JSON that Spark reads back to the last digit."""
    if value is None:
        return "null"
    if isinstance(value, Decimal):
        return format(value, "f")
    return json.dumps(value)


@dataclass(frozen=True)
class AxisSearch:
    """The search on one axis: `number` tells its working columns from those of others."""

    axis: Axis
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
        return row_column(self.axis.expression)

    @cached_property
    def value(self) -> tuple[Column, str]:
        return searched(self.compiled.value, self.axis.expression.type)

    @property
    def steps(self) -> int:
        return self.axis.steps

    @cached_property
    def table(self) -> Column:
        """The constants, ascending; padded with NULL, which no value passes, to one less than a power of two."""
        constants = [at_least(cut, self.axis.expression.type) for cut in self.axis.cuts]
        constants += [None] * ((1 << self.steps) - 1 - len(constants))
        return F.from_json(F.lit("[" + ",".join(map(spelled, constants)) + "]"), f"array<{self.value[1]}>")

    def start(self) -> dict[str, Column]:
        """The columns that the search begins with. Adding zero makes one of both zeros, which `Bucketizer` would tell apart."""
        failed = {} if self.compiled.failed is None else {self.failed_name: self.compiled.failed}
        if self.splits:
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
        """The position, or that of NULL or of a failure. NaN is past every cut."""
        found = F.col(self.position_name)
        if self.splits:
            found = F.least(F.col(self.bucket_name).cast("int"), constant(len(self.splits)))
        position = F.when(F.col(self.value_name).isNull(), F.lit(self.axis.null)).otherwise(found)
        if self.compiled.failed is not None:
            position = F.when(F.col(self.failed_name), F.lit(self.axis.failed)).otherwise(position)
        return position.cast("bigint")

    @cached_property
    def splits(self) -> list[float]:
        """The constants as doubles; empty where a double is not exact.

        Whole numbers are: all constants below 2^53 are doubles, and rounding a larger value takes it past none of them.
        """
        constants = [at_least(cut, self.axis.expression.type) for cut in self.axis.cuts]
        exact = all(isinstance(one, float) or (isinstance(one, int) and abs(one) <= _EXACT) for one in constants)
        usable = exact and len(constants) > FEW_CUTS and all(map(math.isfinite, constants)) and all(a < b for a, b in pairwise(constants))
        return [float(one) for one in constants] if usable else []


@dataclass(frozen=True)
class CellSearch:
    """The searches on all axes of a set of groupings: in one call of MLlib's `Bucketizer` where doubles are exact, else step by step.

    Both are binary searches. The `Bucketizer` is one call in the generated code, however many constants there are.
    """

    axes: tuple[Axis, ...]

    @cached_property
    def searches(self) -> list[AxisSearch]:
        return [AxisSearch(axis, number) for number, axis in enumerate(self.axes)]

    @cached_property
    def bucketed(self) -> list[AxisSearch]:
        return [search for search in self.searches if search.splits]

    @cached_property
    def stepped(self) -> list[AxisSearch]:
        return [search for search in self.searches if not search.splits]

    @cached_property
    def bucketizer(self) -> Bucketizer:
        """NaN is kept, in a bucket after the last."""
        return Bucketizer(
            splitsArray=[[-math.inf, *search.splits, math.inf] for search in self.bucketed],
            inputCols=[search.value_name for search in self.bucketed],
            outputCols=[search.bucket_name for search in self.bucketed],
            handleInvalid="keep",
        )

    @cached_property
    def projections(self) -> list[dict[str, Column]]:
        """What is added to a frame, one projection after the other: values and first steps, then a step of every search that goes on."""
        start = {name: column for search in self.searches for name, column in search.start().items()}
        steps = range(1, max((search.steps for search in self.stepped), default=1))
        return [start, *({one.position_name: one.step(number) for one in self.stepped if number < one.steps} for number in steps)]

    def positions(self, frame: DataFrame, others: Mapping[str, Column]) -> DataFrame:
        """The frame with a position per axis, and with some other columns: each projection costs analysis."""
        first, *following = self.projections
        frame = frame.withColumns({**others, **first})
        for columns in following:
            frame = frame.withColumns(columns)
        return self.bucketizer.transform(frame) if self.bucketed else frame

    def cell(self, axes: Sequence[Axis]) -> Column:
        """The cell on some of the axes, as one number: each position is a digit, as large as its axis."""
        by_axis = {search.axis: search for search in self.searches}
        cell, stride = F.lit(0).cast("bigint"), 1
        for axis in axes:
            cell = cell + by_axis[axis].coded() * F.lit(stride)
            stride *= axis.size
        return cell
