"""Rows that are written out beside the results: dead letters, and rows that came late.

In: the rows of a batch and its facts. Out: JSON lines under the entry's name, written by Spark.
Convention: another pass over the batch for each, and only where there are such rows. Overwriting under the entry's name makes it
repeatable.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from muntin.disorder import Key
from muntin.expression.tree import Column as Named
from muntin.plan.shared import SharedPlan
from muntin.query.model import Query
from muntin.semantics import Attribute, TupleSlide
from muntin.spark.entries import Pin
from muntin.spark.facts import BatchFacts
from muntin.spark.missed import missed
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

    def write_late(self, entry: EntryId, rows: Rows, late: Mapping[Attribute, Mapping[Key, int]], pin: Pin, plan: SharedPlan) -> None:
        """Rows below the punctuations they came under, with the windows they missed, whatever the late policies of queries make of them."""
        for one, punctuations in late.items() if self.late else ():
            queries = [plan.query for plan in plan.queries if plan.query.window.attribute == one]
            parts = []
            for punctuation in sorted(set(punctuations.values())):
                keys = {key: punctuation for key, reached in punctuations.items() if reached == punctuation}
                windows = self._missed(queries, rows, one, punctuation, pin.punctuations.get(str(one), BEGINNING))
                parts.append(rows.late_rows(one, keys).withColumn("missed", windows))
            if self.late:
                place = self.late / f"{entry}-{one.name}"
                reduce(DataFrame.unionByName, parts).write.mode("overwrite").json(place.spark_uri)

    def _missed(self, queries: Sequence[Query], rows: Rows, one: Attribute, own: int, overall: int) -> Column:
        """The windows that were closed by what was promised of a row's own sub-stream, or of all."""
        columns = rows.stream.disorder.substreams if one.name == rows.stream.time else ()
        by_itself = [query for query in queries if closes_by_itself(query, columns)]
        others = [query for query in queries if query not in by_itself]
        parts = [missed(some, self.since, rows.tick(one), upto, one.measure) for some, upto in ((by_itself, own), (others, overall))]
        return F.concat(*parts)


def closes_by_itself(query: Query, columns: Sequence[str]) -> bool:
    """Whether a promise about a sub-stream, named by these columns, closes windows of the query."""
    grouped = {group.expression.name for group in query.group_by if isinstance(group.expression, Named)}
    divided = set(query.window.pattr) if isinstance(query.window, TupleSlide) else grouped
    return bool(columns) and set(columns) <= divided and not (query.marks and isinstance(query.window, TupleSlide))
