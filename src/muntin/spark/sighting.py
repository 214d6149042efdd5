"""What a batch shows of the sub-streams of its stream, and the punctuations it carries.

In: the rows of a batch. Out: `Seen` for each sub-stream, on the stream's time; late rows, counted.
Convention: one small aggregation, only for streams that declare sub-streams or markers. A marker is about the sub-stream named by its own
columns; one whose columns are all NULL is about the whole stream. A marker without a usable time is a dead letter and promises nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from pyspark.sql import functions as F

from muntin.disorder import Attributes, Key, Punctuations, Seen
from muntin.query.model import StreamDefinition
from muntin.semantics import Attribute
from muntin.spark.facts import BatchFacts
from muntin.spark.rows import Rows, micros_of, resolve
from muntin.timeline import END


def has_substreams(stream: StreamDefinition) -> bool:
    return bool(stream.disorder.substreams) or stream.disorder.markers is not None


def sighted(rows: Rows) -> dict[Key, Seen]:
    """Every sub-stream that has rows or markers in the batch."""
    names, time = rows.stream.disorder.substreams, micros_of(rows.stream)
    tuples = F.when(rows.tuples, time)
    marked = F.lit(None).cast("bigint") if rows.marker is None else F.when(rows.good & rows.marker, time)
    frame = rows.frame.select(
        *(resolve(name).alias(f"_muntin_s{at}") for at, name in enumerate(names)), tuples.alias("t"), marked.alias("m")
    )
    found = frame.groupBy(*(f"_muntin_s{at}" for at in range(len(names)))).agg(F.count("t"), F.min("t"), F.max("t"), F.max("m")).toArrow()
    seen: dict[Key, Seen] = {}
    for *key, count, least, greatest, marker in zip(*(column.to_pylist() for column in found.columns), strict=True):
        if count:
            seen[tuple(key)] = Seen(count, least, greatest)
        if marker is not None:
            about = () if all(part is None for part in key) else tuple(key)
            known = seen.get(about, Seen())
            seen[about] = Seen(known.rows, known.least, known.greatest, max(known.marker, marker))
    return seen


def missed_in(facts: BatchFacts, before: Attributes, attributes: Iterable[Attribute]) -> dict[Attribute, dict[Key, int]]:
    """The punctuations that a batch's rows came below, of each sub-stream that has such rows, as they were before the batch."""
    missed: dict[Attribute, dict[Key, int]] = {}
    for one in attributes:
        made = before.punctuators[one].punctuations if one in before.punctuators else Punctuations()
        for key, seen in facts.seen.get(str(one), {}).items():
            if seen.least < min(made.at(key), END):
                missed.setdefault(one, {})[key] = made.at(key)
    return missed


def late_counts(rows: Rows, missed: Mapping[Attribute, Mapping[Key, int]]) -> dict[str, int]:
    """Tuples below the punctuations of each attribute, by a pass of their own, and only where there are any."""
    return {str(one): rows.late(one, punctuations).count() for one, punctuations in missed.items()}
