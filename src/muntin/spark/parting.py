"""Parting: partials of spread groupings, written to the slice log by the executors that have them.

In: the DataFrame of a pass. Out: the parts of the entry, the partials of what is assembled once, the batch's facts, and how many shards
and groups there were. Convention: a part is what one instance gets of one task of a pass. The driver sees names and counts, and the
partials of groupings that are not spread.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from muntin.columnar import integers
from muntin.plan.family import BUCKETS
from muntin.spark.decoding import BUCKET, Decoding
from muntin.spark.facts import NO_ROWS, BatchFacts, facts_from, facts_record
from muntin.spark.parts import Parts, part_name, write_partials
from muntin.spark.place import Place
from muntin.windows.groups import codes_of
from muntin.windows.shards import Partials, grouping_layout

#: Up to so many parts every task that has shards writes a part for every instance; beyond, shards come together before they are written.
FEW_PARTS = 16
_INSTANCE = "_muntin_instance"
#: Rows of groupings that are assembled once.
_NOBODY = -1
_SCHEMA = "name string, size bigint, facts string, rest binary, shards array<bigint>, groups array<bigint>"
_TYPES = (pa.string(), pa.int64(), pa.string(), pa.binary(), *(pa.list_(pa.int64()),) * 2)


@dataclass(frozen=True)
class Tally:
    """How many shards and groups of a grouping went to instances. A group that several tasks had shards of counts for each of them."""

    shards: int = 0
    groups: int = 0

    def __add__(self, other: Tally) -> Tally:
        return Tally(self.shards + other.shards, self.groups + other.groups)


@dataclass(frozen=True)
class Parted:
    """What came of a pass: its parts, the partials of what is assembled once, and tallies of the rest, by positions in the plan."""

    parts: Parts
    once: Mapping[int, Partials]
    facts: BatchFacts
    tallies: Mapping[int, Tally] = field(default_factory=dict)


@dataclass(frozen=True)
class Parting:
    """Where the parts of an entry go, and for how many instances they are."""

    place: Place
    instances: int

    def __call__(self, frame: DataFrame, decoding: Decoding, positions: Sequence[int], number: int) -> Parted:
        """Part pass `number`. `positions` are those of its groupings in the plan."""
        bucket = F.col(BUCKET).cast("bigint")
        instance = F.coalesce(F.floor(bucket * F.lit(self.instances) / F.lit(BUCKETS)).cast("int"), F.lit(_NOBODY))
        divided = frame.withColumn(_INSTANCE, instance)
        if int(frame.sparkSession.conf.get("spark.sql.shuffle.partitions") or 0) * self.instances > FEW_PARTS:
            # By the number itself, not by its hash, which would give one task two instances and another none.
            divided = divided.repartitionById(self.instances, F.greatest(F.col(_INSTANCE), F.lit(0)))
        told = divided.mapInArrow(packing(decoding, tuple(positions), number, self.place), _SCHEMA).toArrow()
        facts = sum((facts_from(json.loads(one)) for one in told["facts"].to_pylist()), NO_ROWS)
        parts = Parts(self.instances, tuple(name for name in told["name"].to_pylist() if name), sum(told["size"].to_pylist()))
        rest = [pa.ipc.open_stream(blob).read_all() for blob in told["rest"].to_pylist() if blob]
        return Parted(parts, collected(decoding, positions, rest), facts, tallied(decoding, positions, told))


def collected(decoding: Decoding, positions: Sequence[int], rest: Sequence[pa.Table]) -> dict[int, Partials]:
    """The partials of all groupings of a pass, without the rows of those that are spread."""
    sets = decoding.sets(pa.concat_tables(rest)) if rest else []
    found = {}
    for number, (grouping, position) in enumerate(zip(decoding.groupings, positions, strict=True)):
        here = bool(sets) and not grouping.family.spread
        found[position] = decoding.partials(sets[number], number) if here else grouping_layout(grouping).empty()
    return found


def tallied(decoding: Decoding, positions: Sequence[int], told: pa.Table) -> dict[int, Tally]:
    """Of all tasks together."""
    spread = [position for grouping, position in zip(decoding.groupings, positions, strict=True) if grouping.family.spread]
    found = dict.fromkeys(spread, Tally())
    for shards, groups in zip(told["shards"].to_pylist(), told["groups"].to_pylist(), strict=True):
        for position, *counts in zip(spread, shards, groups, strict=False):
            found[position] += Tally(*counts)
    return found


def packing(
    decoding: Decoding, positions: tuple[int, ...], number: int, place: Place
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """What an executor does with its shards of a pass."""
    spread = [at for at, grouping in enumerate(decoding.groupings) if grouping.family.spread]

    def pack(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        found = list(batches)
        if not found:
            return
        table = pa.Table.from_batches(found)
        owner = integers(table[_INSTANCE], null=_NOBODY)
        rest = table.filter(pa.array(owner == _NOBODY)).drop_columns(_INSTANCE)
        yield row("", 0, decoding.facts(decoding.sets(table)[0]), stream_of(rest) if rest.num_rows else b"", [], [])
        for instance in sorted(set(owner.tolist()) - {_NOBODY}):
            name = part_name(instance, number)
            sets = decoding.sets(table.filter(pa.array(owner == instance)))
            partials = {at: decoding.partials(sets[at], at) for at in spread}
            size = write_partials(place / name, {positions[at]: (decoding.groupings[at], some) for at, some in partials.items()})
            counted = [groups_in(some, first=int(decoding.groupings[at].by_cell)) for at, some in partials.items()]
            yield row(name, size, NO_ROWS, b"", [len(some) for some in partials.values()], counted)

    return pack


def groups_in(partials: Partials, *, first: int) -> int:
    return int(codes_of(partials.keys[first:]).max()) + 1 if len(partials) else 0


def row(name: str, size: int, facts: BatchFacts, rest: bytes, shards: list[int], groups: list[int]) -> pa.RecordBatch:
    values = (name, size, json.dumps(facts_record(facts)), rest, shards, groups)
    names = [one.split()[0] for one in _SCHEMA.split(", ")]
    return pa.record_batch([pa.array([value], type=type) for value, type in zip(values, _TYPES, strict=True)], names=names)


def stream_of(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    found: bytes = sink.getvalue().to_pybytes()
    return found
