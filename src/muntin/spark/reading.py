"""Reading a batch: its rows once, into partials; and out again what cannot be used or came late.

In: a batch's DataFrame, its pin, how far attributes have come. Out: what was collected, with late rows counted.
Convention: the passes of a plan are made once and serve every batch until there is another plan.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from pyspark.sql import DataFrame

from muntin.disorder import Attributes
from muntin.plan.load import Load
from muntin.plan.shared import SharedPlan
from muntin.spark.collecting import Collected, Collecting, Spans
from muntin.spark.crew import Crew
from muntin.spark.entries import Pin
from muntin.spark.joining import Joiner
from muntin.spark.letters import Letters
from muntin.spark.rows import Rows
from muntin.spark.sighting import late_counts, missed_in
from muntin.spark.sinks.base import EntryId

#: From so many shards a batch on, merging cells of one fragment pays: it costs an array look-up a row, and some milliseconds a batch.
MANY_SHARDS = 50_000


@dataclass
class Reading:
    """What one job reads with. Groupings that are spread are parted for the crew."""

    joiner: Joiner
    crew: Crew | None
    collecting: Collecting

    def __call__(
        self,
        entry: EntryId,
        frame: DataFrame,
        pin: Pin,
        plan: SharedPlan,
        attributes: Attributes,
        *,
        spans: Spans | None,
        load: Load,
        letters: Letters,
    ) -> Collected:
        """The partials of a batch. `spans` says where its rows are likely; None: they are bounded, and it can be found out.

        A plan that stays for a second batch is worth more: it is found out which cells are one fragment, and its habits are its own. One
        that goes by has those of the plan before, so that nothing is compiled for it.
        """
        many = load.seen >= MANY_SHARDS
        if plan is not self.collecting.plan:
            self.collecting = Collecting(attributes.stream, plan, spans is None and many, self.collecting.habits)
        elif self.collecting.held is not None or (many and not self.collecting.merging):
            self.collecting = Collecting(attributes.stream, plan, self.collecting.merging or many)
        rows = Rows(frame, attributes.stream, pin.limit, attributes.arrival(pin.clock))
        found = self.collecting(
            rows,
            self.collecting.spans_of(rows) if spans is None else spans,
            lambda rows, joins: self.joiner.rows(rows, joins, pin.tables),
            came=attributes.counted,
            parting=self.crew.parting(entry) if self.crew else None,
        )
        missed = missed_in(found.facts, attributes, plan.attributes)
        facts = replace(found.facts, late=late_counts(rows, missed))
        letters.write_dead(entry, rows, facts, plan.attributes)
        letters.write_late(entry, rows, missed, plan, pin.punctuations)
        return replace(found, facts=facts)
