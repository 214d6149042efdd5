"""The slice log: the durable sequence of partials, one entry per micro-batch. It is the only state there is.

In: for each entry a pin (all that its result depends on besides its rows), its partials, and at the end a mark that it is done.
Out: the state after the last entry that is done: the newest snapshot and the entries after it.
Convention: pin, partials, results, done, in this order; each is one durable file named by the entry, so a crash between any two
leaves a state that the next run goes on from. Before each, `guard` makes sure that the log is still this job's. A snapshot is a compacted
prefix of the log in the same form as an entry, taken when the log since the last one has grown larger than it, so writing stays amortised
and reading is proportional to the state.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from muntin.errors import CheckpointError
from muntin.plan.planner import Planner
from muntin.spark import durable
from muntin.spark.entries import (
    Entry,
    Pin,
    Snapshot,
    entry_form,
    entry_from,
    lives_from,
    pin_from,
    snapshot_form,
    snapshot_from,
    stops_from,
)
from muntin.spark.place import Place
from muntin.spark.sinks.base import EntryId

#: A log shorter than this is not worth a snapshot.
SMALLEST_SNAPSHOT = 16 << 20
#: Nor is one of more entries than this worth keeping: every entry costs a file to open.
MOST_ENTRIES = 100


class SliceLog:
    """`guard` raises if another job has taken over the checkpoint."""

    def __init__(self, directory: Place, planner: Planner, guard: Callable[[], None]) -> None:
        self.planner = planner
        self._guard = guard
        self._pins, self._log, self._done, self._snapshots = (directory / name for name in ("pins", "log", "done", "snapshots"))
        self._grown = 0
        self._entries = 0
        self._snapshot_size = 0

    def pinned(self, entry: EntryId) -> Pin | None:
        path = self._pins / str(entry)
        return pin_from(durable.read(path)[0]) if path.exists() else None

    def pin(self, entry: EntryId, pin: Pin) -> None:
        self._write(self._pins / str(entry), dict(vars(pin)))

    def read(self, entry: EntryId) -> Entry | None:
        path = self._log / str(entry)
        return self._entry(entry) if path.exists() else None

    def append(self, entry: Entry) -> None:
        self._grown += self._write(self._log / str(entry.id), *entry_form(entry, self.planner)) + entry.parts.size
        self._entries += 1

    def done(self, entry: EntryId, counters: dict[str, Any]) -> None:
        self._write(self._done / str(entry), counters)

    def wants_snapshot(self) -> bool:
        return self._grown >= max(self._snapshot_size, SMALLEST_SNAPSHOT) or self._entries >= MOST_ENTRIES

    def snapshot(self, snapshot: Snapshot) -> None:
        """Write the state, then forget the entries it stands for."""
        self._snapshot_size = self._write(self._snapshots / str(snapshot.id), *snapshot_form(snapshot)) + snapshot.parts.size
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
        counters = durable.read(self._done / str(finished[-1]))[0] if finished else (snapshot.counters if snapshot else {})
        self._entries = len(finished)
        self._grown = sum((self._log / str(entry)).size() or 0 for entry in finished)
        return snapshot, map(self._finished, finished), counters

    def unfinished_timer(self, last: EntryId) -> Entry | None:
        """A timer entry that was logged after `last` and not finished: nothing else will bring it again."""
        return self.read(last.next_timer())

    def unfinished_batch(self, last: EntryId, committed: int) -> Entry | None:
        """The batch after `last`, if it was logged, not finished, and Spark has committed it: it will not bring it again."""
        following = last.next_batch()
        return self.read(following) if committed >= following.batch else None

    def newest_pinned(self) -> EntryId | None:
        """The latest batch begun, finished or not."""
        pins = self._names(self._pins)
        return pins[-1] if pins else None

    def newest_pin(self) -> Pin | None:
        """The pin of the latest batch begun: it names the Spark checkpoint this log goes with."""
        pins = self._names(self._pins)
        return self.pinned(pins[-1]) if pins else None

    def pins(self) -> list[Pin]:
        """Every pin that is still needed."""
        return [pin for name in self._names(self._pins) if (pin := self.pinned(name))]

    def _finished(self, entry: EntryId) -> Entry:
        """An entry with what came of it."""
        found = self._entry(entry)
        self._grown += found.parts.size
        if not any(spread for *_, spread in found.pin.division):
            return found
        done = durable.read(self._done / str(entry))[0]
        return replace(found, stops=stops_from(done), lives=lives_from(done))

    def _entry(self, entry: EntryId) -> Entry:
        return entry_from(entry, *durable.read(self._log / str(entry)), self.planner)

    def _newest_snapshot(self) -> Snapshot | None:
        names = self._names(self._snapshots)
        if not names:
            return None
        path = self._snapshots / str(names[-1])
        snapshot = snapshot_from(names[-1], *durable.read(path), self.planner)
        self._snapshot_size = (path.size() or 0) + snapshot.parts.size
        return snapshot

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
                    (folder / str(entry)).remove()

    def _write(self, place: Place, header: dict[str, Any], blobs: Sequence[bytes | memoryview] = ()) -> int:
        self._guard()
        return durable.write(place, header, blobs)

    @staticmethod
    def _names(folder: Place) -> list[EntryId]:
        try:
            return sorted(map(EntryId.parse, folder.files()))
        except ValueError as error:
            raise CheckpointError(
                "a checkpoint holds nothing but its own files", values=f"{folder}: {error}", way_out="remove it"
            ) from None
