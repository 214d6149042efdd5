"""The same queries in plain Spark: a job per query, and the single jobs that a careful user writes instead.

In: the cached trades, the two static tables, queries. Out: a `Job` for some queries, to be run many times: it gives an Arrow table, and
`by_query` takes that apart. Convention: a job's Columns are built before it is timed, its DataFrame while it is (a DataFrame that ran
before finds its shuffle done). Every job joins as its queries say, by broadcast, and reads the trades without the joins.

    per query     one sliding `window()` job for each query
    conditional   one job, a conditional sum for each query: only where all have the same window, and that tumbles
    exploded      one job: each row once for every query it satisfies and every window it is in, grouped by query and window
    by seconds    one job of two aggregations: conditional sums per second, and windows put together from seconds. These are panes,
                  written by hand for this one set of queries; it works because all edges lie on whole seconds
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from muntin.demo.restrictions import INDEXES, Quantity, Restriction
from muntin.demo.workloads import WindowedSum
from muntin.timeline import SECOND

Job = Callable[[], pa.Table]
BOUNDS = ("window_start", "window_end")


@dataclass(frozen=True)
class PlainSpark:
    """Trades and tables, and the jobs over them."""

    spark: SparkSession
    trades: DataFrame
    close: DataFrame
    index: DataFrame

    @cached_property
    def joined(self) -> DataFrame:
        return self.trades.join(F.broadcast(self.close), "symbol").join(F.broadcast(self.index), "symbol")

    def rows_for(self, queries: Sequence[WindowedSum]) -> DataFrame:
        """Queries without a restriction have no join either."""
        return self.joined if any(query.restriction for query in queries) else self.trades

    def per_query(self, query: WindowedSum) -> Job:
        """The query as a Spark user writes it; ends are multiples of SLIDE, so starts are offset by what RANGE leaves."""
        window = F.window("ts", f"{query.range} seconds", f"{query.slide} seconds", f"{-query.range % query.slide} seconds")
        passed, total = condition(query.restriction), F.sum(value()).alias("value")
        return lambda: self.rows_for([query]).where(passed).groupBy(window).agg(total).select(*window_bounds(), "value").toArrow()

    def conditional(self, queries: Sequence[WindowedSum]) -> Job:
        """A column for each query."""
        ((length, slide),) = {(query.range, query.slide) for query in queries}
        window, sums = F.window("ts", f"{length} seconds", f"{slide} seconds"), conditional_sums(queries)
        names = [query.name for query in queries]
        return lambda: self.rows_for(queries).groupBy(window).agg(*sums).select(*window_bounds(), *names).toArrow()

    def exploded(self, queries: Sequence[WindowedSum]) -> Job:
        """Queries are rows of a small table, so that the job does not grow with their number: they all have the same form."""
        columns, asked = [F.unix_micros("ts").alias("at"), value().alias("value"), *tested(queries)], F.broadcast(self.query_table(queries))
        return lambda: summed(self.rows_for(queries).select(*columns).join(asked, satisfied(queries), "cross")).toArrow()

    def by_seconds(self, queries: Sequence[WindowedSum]) -> Job:
        """Spark computes equal conditional sums once."""
        second = F.call_function("div", F.unix_micros("ts"), F.lit(SECOND).cast("bigint")) * F.lit(SECOND)
        sums, asked = conditional_sums(queries), F.broadcast(self.query_table(queries))
        parts = F.explode(F.array(*(F.struct(F.lit(query.name).alias("query"), F.col(query.name).alias("value")) for query in queries)))

        def run() -> pa.Table:
            seconds = self.rows_for(queries).groupBy(second.alias("at")).agg(*sums)
            long = seconds.select("at", parts.alias("part")).select("at", "part.query", "part.value").where(F.col("value").isNotNull())
            return summed(long.join(asked, "query")).toArrow()

        return run

    def query_table(self, queries: Sequence[WindowedSum]) -> DataFrame:
        """A row for each query, in memory: its window in microseconds, and the parts of its restriction."""
        rows = [(query.name, query.range * SECOND, query.slide * SECOND, *restriction_parts(query.restriction)) for query in queries]
        schema = "query string, length bigint, slide bigint, member int, inside boolean, quantity int, sign double, bound double"
        table = self.spark.createDataFrame(rows, schema).cache()
        table.count()
        return table


def conditional_sums(queries: Sequence[WindowedSum]) -> list[Column]:
    return [F.sum(F.when(condition(query.restriction), value())).alias(query.name) for query in queries]


def value() -> Column:
    return F.col("price") * F.col("vol")


def condition(restriction: Restriction | None) -> Column:
    names = ("price", "vol", "cp", *INDEXES)
    return restriction.holds({name: F.col(name) for name in names}, F.abs) if restriction else F.lit(True)


def window_bounds() -> list[Column]:
    return [F.col("window.start").alias("window_start"), F.col("window.end").alias("window_end")]


def restriction_parts(restriction: Restriction | None) -> tuple[int, bool, int, float, float]:
    """Positions from 1 for `element_at`; `v < c` is written as `-v > -c`."""
    if restriction is None:
        return 1, True, 1, 1.0, 0.0
    sign = 1.0 if restriction.comparison == ">" else -1.0
    quantity = list(Quantity).index(restriction.quantity) + 1
    return INDEXES.index(restriction.index) + 1, restriction.inside, quantity, sign, sign * restriction.constant


def tested(queries: Sequence[WindowedSum]) -> list[Column]:
    """What restrictions ask of a row, computed once for it."""
    if not any(query.restriction for query in queries):
        return []
    row = {name: F.col(name) for name in ("price", "vol", "cp")}
    quantities = F.array(*(quantity.of(row, F.abs).cast("double") for quantity in Quantity))
    return [F.array(*map(F.col, INDEXES)).alias("members"), quantities.alias("quantities")]


def satisfied(queries: Sequence[WindowedSum]) -> Column:
    if not any(query.restriction for query in queries):
        return F.lit(True)
    member = F.element_at("members", F.col("member")) == F.col("inside")
    return member & (F.element_at("quantities", F.col("quantity")) * F.col("sign") > F.col("bound"))


def summed(pairs: DataFrame) -> DataFrame:
    """The sum of each query and window, from (at, value, query, length, slide): ends are multiples of SLIDE in `(at, at + RANGE]`."""
    first = (F.call_function("div", F.col("at"), F.col("slide")) + F.lit(1)) * F.col("slide")
    ends = F.explode(F.sequence(first, F.col("at") + F.col("length"), F.col("slide"))).alias("end")
    sums = pairs.select("query", "length", ends, "value").groupBy("query", "length", "end").agg(F.sum("value").alias("value"))
    start, end = (F.timestamp_micros(F.col("end") - F.col("length")), F.timestamp_micros("end"))
    return sums.select("query", start.alias("window_start"), end.alias("window_end"), "value")


def by_query(table: pa.Table) -> dict[str, pa.Table]:
    """The answers of each query, from a single job's table with a column `query`, or with a column for each query."""
    if "query" not in table.column_names:
        names = [name for name in table.column_names if name not in BOUNDS]
        wide = {name: table.select([*BOUNDS, name]).rename_columns([*BOUNDS, "value"]) for name in names}
        return {name: one.filter(pc.is_valid(one["value"])) for name, one in wide.items()}
    names = pc.unique(table["query"]).to_pylist()
    return {name: table.filter(pc.equal(table["query"], name)).drop_columns("query") for name in names}
