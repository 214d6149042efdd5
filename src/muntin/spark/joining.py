"""The rows of a stream joined with static tables, in Spark.

In: a DataFrame of rows, the joins of a query, the rows of each table. Out: a DataFrame with the stream's columns and those of the
tables under the names that expressions have for them: `cp` of the join `close` is the column `close.cp`.
Convention: an inner join as in SQL: duplicate keys multiply rows, NULL matches nothing; NaN matches NaN, as Spark's `=` has it. A pair
that fails on a row (a cast, a division by zero) matches nothing there and stops no query. Tables are broadcast: each is small enough
to be held by every executor.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from operator import and_

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from muntin.query.model import Join
from muntin.spark.columns import compile_column
from muntin.spark.rows import resolve


def joined(frame: DataFrame, joins: Sequence[Join], table: Callable[[str], DataFrame]) -> DataFrame:
    """`frame` joined with one table after the other; `table` gives the rows of a table by its name in lower case."""
    for join in joins:
        frame = frame.join(F.broadcast(_renamed(table(join.table), join.name)), on=_equal(join), how="inner")
    return frame


def _renamed(table: DataFrame, name: str) -> DataFrame:
    return table.select(*(resolve(column).alias(f"{name}.{column}") for column in table.columns))


def _equal(join: Join) -> Column:
    pairs = [(compile_column(left, resolve).value, compile_column(right, resolve).value) for left, right in join.on]
    return reduce(and_, [left == right for left, right in pairs])
