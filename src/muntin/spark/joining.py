"""The rows of a stream joined with static tables, in Spark.

In: rows, the joins of a query, the rows of each table. Out: rows with the stream's columns and those of the tables under the names that
expressions have for them: `cp` of the join `close` is the column `close.cp`.
Convention: an inner join as in SQL: duplicate keys multiply rows, NULL matches nothing; NaN matches NaN, as Spark's `=` has it. A pair
that fails on a row (a cast, a division by zero) matches nothing there and stops no query. It is done as an outer join that says which
rows matched, so that the same pass still counts the rows of the batch, each once: matches of a key are numbered, and the first one, or
its absence, stands for the row. Tables are broadcast: each is small enough to be held by every executor.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from operator import and_

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from muntin.query.model import Join
from muntin.spark.rows import Rows, resolve, row_column
from muntin.spark.tables import Tables


def match_name(join: Join) -> str:
    return f"_muntin_match {join.name}"


def match_number(join: Join) -> Column:
    """Which of the matches of its key a row has in a table; NULL for none."""
    return resolve(match_name(join))


def numbered(table: DataFrame, join: Join) -> DataFrame:
    """A table under the names that expressions use, its rows numbered within each key."""
    renamed = table.select(*(resolve(column).alias(f"{join.name}.{column}") for column in table.columns))
    keys = [row_column(right).value for _, right in join.on]
    number = F.row_number().over(Window.partitionBy(*keys).orderBy(F.lit(0)))
    return renamed.withColumn(match_name(join), number)


def outer_joined(frame: DataFrame, joins: Sequence[Join], table: Callable[[Join], DataFrame]) -> DataFrame:
    """`frame` with the columns of one numbered table after the other."""
    for join in joins:
        frame = frame.join(F.broadcast(table(join)), on=_equal(join), how="left")
    return frame


def joined(frame: DataFrame, joins: Sequence[Join], table: Callable[[str], DataFrame]) -> DataFrame:
    """The inner join; `table` gives the rows of a table by its name in lower case."""
    both = outer_joined(frame, joins, lambda join: numbered(table(join.table), join)).where(matched(joins))
    return both.drop(*(match_name(join) for join in joins))


def matched(joins: Sequence[Join]) -> Column:
    return reduce(and_, [match_number(join).isNotNull() for join in joins], F.lit(True))


def _equal(join: Join) -> Column:
    pairs = [(row_column(left).value, row_column(right).value) for left, right in join.on]
    return reduce(and_, [left == right for left, right in pairs])


class Joiner:
    """Joins rows with tables of the versions that a batch is pinned to; numbered tables are kept while their version is used."""

    def __init__(self, tables: Tables) -> None:
        self.tables = tables
        self._kept: dict[Join, tuple[str, DataFrame]] = {}

    def rows(self, rows: Rows, joins: Sequence[Join], versions: Mapping[str, str]) -> Rows:
        if not joins:
            return rows
        frame = outer_joined(rows.frame, joins, lambda join: self._numbered(join, versions[join.table]))
        first = reduce(and_, [F.coalesce(match_number(join) == F.lit(1), F.lit(True)) for join in joins])
        return replace(rows, frame=frame, matched=matched(joins), first=first)

    def _numbered(self, join: Join, version: str) -> DataFrame:
        held, frame = self._kept.get(join, ("", None))
        if frame is None or held != version:
            if frame is not None:
                frame.unpersist()
            frame = numbered(self.tables.frame(join.table, version), join).persist()
            self._kept[join] = version, frame
        return frame

    def release(self) -> None:
        for _, frame in self._kept.values():
            frame.unpersist()
        self._kept.clear()
        self.tables.release()
