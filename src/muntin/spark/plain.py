"""A query in plain Spark: a job of its own over Spark's `window()`, which copies each row into every window it is in.

In: bounded rows, static tables, a query. Out: a DataFrame of its results. Convention: nothing is shared and nothing is assembled; of
Muntin's evaluation only the Columns of scalar expressions are used. It is what Muntin is measured and checked against.
Not supported, and refused: what `window()` cannot express. Data that fails fails the job, as it does in Spark.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from muntin.errors import Refusal
from muntin.expression import tree
from muntin.expression.tree import Bound, Expression, GroupKey, WindowBound
from muntin.query.model import GENEROUS, Query, StreamDefinition
from muntin.semantics import TIME, TimeWindow
from muntin.spark.joining import joined
from muntin.spark.pinning import wall_clock
from muntin.spark.rows import Rows, resolve, row_column
from muntin.spark.tables import Tables

BOUNDS = (Bound.START.value, Bound.END.value)


def weighted_average(value: Column, weight: Column) -> Column:
    """NULL where the weights add up to zero."""
    product = value.cast("double") * weight.cast("double")
    weights = F.sum(F.when(product.isNotNull(), weight.cast("double")))
    return F.sum(product) / F.nullif(weights, F.lit(0.0))


#: Spark's functions for the built-in aggregates, by their names.
AGGREGATES: Mapping[str, Callable[..., Column]] = {
    "count": lambda *args: F.count(*(args or (F.lit(1),))),
    "sum": F.sum,
    "avg": F.avg,
    "min": F.min,
    "max": F.max,
    "var_pop": F.var_pop,
    "var_samp": F.var_samp,
    "stddev_pop": F.stddev_pop,
    "stddev_samp": F.stddev_samp,
    "weighted_avg": weighted_average,
}


def plain(frame: DataFrame, stream: StreamDefinition, query: Query, tables: Tables) -> DataFrame:
    """In order of window end and group, over all rows that are there."""
    window, now = checked(stream, query), wall_clock()
    rows = Rows(frame, stream, now + stream.max_ahead.micros, now)
    frame = rows.frame.where(rows.tuples)
    if query.joins:
        versions = tables.versions(sorted({join.table for join in query.joins}))
        frame = joined(frame, query.joins, lambda table: tables.frame(table, versions[table]))
    if query.where is not None:
        frame = frame.where(value(query.where))
    names = named_parts(query)
    found = grouped(frame, window, query, names)
    if query.having is not None:
        found = found.where(value(tree.replaced(query.having, names)))
    keys = [value(part) for key, part in names.items() if isinstance(key, GroupKey)]
    outputs = [value(tree.replaced(one.expression, names)).alias(one.name) for one in query.outputs]
    return found.orderBy("window_end", *(key.asc_nulls_first() for key in keys)).select(*BOUNDS, *outputs)


def named_parts(query: Query) -> dict[Expression, Expression]:
    """What select list and HAVING stand on, each as a column of its own."""
    keys: list[Expression] = [GroupKey(at, one.expression.type) for at, one in enumerate(query.group_by)]
    names = {part: f"_muntin_part{at}" for at, part in enumerate([*keys, *query.aggregate_calls])}
    names |= {WindowBound(bound): bound.value for bound in Bound}
    return {part: tree.Column(name, part.type) for part, name in names.items()}


def grouped(frame: DataFrame, window: TimeWindow, query: Query, names: Mapping[Expression, Expression]) -> DataFrame:
    """One Spark aggregation, by window and group."""
    lengths = (window.range, window.slide, (window.first_end - window.range) % window.slide)
    extent = F.window(resolve(window.wattr).cast("timestamp"), *(f"{length} microseconds" for length in lengths))
    keys = [value(one.expression).alias(str(names[GroupKey(at, one.expression.type)])) for at, one in enumerate(query.group_by)]
    calls = [AGGREGATES[call.aggregate](*map(value, call.args)).alias(str(names[call])) for call in query.aggregate_calls]
    found = frame.groupBy(extent.alias("_muntin_window"), *keys).agg(F.count(F.lit(1)).alias("_muntin_rows"), *calls)
    return found.withColumns({bound: F.col(f"_muntin_window.{part}") for bound, part in zip(BOUNDS, ("start", "end"), strict=True)})


def value(expression: Expression) -> Column:
    """As Spark has it: where it fails, the job fails."""
    compiled = row_column(expression)
    if compiled.failed is None:
        return compiled.value
    return F.when(compiled.failed, F.raise_error(F.lit(f"{expression} fails on a row"))).otherwise(compiled.value)


def checked(stream: StreamDefinition, query: Query) -> TimeWindow:
    """The window of a query that Spark's `window()` can express."""
    refuse, window = partial(_refusal, query), query.window
    if not isinstance(window, TimeWindow) or window.measure != TIME or stream.schema.field(window.wattr) is None:
        raise refuse(str(window))
    if window.slide > window.range:
        raise refuse("SLIDE is longer than RANGE")
    if query.emit_empty or query.emit_every is not None or query.late != GENEROUS:
        raise refuse("an EMIT or LATE clause")
    own = [call.aggregate for call in query.aggregate_calls if call.aggregate not in AGGREGATES]
    if own:
        raise refuse(f"{own[0]} is an aggregate of your own")
    return window


def _refusal(query: Query, values: str) -> Refusal:
    law = "plain Spark has what its window() can express: time windows whose SLIDE is not longer than their RANGE"
    return Refusal(law, values=f"{query.name}: {values}", way_out="choose another strategy")
