"""The rows of a batch, and which of them can be used.

In: a batch's DataFrame and the stream it belongs to. Out: Columns, and the dead letters.
Convention: Columns name what they stand on and are bound to no DataFrame, so that they are built once and serve every batch; the
limit moves from batch to batch and is kept out of the generated code (`slicekey.moving`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from muntin.aggregates.sums import row_numbers
from muntin.disorder import Key
from muntin.expression.tree import Expression
from muntin.query.model import StreamDefinition
from muntin.semantics import TIME, Attribute
from muntin.spark.columns import Compiled, compile_column
from muntin.spark.own_columns import application
from muntin.spark.positions import ARRIVED
from muntin.spark.slicekey import moving
from muntin.spark.sources import CORRUPT
from muntin.spark.ticks import micros, number_ticks
from muntin.spark.values import with_number
from muntin.timeline import EARLIEST

_MISSED = "_muntin_missed"


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
    """The stream's time in microseconds."""
    return _micros_of(stream.time, application())


@lru_cache(maxsize=100)
def _micros_of(time: str, _application: str) -> Column:
    return micros(resolve(time))


@dataclass(frozen=True)
class Rows:
    """The rows of a batch. `limit` is the latest time that is not too far ahead, `arrival` the time the batch came.

    `matched` says which rows found a match in every table they were joined with, `first` which of a row's matches stands for it.
    None of both: all rows do.
    """

    frame: DataFrame
    stream: StreamDefinition
    limit: int
    arrival: int
    matched: Column | None = None
    first: Column | None = None

    @cached_property
    def good(self) -> Column:
        """Not a dead letter; NULL where there is no time."""
        timely = self._is_timely(micros_of(self.stream))
        return timely & resolve(CORRUPT).isNull() if CORRUPT in self.frame.columns else timely

    def _is_timely(self, time: Column) -> Column:
        return (time >= F.lit(EARLIEST)) & (time <= moving(self.limit, time))

    @property
    def marker(self) -> Column | None:
        """Whether a row is a promise and no tuple; None if the stream has no markers."""
        name = self.stream.disorder.markers
        return None if name is None else F.coalesce(resolve(name), F.lit(False))

    @property
    def tuples(self) -> Column:
        """The rows that windows can count."""
        return self.good if self.marker is None else self.good & ~self.marker

    def tick(self, attribute: Attribute) -> Column:
        """Where a tuple stands on an attribute; NULL if it has no place there."""
        if attribute.name == self.stream.time:
            return micros_of(self.stream)
        if attribute.counts_rows:
            return F.when(self.good, resolve(row_numbers(attribute.pattr)))
        if self.stream.schema.field(attribute.name) is None:
            return moving(self.arrival, micros_of(self.stream))
        if attribute.measure != TIME:
            return number_ticks(resolve(attribute.name), attribute.measure)
        time = micros(resolve(attribute.name))
        return F.when(self._is_timely(time), time)

    def placed(self, attribute: Attribute) -> Column:
        """The tuples that have a place on an attribute; all have one on the stream's time."""
        return self.tuples if attribute.name == self.stream.time else self.tuples & self.tick(attribute).isNotNull()

    def late(self, attribute: Attribute, missed: Mapping[Key, int]) -> DataFrame:
        """The tuples that came below the punctuation of their sub-stream, for those sub-streams that have any."""
        columns = [resolve(name) for name in self.stream.disorder.substreams if missed.keys() != {()}]
        frame = with_number(self.frame, columns, missed, _MISSED)
        return frame.where(self.placed(attribute) & (self.tick(attribute) < F.col(_MISSED)))

    def late_rows(self, attribute: Attribute, missed: Mapping[Key, int], windows: Callable[[Column, Column], Column]) -> DataFrame:
        """The same, as they are written out: each with the attribute it is late on, the punctuation it missed, and the windows: a Column
        of the tick and the punctuation.
        """
        value = attribute.measure.value
        reached = F.timestamp_micros(F.col(_MISSED)) if attribute.measure == TIME else F.lit(str(value(missed[()])))
        told = {"late_on": F.lit(attribute.name), "punctuation": reached, "missed": windows(self.tick(attribute), F.col(_MISSED))}
        return self.late(attribute, missed).withColumns(told).drop(ARRIVED, _MISSED)

    def dead_letters(self, attributes: Sequence[Attribute]) -> DataFrame:
        """The bad rows, and those without a place on one of these attributes, with the reason for each."""
        time = micros_of(self.stream)
        early = F.when(time < F.lit(EARLIEST), F.lit("time too far back")).otherwise(F.lit("time too far ahead"))
        reason = F.when(time.isNull(), F.lit("no time")).otherwise(early)
        if CORRUPT in self.frame.columns:
            reason = F.when(resolve(CORRUPT).isNotNull(), F.lit("unparsable")).otherwise(reason)
        reasons = [F.when(~F.coalesce(self.good, F.lit(False)), reason)]
        reasons += [F.when(self.tuples & ~self.placed(one), F.lit(f"no {one.name} to place it by")) for one in attributes]
        return self.frame.withColumn("reason", F.coalesce(*reasons)).where(F.col("reason").isNotNull()).drop(ARRIVED)
