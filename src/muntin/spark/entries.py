"""What the slice log holds, and its form on disk: pins, entries, snapshots.

In: a pin, the partials of a batch, what an assembly holds. Out: a header (JSON) and blobs (Arrow), and back.
Convention: an entry carries its pin, so that it can be read under the plan it was made with, whatever plan is used now.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

import pyarrow as pa

from muntin.plan.planner import Names, Planner
from muntin.plan.shared import SharedPlan
from muntin.spark.encoding import decode_partials, encode_partials
from muntin.spark.facts import BatchFacts, facts_from, facts_record
from muntin.spark.holdings import holding_blobs, holdings_from
from muntin.spark.parts import NO_PARTS, Parts
from muntin.spark.sinks.base import EntryId
from muntin.windows.life import QueryLife, Stop
from muntin.windows.shards import Partials, grouping_layout
from muntin.windows.snapshots import Holding

Form = tuple[dict[str, Any], list[memoryview]]


@dataclass(frozen=True)
class Pin:
    """What a batch's result depends on besides its rows. A replay uses the pin, not the clock or the registry of the day.

    `punctuations` go by names of attributes. `limit` is the latest instant that is not too far ahead, `clock` the time the batch came,
    `tables` are the versions of the static tables.
    """

    registry: int
    punctuations: Mapping[str, int]
    limit: int
    clock: int
    spark_query: str
    division: Names
    tables: Mapping[str, str] = field(default_factory=dict)


class EntryKind(Enum):
    BATCH = "batch"  # a micro-batch
    TIMER = "timer"  # nothing came, but time goes on
    CLOSING = "closing"  # the end of the input: every open window closes


@dataclass(frozen=True)
class Entry:
    """A log entry: the partials of a batch and its facts.

    Groupings that are spread have none here: theirs are in `parts`. Of one that is done, `stops` are the queries that went wrong with it,
    and `lives` what each spread query has gone through.
    """

    id: EntryId
    pin: Pin
    partials: Sequence[Partials]
    facts: BatchFacts
    kind: EntryKind = EntryKind.BATCH
    parts: Parts = NO_PARTS
    stops: Mapping[str, Stop] = field(default_factory=dict)
    lives: Mapping[str, QueryLife] = field(default_factory=dict)


@dataclass(frozen=True)
class Snapshot:
    """The state after entry `id`, the plan it was held under, and the counters at that point; `parts` are what instances hold."""

    id: EntryId
    plan: SharedPlan
    holdings: Sequence[Holding]
    counters: dict[str, Any]
    parts: Parts = NO_PARTS


def pin_from(header: Mapping[str, Any]) -> Pin:
    held = {key: value for key, value in header.items() if key != "blobs"}
    return Pin(**held | {"division": tuple((tuple(names), *how) for names, *how in held["division"])})


def entry_form(entry: Entry, planner: Planner) -> Form:
    groupings = planner.named(entry.pin.registry, entry.pin.division).groupings
    blobs = [encode_partials(one, grouping_layout(grouping)) for one, grouping in zip(entry.partials, groupings, strict=True)]
    header = {"pin": dict(vars(entry.pin)), "facts": facts_record(entry.facts), "kind": entry.kind.value, "parts": dict(vars(entry.parts))}
    return header, blobs


def entry_from(id: EntryId, header: Mapping[str, Any], blobs: Sequence[memoryview], planner: Planner) -> Entry:
    pin = pin_from(header["pin"])
    groupings = planner.named(pin.registry, pin.division).groupings
    decoded = [decode_partials(pa.py_buffer(blob), grouping_layout(one)) for blob, one in zip(blobs, groupings, strict=True)]
    return Entry(id, pin, decoded, facts_from(header["facts"]), EntryKind(header["kind"]), parts_from(header))


def snapshot_form(snapshot: Snapshot) -> Form:
    header, blobs = holding_blobs(snapshot.holdings, snapshot.plan)
    spread = [one.query.name for one in snapshot.plan.queries if one.spread]
    return snapshot.counters | header | {"spread": spread, "parts": dict(vars(snapshot.parts))}, blobs


def snapshot_from(id: EntryId, header: dict[str, Any], blobs: Sequence[memoryview], planner: Planner) -> Snapshot:
    plan = planner.placed(header["registry"], header["spread"])
    return Snapshot(id, plan, holdings_from(header, blobs, plan.part(spread=False)), header, parts_from(header))


def parts_from(header: Mapping[str, Any]) -> Parts:
    held = header["parts"]
    return Parts(held["instances"], tuple(held["names"]), held["size"])


def stops_from(header: Mapping[str, Any]) -> dict[str, Stop]:
    """The queries that went wrong with an entry, from its mark that it is done."""
    return {name: Stop(**stop) for name, stop in header["stops"].items()}


def lives_from(header: Mapping[str, Any]) -> dict[str, QueryLife]:
    """What queries had gone through after an entry, from its mark or its snapshot."""
    return {name: QueryLife(**life) for name, life in header["queries"].items()}
