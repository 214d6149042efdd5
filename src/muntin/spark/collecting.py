"""The partials of a batch: every pass over its rows, each over the rows joined as its groupings ask.

In: a plan and the rows of a batch. Out: `Partials` per grouping, in the plan's order, and the batch's facts.
Convention: with several passes the batch is kept in memory in between, so that the source is read once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from pyspark.sql import functions as F

from muntin.disorder import Key, Seen
from muntin.plan.shared import SharedPlan
from muntin.query.model import Join, StreamDefinition
from muntin.semantics import Attribute
from muntin.spark.facts import BatchFacts
from muntin.spark.numbering import numbered
from muntin.spark.partials import Pass
from muntin.spark.passes import passes
from muntin.spark.rows import Rows, micros_of
from muntin.spark.sighting import has_substreams, sighted
from muntin.spark.slicekey import KeyKind
from muntin.timeline import Interval
from muntin.windows.shards import Partials

Joining = Callable[[Rows, Sequence[Join]], Rows]
#: Where rows are expected on each attribute.
Spans = Mapping[Attribute, Interval]


@dataclass(frozen=True)
class Collecting:
    """The passes of one plan, ready for any batch."""

    stream: StreamDefinition
    plan: SharedPlan

    @cached_property
    def passes(self) -> list[Pass]:
        return passes(self.stream, self.plan)

    @property
    def attributes(self) -> list[Attribute]:
        """What the windows of the plan are over."""
        return list(dict.fromkeys(grouping.family.over for grouping in self.plan.groupings))

    def __call__(self, rows: Rows, spans: Spans, joining: Joining, *, before: int) -> tuple[list[Partials], BatchFacts]:
        """`before` is how many rows came before these: their numbers go on from there."""
        numbers = any(query.counts_rows for grouping in self.plan.groupings for query in grouping.queries)
        several, read = len(self.passes) + has_substreams(self.stream) + numbers > 1, rows.frame
        if several:
            read.persist()
        try:
            if numbers:
                rows, span = numbered(rows, before)
                spans = {**spans, **{one: span for one in self.attributes if one.counts_rows}}
            found: dict[int, Partials] = {}
            facts = BatchFacts(0) if self.passes else facts_alone(rows)
            for one in self.passes:
                partials, told = one.collected(joining(rows, one.groupings[0].family.joins), spans.get(one.over))
                facts = replace(told, seen={**facts.seen, **told.seen}, missing={**facts.missing, **told.missing})
                found |= {id(grouping): part for grouping, part in zip(one.groupings, partials, strict=True)}
            if has_substreams(self.stream):
                facts = replace(facts, seen={**facts.seen, self.stream.time: sighted(rows)})
        finally:
            if several:
                read.unpersist()
        return [found[id(grouping)] for grouping in self.plan.groupings], facts

    def spans_of(self, rows: Rows) -> Spans:
        """The spans of bounded rows, each found by a pass of its own, and only where a ring needs it."""
        wanted = {one.over for one in self.passes if not one.over.counts_rows and any(key.kind is KeyKind.RING for key in one.slice_keys)}
        return {over: span for over in wanted if (span := span_of(rows, over)) is not None}


def span_of(rows: Rows, over: Attribute) -> Interval | None:
    placed = F.when(rows.placed(over), rows.tick(over))
    ends = rows.frame.agg(F.min(placed), F.max(placed)).toArrow()
    low, high = (column.to_pylist()[0] for column in ends.columns)
    return None if low is None else Interval(low, high + 1)


def facts_alone(rows: Rows) -> BatchFacts:
    """What a batch says about itself where no query asks for more."""
    time = F.when(rows.tuples, micros_of(rows.stream))
    counts = [F.count(F.lit(1)), F.count(F.when(~rows.good, F.lit(1))), F.count(time), F.min(time), F.max(time)]
    read, dead, tuples, least, last = (column.to_pylist()[0] for column in rows.frame.agg(*counts).toArrow().columns)
    seen: dict[str, dict[Key, Seen]] = {rows.stream.time: {(): Seen(tuples, least, last)}} if tuples else {}
    return BatchFacts(read, dead, read - dead - tuples, seen)
