"""How far the attributes of a stream come, entry by entry.

In: what was observed so far, an entry and its plan. Out: what is known after the entry, in the forms that assembly asks for.
Convention: queries that come with an entry begin where attributes were before it; its windows close by what is known after it.
"""

from __future__ import annotations

from muntin.disorder import Attributes
from muntin.plan.shared import SharedPlan
from muntin.semantics import Attribute
from muntin.spark.collecting import Spans, expected_span
from muntin.spark.entries import Entry, EntryKind
from muntin.spark.facts import BatchFacts
from muntin.windows.assemblies import Reaches
from muntin.windows.substreams import Substreams


def followed(attributes: Attributes, plan: SharedPlan, facts: BatchFacts) -> Attributes:
    """With attributes that queries are over for the first time. Of a column that nobody asked for before, this batch's rows are the first
    that are known: where there were rows before, windows over it begin after them.
    """
    unknown = [one for one in plan.attributes if one not in attributes.punctuators]
    following = attributes.following(plan.attributes)
    return following.begun_at({one: facts.last(str(one)) for one in unknown}) if unknown and attributes.rows else following


def advanced(attributes: Attributes, entry: Entry) -> Attributes:
    """After an entry."""
    facts = entry.facts
    observed = attributes.observe(entry.pin.clock, facts.seen, facts.rows, facts.late)
    return observed.closed() if entry.kind is EntryKind.CLOSING else observed


def reaches(attributes: Attributes) -> Reaches:
    def reach(one: Attribute) -> tuple[int, int]:
        reached = attributes.reached(one)
        return reached.punctuation, reached.latest

    return reach


def substreams_of(attributes: Attributes) -> Substreams:
    """Which parts of the stream are further than the whole, on its time."""
    stream = attributes.stream
    return Substreams(stream.disorder.substreams, attributes.punctuators[Attribute(stream.time)].punctuations.of)


def early(before: Attributes, after: Attributes, plan: SharedPlan) -> frozenset[int]:
    """The EMIT EVERY, in microseconds, of queries that give early results with an entry: a period of theirs begins with it."""
    return frozenset(every for every in periods(plan) if before.begins_period(every, after.clock))


def periods(plan: SharedPlan) -> set[int]:
    """The EMIT EVERY of all queries, in microseconds."""
    return {one.query.emit_every.micros for one in plan.queries if one.query.emit_every is not None}


def expected(attributes: Attributes, plan: SharedPlan, facts: BatchFacts) -> Spans:
    """Where the rows of the next batch are likely."""
    spans = {one: expected_span(facts.last(str(one)), attributes.reached(one).punctuation) for one in plan.attributes}
    return {one: span for one, span in spans.items() if span is not None}
