"""The slice log: the durable sequence of partials, one entry per micro-batch. It is the only state there is.

In: for each entry a pin (all that its result depends on besides its rows), its partials, and at the end a mark that it is done.
Out: the state after the last entry that is done: the newest snapshot and the entries after it.
Convention: pin, partials, results, done, in this order; each is one durable file named by the entry, so a crash between any two
leaves a state that the next run goes on from. A snapshot is a compacted prefix of the log in the same form as an entry, taken when
the log since the last one has grown larger than it, so writing stays amortised and reading is proportional to the state.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from enum import Enum
from pathlib import Path
from typing import Any

import pyarrow as pa

from muntin.errors import CheckpointError
from muntin.plan.shared import SharedPlan
from muntin.spark import durable
from muntin.spark.encoding import decode_partials, encode_partials
from muntin.spark.partials import BatchFacts
from muntin.spark.sinks.base import EntryId
from muntin.windows.store import Partials

#: A log shorter than this is not worth a snapshot.
SMALLEST_SNAPSHOT = 1 << 20
#: Nor is one of more entries than this worth keeping: every entry costs a file to open.
MOST_ENTRIES = 100


@dataclass(frozen=True)
class Pin:
    """What a batch's result depends on besides its rows. A replay uses the pin, not the clock or the registry of the day."""

    registry: int
    punctuation: int
    limit: int
    spark_query: str
    strategy: str


class EntryKind(Enum):
    BATCH = "batch"  # a micro-batch
    CLOSING = "closing"  # the end of the input: every open window closes


@dataclass(frozen=True)
class Entry:
    """A log entry: the partials of a batch and its facts."""

    id: EntryId
    partials: list[Partials]
    facts: BatchFacts
    kind: EntryKind = EntryKind.BATCH


@dataclass(frozen=True)
class Snapshot:
    """The state after entry `id`, and the counters at that point."""

    id: EntryId
    partials: list[Partials]
    counters: dict[str, Any]


class SliceLog:
    def __init__(self, directory: Path, plan: SharedPlan) -> None:
        self.plan = plan
        self._pins, self._log, self._done, self._snapshots = (directory / name for name in ("pins", "log", "done", "snapshots"))
        self._grown = 0
        self._entries = 0
        self._snapshot_size = 0

    def pinned(self, entry: EntryId) -> Pin | None:
        path = self._pins / str(entry)
        return Pin(**_without_blobs(durable.read(path)[0])) if path.exists() else None

    def pin(self, entry: EntryId, pin: Pin) -> None:
        durable.write(self._pins / str(entry), asdict(pin))

    def read(self, entry: EntryId) -> Entry | None:
        path = self._log / str(entry)
        return self._entry(entry, path) if path.exists() else None

    def append(self, entry: Entry) -> None:
        blobs = [encode_partials(partials, grouping) for partials, grouping in zip(entry.partials, self.plan.groupings, strict=True)]
        self._grown += durable.write(self._log / str(entry.id), asdict(entry.facts) | {"kind": entry.kind.value}, blobs)
        self._entries += 1

    def done(self, entry: EntryId, counters: dict[str, Any]) -> None:
        durable.write(self._done / str(entry), counters)

    def wants_snapshot(self) -> bool:
        return self._grown >= max(self._snapshot_size, SMALLEST_SNAPSHOT) or self._entries >= MOST_ENTRIES

    def snapshot(self, snapshot: Snapshot) -> None:
        """Write the state, then forget the entries it stands for."""
        blobs = [encode_partials(partials, grouping) for partials, grouping in zip(snapshot.partials, self.plan.groupings, strict=True)]
        self._snapshot_size = durable.write(self._snapshots / str(snapshot.id), snapshot.counters, blobs)
        self._grown = self._entries = 0
        self._forget(snapshot.id)

    def recover(self) -> tuple[Snapshot | None, Iterator[Entry], dict[str, Any]]:
        """The newest snapshot, the finished entries after it, and the counters after the last of them."""
        snapshot = self._newest_snapshot()
        if snapshot:
            self._forget(snapshot.id)
        finished = self._names(self._done)
        logged = self._names(self._log)
        self._check_contiguous(snapshot, finished, logged)
        counters = _without_blobs(durable.read(self._done / str(finished[-1]))[0]) if finished else (snapshot.counters if snapshot else {})
        self._entries = len(finished)
        self._grown = sum((self._log / str(entry)).stat().st_size for entry in finished)
        return snapshot, (self._entry(entry, self._log / str(entry)) for entry in finished), counters

    def unfinished_timer(self, last: EntryId) -> Entry | None:
        """A timer entry that was logged after `last` and not finished: nothing else will bring it again."""
        return self.read(last.next_timer())

    def newest_pinned(self) -> EntryId | None:
        """The latest batch begun, finished or not."""
        pins = self._names(self._pins)
        return pins[-1] if pins else None

    def newest_pin(self) -> Pin | None:
        """The pin of the latest batch begun: it names the Spark checkpoint this log goes with."""
        pins = self._names(self._pins)
        return self.pinned(pins[-1]) if pins else None

    def _entry(self, entry: EntryId, path: Path) -> Entry:
        header, blobs = durable.read(path)
        facts = _without_blobs(header)
        kind = EntryKind(facts.pop("kind"))
        return Entry(entry, self._partials(blobs), BatchFacts(**facts), kind)

    def _partials(self, blobs: Sequence[memoryview]) -> list[Partials]:
        return [decode_partials(pa.py_buffer(blob), grouping) for blob, grouping in zip(blobs, self.plan.groupings, strict=True)]

    def _newest_snapshot(self) -> Snapshot | None:
        names = self._names(self._snapshots)
        if not names:
            return None
        path = self._snapshots / str(names[-1])
        header, blobs = durable.read(path)
        self._snapshot_size = path.stat().st_size
        return Snapshot(names[-1], self._partials(blobs), _without_blobs(header))

    def _check_contiguous(self, snapshot: Snapshot | None, finished: list[EntryId], logged: list[EntryId]) -> None:
        expected = snapshot.id if snapshot else EntryId(-1)
        for entry in finished:
            if entry not in (expected.next_batch(), expected.next_timer()):
                raise durable.damaged(self._done, f"entry {entry} is there, but {expected.next_batch()} before it is not")
            if entry not in logged:
                raise durable.damaged(self._log / str(entry), "the file is missing")
            expected = entry

    def _forget(self, upto: EntryId) -> None:
        """Delete what the snapshot at `upto` stands for; the newest pin stays, since it names the Spark checkpoint."""
        for folder in (self._log, self._done, self._snapshots, self._pins):
            for entry in self._names(folder):
                if entry < upto or (entry == upto and folder in (self._log, self._done)):
                    (folder / str(entry)).unlink()

    @staticmethod
    def _names(folder: Path) -> list[EntryId]:
        if not folder.exists():
            return []
        try:
            return sorted(EntryId.parse(path.name) for path in folder.iterdir() if not path.name.startswith("."))
        except ValueError as error:
            raise CheckpointError(
                "a checkpoint holds nothing but its own files", values=f"{folder}: {error}", way_out="remove it"
            ) from None


def _without_blobs(header: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in header.items() if key != "blobs"}
