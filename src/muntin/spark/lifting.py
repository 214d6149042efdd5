"""The lift of a partial column in Spark, and which rows it is over.

In: a partial column of a grouping; rows with the instants that a pass gave them. Out: Columns.
Convention: a row that has no slice has an instant all the same, which says why (`decoding`); a dead letter has none.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Any

from pyspark.sql import Column
from pyspark.sql import functions as F

from muntin.expression.tree import Expression
from muntin.plan.shared import Failures, PartialColumn
from muntin.spark.columns import Compiled
from muntin.spark.decoding import MARKER, MISSING
from muntin.spark.rows import row_column


def at_name(number: int) -> str:
    """The column of an instant inside the row's slice, found in one of the ways there are."""
    return f"_muntin_at{number}"


def is_good() -> Column:
    """Not a dead letter: whatever its slices are, the row has an instant."""
    return F.col(at_name(0)).isNotNull()


def is_placed() -> Column:
    """A tuple that has a place on the attribute, whether it found a match or not."""
    return ~F.col(at_name(0)).isin(MISSING, MARKER)


def is_used() -> Column:
    """It has a slice."""
    return F.col(at_name(0)) > F.lit(MARKER)


def partial_columns(column: PartialColumn, functions: Any = F) -> tuple[Column, ...]:
    """The Spark aggregates of one partial column, over the rows that satisfy its predicate."""
    where = row_column(column.where) if column.where is not None else None
    if isinstance(column.partial, Failures):
        return (functions.count(F.when(is_good() & failed(column.args, where), F.lit(1))),)
    args = [row_column(arg).value for arg in column.args]
    if where is None:
        return column.partial.lift(functions, *args)
    return column.partial.lift(functions, *[F.when(where.value, arg) for arg in args or [F.lit(1)]])


def failed(args: Sequence[Expression], where: Compiled | None) -> Column:
    """True for rows on which the predicate fails, or that satisfy it and on which an argument fails."""
    parts = [one for arg in args if (one := row_column(arg).failed) is not None]
    anywhere = reduce(lambda a, b: a | b, parts) if parts else F.lit(False)
    if where is None:
        return anywhere
    inside = F.coalesce(where.value, F.lit(False)) & anywhere
    return inside if where.failed is None else where.failed | inside
