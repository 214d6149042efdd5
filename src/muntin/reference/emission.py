"""What a query emits step by step: results when windows close, corrected ones when late rows come, early ones in between.

In: a query and `Step`s. Out: result rows in the order they are emitted: by step; there corrected ones, those of windows that close, early
ones; each by window end, then group. A query with LATE REEMIT also has `revision`, 0 for the first result of a window and group; one with
EMIT EVERY has `final`.
Convention: a row counts in a window as its late policy says, judged by the punctuation it came under. An early result comes with the
first step in each period of EMIT EVERY on the clock, for open windows and groups that got rows since the last one; one that cannot be
computed is left out. A late row that makes a slide-by-tuple window makes it for every group.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

from muntin.aggregates.base import Aggregate
from muntin.errors import DataError
from muntin.query.model import Lateness, Query
from muntin.reference.rows import Key, Tables, group_key, grouped, joined, passes, result_row, sort_key
from muntin.reference.steps import Placed, Schedule, Step
from muntin.semantics import LandmarkWindow, SlideOrder, TupleSlide, extent, wids, wids_after
from muntin.timeline import BEGINNING, END


def emitted(
    query: Query, steps: Sequence[Step], aggregates: Mapping[str, Aggregate], tables: Tables | None = None, *, since: int = BEGINNING
) -> list[dict[str, Any]]:
    """Everything it emits, for windows that start at `since` or later. Data that fails raises: see `Oracle.emitted`."""
    oracle = Oracle(query, steps, aggregates, tables or {}, since)
    rows = [row for _, _, row in oracle.emitted()]
    if oracle.error:
        raise oracle.error
    return rows


class Phase(IntEnum):
    """What comes first in a step."""

    CORRECTED = 0
    CLOSED = 1
    EARLY = 2


@dataclass(frozen=True)
class Found:
    """A window's end, a group, and its result or what failed in it."""

    phase: Phase
    end: int
    key: Key
    row: dict[str, Any] | DataError

    @property
    def place(self) -> tuple[Any, ...]:
        return self.phase, self.end, [sort_key(part) for part in self.key]


class Oracle:
    """One query over its steps. Nothing is kept from step to step but what was emitted how often."""

    def __init__(self, query: Query, steps: Sequence[Step], aggregates: Mapping[str, Aggregate], tables: Tables, since: int) -> None:
        self.query, self.window, self.aggregates, self.since = query, query.window, aggregates, since
        self.schedule = Schedule(query, steps)
        self.rows = [one for one in self.schedule.rows if not self.is_dropped(one)]
        self.joined = joined(query, self.rows, tables)
        self.passing: list[Placed] = []
        self.failing: list[tuple[Placed, DataError]] = []
        for one in self.joined:
            self.judge(one)
        self.revisions: Counter[tuple[str, int]] = Counter()
        self.error: DataError | None = None

    def judge(self, one: Placed) -> None:
        """WHERE and the group of a row; where either fails, so does every window that the row counts in."""
        try:
            if passes(self.query, one.row):
                group_key(self.query, one.row)
                self.passing.append(one)
        except DataError as error:
            self.failing.append((one, error))

    # -- which rows count where -------------------------------------------------------------------------------------------------

    def is_dropped(self, one: Placed) -> bool:
        """A row that is late for its first window counts in none, if the policy is consistent."""
        first = wids(one.tick, self.window)
        late = bool(first) and extent(first.start, self.window).end <= one.punctuation
        return late and self.query.late.lateness is Lateness.CONSISTENT

    def is_open(self, one: Placed, window_id: int) -> bool:
        """Whether a window still took rows when this one came."""
        inside = extent(window_id, self.window)
        unstarted = isinstance(self.window, LandmarkWindow) and self.window.period is None
        return inside.end + self.query.late.horizon > one.punctuation and (unstarted or inside.start >= self.since)

    def counts(self, one: Placed, window_id: int) -> bool:
        return one.tick in extent(window_id, self.window) and self.is_open(one, window_id)

    # -- which windows there are ------------------------------------------------------------------------------------------------

    def ids(self, rows: Sequence[Placed], partition: Key, step: int, punctuation: int) -> Iterable[int]:
        """The windows that may hold one of these rows of a group; with EMIT EMPTY, those between as well."""
        if isinstance(self.window, TupleSlide):
            return self.tuple_ids(self.window, partition, step)
        of_stream = [one for one in self.joined if one.step <= step] if self.query.emit_empty else rows
        touched = {w for one in of_stream for w in self.touched(one, step, punctuation)}
        if not self.query.emit_empty or not touched:
            return touched
        latest = max(one.tick for one in self.rows if one.step <= step)
        return range(min(touched), max(*touched, wids_after(latest, self.window) - 1) + 1)

    def touched(self, one: Placed, step: int, punctuation: int) -> Iterable[int]:
        found = wids(one.tick, self.window)
        if isinstance(self.window, LandmarkWindow) and self.window.period is None:
            latest = max(other.tick for other in self.rows if other.step <= step)
            reached = wids_after(punctuation, self.window) if punctuation < END else found.start
            found = range(found.start, max(wids_after(latest, self.window) + 1, reached))
        return (w for w in found if self.is_open(one, w))

    def tuple_ids(self, window: TupleSlide, partition: Key, step: int) -> Iterable[int]:
        """Ticks of RATTR, of every n-th row of the stream by arrival or in order; a row that is late for its own window makes none."""
        rows = [one for one in self.rows if one.step <= step and one.partition == partition]
        if window.order is SlideOrder.RANK:
            return window.ranked(Counter(one.tick for one in rows), before=0)
        return {one.tick for one in rows if (one.number + 1) % window.slide == 0 and self.is_open(one, one.tick)}

    # -- what is emitted when ---------------------------------------------------------------------------------------------------

    def emitted(self) -> Iterable[tuple[int, Key, dict[str, Any]]]:
        """Each result with its window's end and its group, up to the first window whose data fails; `error` is what failed there."""
        last_early = -1
        for step in range(len(self.schedule.steps)):
            early = self.is_early(step)
            found = list(self.failures(step))
            for key, rows in self.groups(step):
                found += self.of_group(key, rows, step, last_early if early else step)
            wrong = [one for one in found if isinstance(one.row, DataError)]
            failed = min(((one.phase, one.end) for one in wrong), default=(Phase.EARLY, END + 1))
            for one in sorted(found, key=lambda one: one.place):
                if (one.phase, one.end) < failed and not isinstance(one.row, DataError):
                    yield one.end, one.key, one.row
            self.error = next((one.row for one in wrong if isinstance(one.row, DataError) and (one.phase, one.end) == failed), None)
            if self.error:
                return
            last_early = step if early else last_early

    def failures(self, step: int) -> Iterable[Found]:
        """The windows that close, or are corrected, with a row in them that failed."""
        for one, error in self.failing:
            if one.step <= step:
                before, now = (self.schedule.reached(at, one.row, one.partition) for at in (step - 1, step))
                for w in self.ids([one], one.partition, step, now):
                    end = extent(w, self.window).end
                    corrects = end <= before and self.query.is_corrected and one.step == step
                    if (corrects or before < end <= now) and self.counts(one, w):
                        yield Found(Phase.CORRECTED if corrects else Phase.CLOSED, end, (), error)

    def is_broken(self, key: Key, window_id: int, step: int) -> bool:
        """Whether a row of this group failed that counts in a window."""
        return any(one.step <= step and self.counts(one, window_id) and group_key(self.query, one.row) == key for one, _ in self.failing)

    def is_early(self, step: int) -> bool:
        every, clocks = self.query.emit_every, self.schedule.clocks
        return every is not None and step > 0 and clocks[step] // every.micros > clocks[step - 1] // every.micros

    def groups(self, step: int) -> Iterable[tuple[Key, list[Placed]]]:
        return grouped(self.query, (one for one in self.passing if one.step <= step)).values()

    def of_group(self, key: Key, rows: list[Placed], step: int, early_since: int) -> Iterable[Found]:
        some_row = rows[0].row if rows else {}
        partition = rows[0].partition if rows else ()
        before, now = (self.schedule.reached(at, some_row, partition) for at in (step - 1, step))
        for w in self.ids(rows, partition, step, now):
            end = extent(w, self.window).end
            members = [one for one in rows if self.counts(one, w)]
            if not members and not self.query.emit_empty:
                continue
            closes, was_closed = before < end <= now, end <= before
            changes = any(one.step == step for one in members) or self.is_made(w, partition, step)
            is_corrected = was_closed and self.query.is_corrected and changes
            is_early = end > now and any(one.step > early_since for one in members) and not self.is_broken(key, w, step)
            phase = Phase.EARLY if end > now else Phase.CLOSED if closes else Phase.CORRECTED
            if closes or is_corrected or is_early:
                try:
                    row = self.result(w, key, members, final=end <= now)
                except DataError as error:
                    yield from [] if is_early else [Found(phase, end, key, error)]
                else:
                    yield from [] if row is None else [Found(phase, end, key, row)]

    def is_made(self, window_id: int, partition: Key, step: int) -> bool:
        """Whether a slide-by-tuple window is there since this step."""
        window = self.window
        return isinstance(window, TupleSlide) and window_id not in self.tuple_ids(window, partition, step - 1)

    def result(self, window_id: int, key: Key, members: list[Placed], *, final: bool) -> dict[str, Any] | None:
        row = result_row(self.query, self.aggregates, window_id, key, [one.row for one in members])
        if row is None:
            return None
        if self.query.is_corrected:
            row |= {"revision": self.revisions[repr(key), window_id]}
            self.revisions[repr(key), window_id] += final
        return row | ({"final": final} if self.query.emit_every is not None else {})
