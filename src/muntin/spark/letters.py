"""Rows that are written out beside the results: dead letters, and rows that came late.

In: the rows of a batch and its facts. Out: JSON lines under the entry's name, written by Spark.
Convention: another pass over the batch for each, and only where there are such rows. Overwriting under the entry's name makes it
repeatable.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from muntin.disorder import Key
from muntin.semantics import Attribute
from muntin.spark.facts import BatchFacts
from muntin.spark.place import Place
from muntin.spark.rows import Rows
from muntin.spark.sinks.base import EntryId


@dataclass(frozen=True)
class Letters:
    """Where they go; nowhere, if no place is given. `attributes` are always those that windows are over."""

    dead: Place | None
    late: Place | None

    def write_dead(self, entry: EntryId, rows: Rows, facts: BatchFacts, attributes: Sequence[Attribute]) -> None:
        """Rows that cannot be used, or not by windows over some attribute."""
        if self.dead and (facts.dead or facts.missing):
            lacking = [one for one in attributes if one.name in facts.missing]
            rows.dead_letters(lacking).write.mode("overwrite").json((self.dead / str(entry)).spark_uri)

    def write_late(self, entry: EntryId, rows: Rows, missed: Mapping[Attribute, Mapping[Key, int]]) -> None:
        """Rows below the punctuations they came under, whatever the late policies of the queries make of them."""
        for one, punctuations in missed.items() if self.late else ():
            if self.late:
                place = self.late / f"{entry}-{one.name}"
                rows.late_rows(one, punctuations).write.mode("overwrite").json(place.spark_uri)
