"""Rows that are written out beside the results: dead letters, and rows that came late.

In: the rows of a batch and its facts. Out: JSON lines under the entry's name, written by Spark.
Convention: another pass over the batch for each, and only where there are such rows. Overwriting under the entry's name makes it
repeatable.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from muntin.plan.shared import SharedPlan
from muntin.semantics import Attribute
from muntin.spark.entries import Pin
from muntin.spark.facts import BatchFacts
from muntin.spark.missed import missed
from muntin.spark.place import Place
from muntin.spark.rows import Rows
from muntin.spark.sinks.base import EntryId


@dataclass(frozen=True)
class Letters:
    """Where they go; nowhere, if no place is given. `since` says from when on each query takes part."""

    dead: Place | None
    late: Place | None
    since: Mapping[str, int] = field(default_factory=dict)

    def write_dead(self, entry: EntryId, rows: Rows, facts: BatchFacts, attributes: Sequence[Attribute]) -> None:
        """Rows that cannot be used, or not by windows over one of these attributes."""
        if self.dead and (facts.dead or facts.missing):
            lacking = [one for one in attributes if one.name in facts.missing]
            rows.dead_letters(lacking).write.mode("overwrite").json((self.dead / str(entry)).spark_uri)

    def write_late(self, entry: EntryId, rows: Rows, facts: BatchFacts, pin: Pin, plan: SharedPlan) -> None:
        """Rows below the punctuation of an attribute, with the windows they missed, whatever the late policies of queries make of them."""
        for one in plan.attributes if self.late else ():
            if self.late and facts.late.get(str(one)):
                place, punctuation = self.late / f"{entry}-{one.name}", pin.punctuations[str(one)]
                queries = [plan.query for plan in plan.queries if plan.query.window.attribute == one]
                windows = missed(queries, self.since, rows.tick(one), punctuation, one.measure)
                rows.late_rows(one, punctuation).withColumn("missed", windows).write.mode("overwrite").json(place.spark_uri)
