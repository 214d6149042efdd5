"""The rows of a stream joined with static tables, in Spark.

In: rows, the joins of a query, the rows of each table. Out: rows with the stream's columns and those of the tables under the names that
expressions have for them: `cp` of the join `close` is the column `close.cp`.
Convention: an inner join as in SQL: duplicate keys multiply rows, NULL matches nothing; NaN matches NaN, as Spark's `=` has it. A pair
that fails on a row (a cast, a division by zero) matches nothing there and stops no query. It is done as an outer join that says which
rows matched, so that the same pass still counts the rows of the batch, each once: matches of a key are numbered, and the first one, or
its absence, stands for the row. Tables are broadcast: each is small enough to be held by every executor. Tables that are joined on the
same expressions of the stream are joined with each other first, once per version, so that a row is looked up once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from operator import and_

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from muntin.expression.tree import Expression
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
    number = F.row_number().over(Window.partitionBy(*_rights(join)).orderBy(F.lit(0)))
    return renamed.withColumn(match_name(join), number)


def bundles(joins: Sequence[Join]) -> list[tuple[Join, ...]]:
    """Joins by what of the stream they are on: those on the same are one look-up, in tables that were joined with each other before."""
    together: dict[tuple[Expression, ...], list[Join]] = {}
    for join in joins:
        together.setdefault(tuple(left for left, _ in join.on), []).append(join)
    return [tuple(members) for members in together.values()]


def bundled(members: Sequence[Join], table: Callable[[str], DataFrame]) -> DataFrame:
    """The numbered tables of a bundle side by side, with the key they have in common."""
    first, *others = members
    frame = numbered(table(first.table), first).withColumns(dict(zip(key_names(first), _rights(first), strict=True)))
    for join in others:
        pairs = [(name, f"{name} other") for name in key_names(first)]
        right = numbered(table(join.table), join).withColumns({other: key for (_, other), key in zip(pairs, _rights(join), strict=True)})
        frame = frame.join(right, on=reduce(and_, [resolve(name) == resolve(other) for name, other in pairs]), how="full")
        frame = frame.withColumns({name: F.coalesce(resolve(name), resolve(other)) for name, other in pairs})
        frame = frame.drop(*(other for _, other in pairs))
    return frame


def key_names(join: Join) -> list[str]:
    return [f"_muntin_key {join.name} {at}" for at in range(len(join.on))]


def _rights(join: Join) -> list[Column]:
    return [row_column(right).value for _, right in join.on]


def outer_joined(frame: DataFrame, joins: Sequence[Join], table: Callable[[Sequence[Join]], DataFrame]) -> DataFrame:
    """`frame` with the columns of one bundle of tables after the other, and the keys they were found by: each step costs analysis, and what
    nobody uses Spark leaves out.
    """
    for members in bundles(joins):
        keys = zip(members[0].on, key_names(members[0]), strict=True)
        on = reduce(and_, [row_column(left).value == resolve(name) for (left, _), name in keys])
        frame = frame.join(table(members), on=on, how="left")
    return frame


def joined(frame: DataFrame, joins: Sequence[Join], table: Callable[[str], DataFrame]) -> DataFrame:
    """The inner join; `table` gives the rows of a table by its name in lower case."""
    both = outer_joined(frame, joins, lambda members: F.broadcast(bundled(members, table))).where(matched(joins))
    keys = [name for members in bundles(joins) for name in key_names(members[0])]
    return both.drop(*keys, *(match_name(join) for join in joins))


def matched(joins: Sequence[Join]) -> Column:
    return reduce(and_, [match_number(join).isNotNull() for join in joins])


def with_several_matches(frame: DataFrame, members: Sequence[Join]) -> list[Join]:
    """The joins in which some key has more than one match: only there a row has to be told from its copies."""
    most = frame.agg(*(F.max(match_number(join)) for join in members)).toArrow()
    return [join for join, column in zip(members, most.columns, strict=True) if (column[0].as_py() or 0) > 1]


class Joiner:
    """Joins rows with tables of the versions that a batch is pinned to; bundles are kept in memory while their versions are used."""

    def __init__(self, tables: Tables) -> None:
        self.tables = tables
        self._kept: dict[tuple[Join, ...], tuple[list[str], DataFrame, DataFrame]] = {}
        self._several: set[Join] = set()

    def rows(self, rows: Rows, joins: Sequence[Join], versions: Mapping[str, str]) -> Rows:
        if not joins:
            return rows
        frame = outer_joined(rows.frame, joins, lambda members: self._bundled(tuple(members), versions))
        first = [F.coalesce(match_number(join) == F.lit(1), F.lit(True)) for join in joins if join in self._several]
        return replace(rows, frame=frame, matched=matched(joins), first=reduce(and_, first) if first else None)

    def _bundled(self, members: tuple[Join, ...], versions: Mapping[str, str]) -> DataFrame:
        """To be broadcast; what is in memory is held beside it."""
        wanted = [versions[join.table] for join in members]
        held = self._kept.get(members)
        if held is None or held[0] != wanted:
            if held is not None:
                held[1].unpersist()
            frame = bundled(members, lambda name: self.tables.frame(name, versions[name])).coalesce(1).persist()
            self._kept[members] = held = wanted, frame, F.broadcast(frame)
            self._several = self._several - set(members) | set(with_several_matches(frame, members))
        return held[2]

    def release(self) -> None:
        for _, frame, _ in self._kept.values():
            frame.unpersist()
        self._kept.clear()
        self.tables.release()
