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
from muntin.plan.shared import QueryPlan, SharedPlan
from muntin.spark.encoding import decode_partials, encode_partials
from muntin.spark.facts import BatchFacts, facts_from, facts_record
from muntin.spark.sinks.base import EntryId
from muntin.windows.shards import Partials, grouping_layout
from muntin.windows.snapshots import Holding, holding_layout

Parts = tuple[dict[str, Any], list[memoryview]]


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
    """A log entry: the partials of a batch and its facts."""

    id: EntryId
    pin: Pin
    partials: Sequence[Partials]
    facts: BatchFacts
    kind: EntryKind = EntryKind.BATCH


@dataclass(frozen=True)
class Snapshot:
    """The state after entry `id`, the plan it was held under, and the counters at that point."""

    id: EntryId
    plan: SharedPlan
    holdings: Sequence[Holding]
    counters: dict[str, Any]


def pin_from(header: Mapping[str, Any]) -> Pin:
    held = {key: value for key, value in header.items() if key != "blobs"}
    return Pin(**held | {"division": tuple((tuple(names), by_cell) for names, by_cell in held["division"])})


def entry_parts(entry: Entry, planner: Planner) -> Parts:
    groupings = planner.named(entry.pin.registry, entry.pin.division).groupings
    blobs = [encode_partials(one, grouping_layout(grouping)) for one, grouping in zip(entry.partials, groupings, strict=True)]
    return {"pin": dict(vars(entry.pin)), "facts": facts_record(entry.facts), "kind": entry.kind.value}, blobs


def entry_from(id: EntryId, header: Mapping[str, Any], blobs: Sequence[memoryview], planner: Planner) -> Entry:
    pin = pin_from(header["pin"])
    groupings = planner.named(pin.registry, pin.division).groupings
    decoded = [decode_partials(pa.py_buffer(blob), grouping_layout(one)) for blob, one in zip(blobs, groupings, strict=True)]
    return Entry(id, pin, decoded, facts_from(header["facts"]), EntryKind(header["kind"]))


def snapshot_parts(snapshot: Snapshot) -> Parts:
    plans = by_name(snapshot.plan)
    blobs = [encode_partials(one.partials, holding_layout(plans, one.predicates, one.columns)) for one in snapshot.holdings]
    held = [{"predicates": one.predicates, "columns": one.columns} for one in snapshot.holdings]
    return snapshot.counters | {"holdings": held}, blobs


def snapshot_from(id: EntryId, header: dict[str, Any], blobs: Sequence[memoryview], planner: Planner) -> Snapshot:
    plan = planner.choose(header["registry"])
    plans = by_name(plan)
    holdings = []
    for held, blob in zip(header["holdings"], blobs, strict=True):
        predicates, columns = tuple(held["predicates"]), tuple((name, at) for name, at in held["columns"])
        partials = decode_partials(pa.py_buffer(blob), holding_layout(plans, predicates, columns))
        holdings.append(Holding(predicates, columns, partials))
    return Snapshot(id, plan, holdings, header)


def by_name(plan: SharedPlan) -> dict[str, QueryPlan]:
    return {one.query.name: one for one in plan.queries}
