"""Partials of slide-by-tuple windows: a shard per row, computed in the JVM and sent to Python as Arrow columns.

In: the rows of a batch. Out: as `partials`. Ticks are nearly as many as rows there, so grouping by tick in Spark costs more than it saves:
it took three times as long for a million rows of a million ticks. This is the one place where as much reaches Python as there are rows, and
of each row only its tick, its group and the lanes its queries stand on, projected in the JVM; nothing goes over rows one by one.
Convention: a lane of one row is what the lift gives if aggregate functions are over that row alone (`OfOneRow`). Users' own aggregates may
call any aggregate function, so theirs are grouped by tick.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from muntin.aggregates.own import OwnPartial
from muntin.aggregates.sums import FIRST
from muntin.columnar import integers
from muntin.disorder import Key, Seen
from muntin.plan.shared import ROWS, Grouping
from muntin.spark.decoding import AT, MARKER, MISSING, lane_prefix
from muntin.spark.facts import BatchFacts
from muntin.spark.lifting import at_name, is_used, partial_columns
from muntin.spark.partials import Pass
from muntin.spark.rows import Rows, micros_of
from muntin.timeline import Interval
from muntin.windows.shards import Partials

_TIME = "_muntin_time"


class OfOneRow:
    """Spark's functions, with the aggregates over a single row."""

    def __getattr__(self, name: str) -> Any:
        return getattr(F, name)

    def count(self, column: Column) -> Column:
        return F.when(column.isNotNull(), F.lit(1)).otherwise(F.lit(0))

    def same(self, column: Column) -> Column:
        return column

    sum = try_sum = min = max = avg = same

    def var_pop(self, column: Column) -> Column:
        """Nothing, but NaN for NaN and infinities."""
        return (column - column) * F.lit(1.0)


ONE_ROW = OfOneRow()


def is_by_row(grouping: Grouping) -> bool:
    return grouping.by_tuple and not any(isinstance(column.partial, OwnPartial) for column in grouping.columns)


@dataclass(frozen=True)
class RowPass(Pass):
    """One projection of the rows of a batch, for one grouping."""

    @cached_property
    def lanes(self) -> list[Column]:
        """Lanes of all columns but the plain count, which is one for every row."""
        return [
            lane.alias(f"{lane_prefix(at)}{number}")
            for at, column in enumerate(self.groupings[0].columns)
            if column != ROWS
            for number, lane in enumerate(partial_columns(column, ONE_ROW))
        ]

    def frame(self, rows: Rows, span: Interval | None) -> DataFrame:
        """The tick, or why there is none; the group; the time, if windows are over something else; which match it is; the lanes."""
        frame = self._joined(rows).withColumns(self._instants(rows, rows.tick(self.over), span))
        at = F.col(at_name(0)).alias(AT)
        keys = [F.when(is_used(), key).alias(name) for name, key in self.lasting.keys.items()]
        time = [] if self.over_time else [F.when(rows.tuples, micros_of(self.stream)).alias(_TIME)]
        first = [] if rows.first is None else [F.col(FIRST)]
        return frame.select(at, *keys, *time, *first, *self.lanes)

    def collected(self, rows: Rows, span: Interval | None) -> tuple[list[Partials], BatchFacts]:
        table = self.frame(rows, span).toArrow()
        at = integers(table[AT], null=MISSING - 1)
        facts = self._facts_of(*once_each(table, at))
        placed = at > MARKER
        if not placed.all():
            table, at = table.filter(pa.array(placed)), at[placed]
        return [self._partials(table, at)], facts

    def _partials(self, table: pa.Table, at: np.ndarray) -> Partials:
        states = tuple(
            (np.ones(len(at), dtype=np.int64),)
            if column == ROWS
            else column.partial.decode(*(table[name] for name in table.column_names if name.startswith(lane_prefix(place))))
            for place, column in enumerate(self.groupings[0].columns)
        )
        return Partials(at, tuple(table[name].combine_chunks() for name in self.lasting.keys), states)

    def _facts_of(self, table: pa.Table, at: np.ndarray) -> BatchFacts:
        missing, markers, dead = int((at == MISSING).sum()), int((at == MARKER).sum()), table[AT].null_count
        placed = at[at > MARKER]
        seen: dict[str, dict[Key, Seen]] = {}
        if len(placed):
            seen[self.over.name] = {(): Seen(len(placed), int(placed.min()), int(placed.max()))}
        if _TIME in table.column_names and table.num_rows > table[_TIME].null_count:
            times = integers(table[_TIME].drop_null(), null=0)
            seen[self.stream.time] = {(): Seen(len(times), int(times.min()), int(times.max()))}
        return BatchFacts(table.num_rows, dead, markers, seen, {self.over.name: missing} if missing else {})


def once_each(table: pa.Table, at: np.ndarray) -> tuple[pa.Table, np.ndarray]:
    """The rows of the stream, each once, where some have several matches in a table."""
    if FIRST not in table.column_names:
        return table, at
    first = np.asarray(table[FIRST].to_numpy(), dtype=bool)
    return table.filter(pa.array(first)), at[first]
