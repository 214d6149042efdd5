"""The partials of a batch: every pass over its rows, each over the rows joined as its groupings ask.

In: a plan and the rows of a batch. Out: `Partials` per grouping, in the plan's order, and the batch's facts.
Convention: with several passes the batch is kept in memory in between, so that the source is read once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

from pyspark.sql import functions as F

from muntin.plan.shared import SharedPlan
from muntin.query.model import Join, StreamDefinition
from muntin.spark.partials import BatchFacts, Pass, passes
from muntin.spark.rows import Rows, micros_of
from muntin.spark.slicekey import KeyKind
from muntin.timeline import BEGINNING, Interval
from muntin.windows.shards import Partials

Joining = Callable[[Rows, Sequence[Join]], Rows]


@dataclass(frozen=True)
class Collecting:
    """The passes of one plan, ready for any batch."""

    stream: StreamDefinition
    plan: SharedPlan

    @cached_property
    def passes(self) -> list[Pass]:
        return passes(self.stream, self.plan)

    def __call__(self, rows: Rows, span: Interval | None, joining: Joining) -> tuple[list[Partials], BatchFacts]:
        if not self.passes:
            return [], facts_alone(rows)
        if len(self.passes) > 1:
            rows.frame.persist()
        try:
            found: dict[int, Partials] = {}
            for one in self.passes:
                partials, facts = one.collected(joining(rows, one.groupings[0].family.joins), span)
                found |= {id(grouping): part for grouping, part in zip(one.groupings, partials, strict=True)}
        finally:
            if len(self.passes) > 1:
                rows.frame.unpersist()
        return [found[id(grouping)] for grouping in self.plan.groupings], facts

    def span_of(self, rows: Rows) -> Interval | None:
        """The span of bounded rows, found by a pass of its own, and only where a ring needs it."""
        if not any(key.kind is KeyKind.RING for one in self.passes for key in one.slice_keys):
            return None
        micros = micros_of(rows.stream)
        timed = F.when(rows.good(micros), micros)
        ends = rows.frame.agg(F.min(timed), F.max(timed)).toArrow()
        low, high = (column.to_pylist()[0] for column in ends.columns)
        return None if low is None else Interval(low, high + 1)


def facts_alone(rows: Rows) -> BatchFacts:
    """What a batch says about itself where no query asks for more."""
    micros = micros_of(rows.stream)
    timed = F.when(rows.good(micros), micros)
    counts = rows.frame.agg(F.count(F.lit(1)), F.max(timed), F.count(timed)).toArrow()
    read, last, good = (column.to_pylist()[0] for column in counts.columns)
    return BatchFacts(read, BEGINNING if last is None else last, read - good)
