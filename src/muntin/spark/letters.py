"""Rows that are written out beside the results: dead letters, and rows that came late.

In: the rows of a batch and its facts. Out: JSON lines under the entry's name, written by Spark.
Convention: another pass over the batch for each, and only where there are such rows. Overwriting under the entry's name makes it
repeatable.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from muntin.disorder import Key
from muntin.plan.shared import SharedPlan
from muntin.semantics import Attribute
from muntin.spark.facts import BatchFacts
from muntin.spark.missed import Missed
from muntin.spark.place import Place
from muntin.spark.rows import Rows
from muntin.spark.sinks.base import EntryId
from muntin.timeline import BEGINNING


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

    def write_late(
        self, entry: EntryId, rows: Rows, under: Mapping[Attribute, Mapping[Key, int]], plan: SharedPlan, overall: Mapping[str, int]
    ) -> None:
        """Rows below the punctuations they came under, with the windows they missed, whatever the late policies of queries make of them.
        `overall` are the punctuations of the whole stream, by the names of attributes.
        """
        for one, punctuations in under.items() if self.late else ():
            if self.late:
                queries = [known.query for known in plan.queries if known.query.window.attribute == one and known.query.name in self.since]
                windows = Missed(queries, self.since, rows.stream.disorder.substreams, overall.get(str(one), BEGINNING), one.measure)
                place = self.late / f"{entry}-{one.name}"
                rows.late_rows(one, punctuations, windows).write.mode("overwrite").json(place.spark_uri)
