"""The rows of a batch, and which of them can be used.

In: a batch's DataFrame, the stream it belongs to, the latest instant that is not too far ahead. Out: Columns, and the dead letters.
Convention: Columns name what they stand on and are bound to no DataFrame, so that they are built once and serve every batch; the
limit moves from batch to batch and is kept out of the generated code (`slicekey.moving`).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from muntin.expression.tree import Expression
from muntin.query.model import StreamDefinition
from muntin.spark.columns import Compiled, compile_column
from muntin.spark.own_columns import application
from muntin.spark.slicekey import moving
from muntin.spark.sources import CORRUPT
from muntin.timeline import EARLIEST


def resolve(name: str) -> Column:
    """The Column of a name, whatever characters it has."""
    return F.col(f"`{name.replace('`', '``')}`")


def row_column(expression: Expression) -> Compiled:
    """An expression over the rows of a stream. Kept: building one takes many round trips to the JVM, and the next plan needs it again."""
    return _row_column(expression, application())


@lru_cache(maxsize=10_000)
def _row_column(expression: Expression, _application: str) -> Compiled:
    return compile_column(expression, resolve)


def micros_of(stream: StreamDefinition) -> Column:
    """The windowing attribute as microseconds; a TIMESTAMP without zone is read as UTC, the session's zone."""
    return _micros_of(stream.time, application())


@lru_cache(maxsize=100)
def _micros_of(time: str, _application: str) -> Column:
    return F.unix_micros(resolve(time).cast("timestamp"))


@dataclass(frozen=True)
class Rows:
    """`matched` says which rows found a match in every table they were joined with, `first` which of a row's matches stands for it.

    None of both: all rows do.
    """

    frame: DataFrame
    stream: StreamDefinition
    limit: int
    matched: Column | None = None
    first: Column | None = None

    def good(self, micros: Column) -> Column:
        """Not a dead letter; NULL where there is no time."""
        timely = (micros >= F.lit(EARLIEST)) & (micros <= moving(self.limit, micros))
        return timely & resolve(CORRUPT).isNull() if CORRUPT in self.frame.columns else timely

    def dead_letters(self) -> DataFrame:
        """The bad rows with the reason for each."""
        micros = micros_of(self.stream)
        early = F.when(micros < F.lit(EARLIEST), F.lit("time too far back")).otherwise(F.lit("time too far ahead"))
        reason = F.when(micros.isNull(), F.lit("no time")).otherwise(early)
        if CORRUPT in self.frame.columns:
            reason = F.when(resolve(CORRUPT).isNotNull(), F.lit("unparsable")).otherwise(reason)
        return self.frame.where(~F.coalesce(self.good(micros), F.lit(False))).withColumn("reason", reason)
