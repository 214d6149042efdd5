"""The partials of a batch: every pass over its rows, each over the rows joined as its groupings ask.

In: a plan and the rows of a batch. Out: `Partials` per grouping, in the plan's order, the batch's facts, and the parts of what is spread.
Convention: with several passes the batch is kept in memory in between, so that the source is read once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from pyspark.sql import functions as F

from muntin.plan.shared import SharedPlan
from muntin.query.model import Join, StreamDefinition
from muntin.spark.decoding import BatchFacts
from muntin.spark.partials import Pass, passes
from muntin.spark.parting import Parted, Parting, Tally
from muntin.spark.parts import NO_PARTS, Parts
from muntin.spark.rows import Rows, micros_of
from muntin.spark.slicekey import KeyKind
from muntin.timeline import BEGINNING, END, Interval
from muntin.windows.shards import Partials

Joining = Callable[[Rows, Sequence[Join]], Rows]


@dataclass(frozen=True)
class Collected:
    """The partials of a batch, grouping by grouping, what it says of itself, and what went to instances instead."""

    partials: Sequence[Partials]
    facts: BatchFacts
    parts: Parts = NO_PARTS
    tallies: Mapping[int, Tally] = field(default_factory=dict)


@dataclass(frozen=True)
class Collecting:
    """The passes of one plan, ready for any batch."""

    stream: StreamDefinition
    plan: SharedPlan

    @cached_property
    def passes(self) -> list[Pass]:
        return passes(self.stream, self.plan)

    def __call__(self, rows: Rows, span: Interval | None, joining: Joining, parting: Parting | None = None) -> Collected:
        """The partials of a batch. Those of groupings that are spread are parted, and their partials are not here."""
        if not self.passes:
            return Collected([], facts_alone(rows))
        if len(self.passes) > 1:
            rows.frame.persist()
        try:
            parted = [
                self._parted(number, one, joining(rows, one.groupings[0].family.joins), span, parting)
                for number, one in enumerate(self.passes)
            ]
        finally:
            if len(self.passes) > 1:
                rows.frame.unpersist()
        once = {position: partials for one in parted for position, partials in one.once.items()}
        tallies = {position: tally for one in parted for position, tally in one.tallies.items()}
        parts = sum((one.parts for one in parted), Parts(parting.instances)) if parting else NO_PARTS
        return Collected([once[position] for position in range(len(self.plan.groupings))], parted[-1].facts, parts, tallies)

    def _parted(self, number: int, one: Pass, rows: Rows, span: Interval | None, parting: Parting | None) -> Parted:
        positions = [next(at for at, other in enumerate(self.plan.groupings) if other is grouping) for grouping in one.groupings]
        if any(grouping.family.spread for grouping in one.groupings):
            assert parting is not None, "spread groupings are parted"
            return parting(one.frame(rows, span), one.decoding, positions, number)
        partials, facts = one.collected(rows, span)
        return Parted(NO_PARTS, dict(zip(positions, partials, strict=True)), facts)

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


def expected_span(facts: BatchFacts, punctuation: int) -> Interval | None:
    """Where the next batch's rows are likely: from the punctuation to as far past the last row as the last row is past that."""
    if facts.last < punctuation or punctuation >= END:
        return None
    return Interval(punctuation, facts.last + max(facts.last - punctuation, 60_000_000))
