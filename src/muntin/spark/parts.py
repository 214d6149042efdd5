"""Parts: what one instance gets of an entry, or holds in a snapshot, each in a file of its own.

In: partials and holdings, or names of parts. Out: files in a place, and back. Convention: a part is named by its instance, a number and an
id of its own: what a failed or late copy of a task leaves has another name, and nobody asks for it. An instance that gets nothing has no
part. Parts that were made for another number of instances are read by all, who take what is theirs: each has a range of the buckets.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from muntin.columnar import Array, integers
from muntin.plan.family import BUCKETS
from muntin.plan.shared import Grouping, SharedPlan
from muntin.spark import durable
from muntin.spark.encoding import decode_partials, encode_partials
from muntin.spark.holdings import holding_blobs, holdings_from
from muntin.spark.place import Place
from muntin.windows.shards import Partials, concatenated, grouping_layout
from muntin.windows.snapshots import Holding


@dataclass(frozen=True)
class Parts:
    """Names of parts, for how many instances they are, and what they take in the log."""

    instances: int = 1
    names: tuple[str, ...] = ()
    size: int = 0

    def of(self, instance: int, instances: int) -> Sequence[str]:
        """Those in which one of so many instances finds what is its own."""
        return [name for name in self.names if instance_in(name) == instance] if self.instances == instances else self.names

    def __add__(self, other: Parts) -> Parts:
        """Of the same number of instances."""
        return Parts(self.instances, (*self.names, *other.names), self.size + other.size)


NO_PARTS = Parts()


def part_name(instance: int, number: int = 0) -> str:
    return f"{instance:05d}-{number:03d}-{uuid.uuid4().hex}"


def instance_in(name: str) -> int:
    return int(name.partition("-")[0])


def instance_of(bucket: Array, instances: int) -> Array:
    """Which instance has a bucket."""
    found: Array = bucket.astype(np.int64) * instances // BUCKETS
    return found


def own_rows(partials: Partials, instance: int, instances: int) -> Partials:
    """The rows of an instance; the bucket is their last key."""
    return partials.rows(np.nonzero(instance_of(integers(partials.keys[-1], null=0), instances) == instance)[0])


def write_partials(place: Place, partials: Mapping[int, tuple[Grouping, Partials]]) -> int:
    """A part of an entry, by the positions of the groupings in the plan. Returns its size."""
    blobs = [encode_partials(some, grouping_layout(grouping)) for grouping, some in partials.values()]
    return durable.write(place, {"groupings": list(partials)}, blobs)


def read_partials(place: Place, parts: Parts, plan: SharedPlan, *, instance: int, instances: int) -> list[Partials]:
    """What an instance gets of an entry, grouping by grouping of the entry's plan."""
    found: list[list[Partials]] = [[grouping_layout(one).empty()] for one in plan.groupings]
    for name in parts.of(instance, instances):
        header, blobs = durable.read(place / name)
        for at, blob in zip(header["groupings"], blobs, strict=True):
            partials = decode_partials(pa.py_buffer(blob), grouping_layout(plan.groupings[at]))
            found[at].append(partials if parts.instances == instances else own_rows(partials, instance, instances))
    return [concatenated([one for one in some if len(one)] or some[:1]) for some in found]


def write_holdings(place: Place, holdings: Sequence[Holding], plan: SharedPlan) -> int:
    """A part of a snapshot. Returns its size."""
    return durable.write(place, *holding_blobs(holdings, plan))


def read_holdings(place: Place, parts: Parts, plan: SharedPlan, *, instance: int = 0, instances: int = 1) -> Iterator[Holding]:
    """What an instance holds after a snapshot, part by part; one instance holds all."""
    for name in parts.of(instance, instances):
        for held in holdings_from(*durable.read(place / name), plan):
            same = parts.instances == instances
            yield held if same else replace(held, partials=own_rows(held.partials, instance, instances))
