"""The partials of a batch: every pass over its rows, each over the rows joined as its groupings ask.

In: a plan and the rows of a batch. Out: `Partials` per grouping, in the plan's order, the batch's facts, and the parts of what is spread.
Convention: with several passes the batch is kept in memory in between, so that the source is read once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, reduce
from operator import or_

from pyspark.sql import functions as F

from muntin.disorder import Key, Seen
from muntin.plan.shared import SharedPlan
from muntin.query.model import Join, StreamDefinition
from muntin.semantics import Attribute
from muntin.spark.facts import BatchFacts
from muntin.spark.habits import Habits
from muntin.spark.numbering import Numbers, number_span, numbered
from muntin.spark.partials import Pass
from muntin.spark.parting import Parted, Parting, Tally
from muntin.spark.parts import NO_PARTS, Parts
from muntin.spark.passes import passes
from muntin.spark.rows import Rows, micros_of
from muntin.spark.sighting import has_substreams, sighted
from muntin.spark.slicekey import KeyKind
from muntin.timeline import END, Interval
from muntin.windows.shards import Partials

Joining = Callable[[Rows, Sequence[Join]], Rows]
#: How many rows came, on each counter: of the stream, or of each partition.
Counted = Callable[[Attribute], Mapping[Key, int]]
#: Where rows are expected on each attribute.
Spans = Mapping[Attribute, Interval]


@dataclass(frozen=True)
class Collected:
    """The partials of a batch, grouping by grouping, what it says of itself, and what went to instances instead."""

    partials: Sequence[Partials]
    facts: BatchFacts
    parts: Parts = NO_PARTS
    tallies: Mapping[int, Tally] = field(default_factory=dict)


@dataclass(frozen=True)
class Collecting:
    """The passes of one plan, ready for any batch. `merging`: cells of one fragment are one shard. `held` are habits of the plan before,
    None if there was none, or if this one stays.
    """

    stream: StreamDefinition
    plan: SharedPlan
    merging: bool = False
    held: Habits | None = None

    @cached_property
    def passes(self) -> list[Pass]:
        return passes(self.stream, self.plan, merging=self.merging, held=self.held)

    @property
    def habits(self) -> Habits | None:
        """None of a plan without queries."""
        return reduce(or_, (one.habits for one in self.passes)) if self.passes else None

    def __call__(self, rows: Rows, spans: Spans, joining: Joining, *, came: Counted, parting: Parting | None = None) -> Collected:
        """The partials of a batch. Those of groupings that are spread are parted, and their partials are not here.

        `came` says how many rows came before these, on each counter: their numbers go on from there.
        """
        counters = self.plan.counters
        several, read = len(self.passes) + has_substreams(self.stream) + len(counters) > 1, rows.frame
        if several:
            read.persist()
        try:
            numbers: dict[Attribute, Numbers] = {}
            if counters:
                rows, numbers = numbered(rows, counters, came)
                spans = {**spans, **{one: span for one, seen in numbers.items() if (span := number_span(seen))}}
            parted = [
                self._parted(number, one, joining(rows, one.groupings[0].family.joins), spans.get(one.over), parting)
                for number, one in enumerate(self.passes)
            ]
            facts = all_facts([one.facts for one in parted]) if parted else facts_alone(rows)
            facts = replace(facts, seen={**facts.seen, **{str(one): seen for one, seen in numbers.items()}})
            if has_substreams(self.stream):
                facts = replace(facts, seen={**facts.seen, self.stream.time: sighted(rows)})
        finally:
            if several:
                read.unpersist()
        once = {position: partials for one in parted for position, partials in one.once.items()}
        tallies = {position: tally for one in parted for position, tally in one.tallies.items()}
        parts = sum((one.parts for one in parted), Parts(parting.instances)) if parting else NO_PARTS
        return Collected([once[position] for position in range(len(self.plan.groupings))], facts, parts, tallies)

    def _parted(self, number: int, one: Pass, rows: Rows, span: Interval | None, parting: Parting | None) -> Parted:
        positions = [next(at for at, other in enumerate(self.plan.groupings) if other is grouping) for grouping in one.groupings]
        if any(grouping.family.spread for grouping in one.groupings):
            assert parting is not None, "spread groupings are parted"
            return parting(one.frame(rows, span), one.decoding, positions, number)
        partials, facts = one.collected(rows, span)
        return Parted(NO_PARTS, dict(zip(positions, partials, strict=True)), facts)

    def spans_of(self, rows: Rows) -> Spans:
        """The spans of bounded rows, each found by a pass of its own, and only where a ring needs it."""
        wanted = {one.over for one in self.passes if not one.over.counts_rows and any(key.kind is KeyKind.RING for key in one.slice_keys)}
        return {over: span for over in wanted if (span := span_of(rows, over)) is not None}


def all_facts(told: Sequence[BatchFacts]) -> BatchFacts:
    """Of all passes: each tells of the whole batch, and of the attribute it is over."""
    seen = {name: of for one in told for name, of in one.seen.items()}
    return replace(told[-1], seen=seen, missing={name: count for one in told for name, count in one.missing.items()})


def span_of(rows: Rows, over: Attribute) -> Interval | None:
    placed = F.when(rows.placed(over), rows.tick(over))
    ends = rows.frame.agg(F.min(placed), F.max(placed)).toArrow()
    low, high = (column.to_pylist()[0] for column in ends.columns)
    return None if low is None else Interval(low, high + 1)


def facts_alone(rows: Rows) -> BatchFacts:
    """What a batch says about itself where no query asks for more."""
    time = F.when(rows.tuples, micros_of(rows.stream))
    counts = [F.count(F.lit(1)), F.count(F.when(~F.coalesce(rows.good, F.lit(False)), F.lit(1))), F.count(time), F.min(time), F.max(time)]
    read, dead, tuples, least, last = (column.to_pylist()[0] for column in rows.frame.agg(*counts).toArrow().columns)
    seen: dict[str, dict[Key, Seen]] = {rows.stream.time: {(): Seen(tuples, least, last)}} if tuples else {}
    return BatchFacts(read, dead, read - dead - tuples, seen)


def expected_span(last: int, punctuation: int) -> Interval | None:
    """Where the next batch's rows are likely: from the punctuation to as far past the last row as the last row is past that."""
    if last < punctuation or punctuation >= END:
        return None
    return Interval(punctuation, last + max(last - punctuation, 60_000_000))
