"""Parts of an entry: partials of spread groupings, written to the slice log by the executors that have them.

In: the DataFrame of a pass. Out: names of the parts in the log, the partials of what is assembled once, and the batch's facts.
Convention: a part is all that one instance gets of one pass, in one file, named by the instance, the pass and an id of its own: what a
failed or late copy of a task leaves has another name, and nobody asks for it. An instance that gets nothing has no part.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from muntin.columnar import Array, integers
from muntin.plan.family import BUCKETS
from muntin.plan.shared import SharedPlan
from muntin.spark import durable
from muntin.spark.decoding import BUCKET, NO_FACTS, BatchFacts, Decoding
from muntin.spark.encoding import decode_partials, encode_partials
from muntin.spark.place import Place
from muntin.windows.shards import Partials, concatenated, grouping_layout

_INSTANCE = "_muntin_instance"
#: Rows of groupings that are assembled once.
_NOBODY = -1
_SCHEMA = "name string, size bigint, rows bigint, last bigint, dead bigint, rest binary"


@dataclass(frozen=True)
class Parts:
    """The parts of an entry, for so many instances, and what they take in the log."""

    instances: int
    names: tuple[str, ...] = ()
    size: int = 0

    def of(self, instance: int) -> list[str]:
        return [name for name in self.names if instance_in(name) == instance]


def part_name(instance: int, number: int) -> str:
    return f"{instance:05d}-{number:03d}-{uuid.uuid4().hex}"


def instance_in(name: str) -> int:
    return int(name.partition("-")[0])


def instance_of(bucket: Array, instances: int) -> Array:
    """Which instance has a bucket: each has a range of them."""
    found: Array = bucket.astype(np.int64) * instances // BUCKETS
    return found


def parted(
    frame: DataFrame, decoding: Decoding, number: int, place: Place, instances: int
) -> tuple[Parts, dict[int, Partials], BatchFacts]:
    """Write the parts of pass `number` to a place; the partials of groupings that are not spread come back, by their position in the pass."""
    bucket = F.col(BUCKET).cast("bigint")
    instance = F.coalesce(F.floor(bucket * F.lit(instances) / F.lit(BUCKETS)).cast("int"), F.lit(_NOBODY))
    divided = frame.withColumn(_INSTANCE, instance).repartition(instances, _INSTANCE)
    told = divided.mapInArrow(packing(decoding, number, place), _SCHEMA).toArrow()
    names = [name for name in told["name"].to_pylist() if name]
    facts = sum((BatchFacts(*one) for one in zip(*(told[name].to_pylist() for name in ("rows", "last", "dead")), strict=True)), NO_FACTS)
    rest = [pa.ipc.open_stream(blob).read_all() for blob in told["rest"].to_pylist() if blob]
    once = collected(decoding, rest, frame)
    return Parts(instances, tuple(names), sum(told["size"].to_pylist())), once, facts


def collected(decoding: Decoding, rest: Sequence[pa.Table], frame: DataFrame) -> dict[int, Partials]:
    wanted = [number for number, grouping in enumerate(decoding.groupings) if not grouping.family.spread]
    if not rest:
        return {number: grouping_layout(decoding.groupings[number]).empty() for number in wanted}
    sets = decoding.sets(pa.concat_tables(rest))
    return {number: decoding.partials(sets[number], number) for number in wanted}


def packing(decoding: Decoding, number: int, place: Place) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """What an executor does with its shards of a pass."""

    def pack(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        found = list(batches)
        if not found:
            return
        table = pa.Table.from_batches(found)
        facts = decoding.facts(decoding.sets(table)[0])
        owner = integers(table[_INSTANCE], null=_NOBODY)
        rest = table.filter(pa.array(owner == _NOBODY)).drop_columns(_INSTANCE)
        yield packed("", 0, facts, stream_of(rest) if rest.num_rows else b"")
        for instance in sorted(set(owner.tolist()) - {_NOBODY}):
            name = part_name(instance, number)
            sets = decoding.sets(table.filter(pa.array(owner == instance)))
            spread = [at for at, grouping in enumerate(decoding.groupings) if grouping.family.spread]
            blobs = [encode_partials(decoding.partials(sets[at], at), grouping_layout(decoding.groupings[at])) for at in spread]
            yield packed(name, durable.write(place / name, {"sets": spread}, blobs), NO_FACTS, b"")

    return pack


def packed(name: str, size: int, facts: BatchFacts, rest: bytes) -> pa.RecordBatch:
    types = (pa.string(), pa.int64(), pa.int64(), pa.int64(), pa.int64(), pa.binary())
    values = (name, size, facts.rows, facts.last, facts.dead, rest)
    names = [one.split()[0] for one in _SCHEMA.split(", ")]
    return pa.record_batch([pa.array([value], type=type) for value, type in zip(values, types, strict=True)], names=names)


def stream_of(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue().to_pybytes()


def read_parts(place: Place, parts: Parts, plan: SharedPlan, numbers: Sequence[Sequence[int]], instance: int, instances: int) -> list[Partials]:
    """What an instance gets of an entry, grouping by grouping. `numbers` are the groupings of each pass, as positions in the plan.

    Parts that were made for another number of instances are read by all, who take of them what is theirs.
    """
    same = parts.instances == instances
    found: list[list[Partials]] = [[grouping_layout(one).empty()] for one in plan.groupings]
    for name in parts.of(instance) if same else parts.names:
        header, blobs = durable.read(place / name)
        passed = numbers[int(name.split("-")[1])]
        for at, blob in zip(header["sets"], blobs, strict=True):
            grouping = passed[at]
            partials = decode_partials(pa.py_buffer(blob), grouping_layout(plan.groupings[grouping]))
            found[grouping].append(partials if same else own_rows(partials, instance, instances))
    return [concatenated([one for one in some if len(one)] or some[:1]) for some in found]


def own_rows(partials: Partials, instance: int, instances: int) -> Partials:
    return partials.rows(np.nonzero(instance_of(integers(partials.keys[-1], null=0), instances) == instance)[0])
