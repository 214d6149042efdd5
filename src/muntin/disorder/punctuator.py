"""The punctuations of one windowing attribute: several makers combined, sub-streams that wait for each other, and what went wrong.

In: observations, in order. Out: `Punctuations` and `Counts`.
Convention: every maker's promise holds, so the strongest counts. The whole stream is complete below the least promise of the sub-streams
that are live, if any is known by its sub-streams. What happens when things go wrong, each counted:

- idle source, nothing comes at all: the punctuation stands still, unless a heartbeat moves it (`idle`);
- stalled sub-stream, others go on: after `idle_after` on the clock it holds the others back no longer, until it returns (`stalled`);
- broken promise, a row below the punctuation: the punctuation stays, the row is late, the query's policy decides (`broken`, `rows_late`);
- jumping clock: it is believed one step at a time, see `clock` (`clock_jumps`);
- a sub-stream not heard of before holds the others back from now on; its rows below the punctuation are late.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace

from muntin.disorder.clock import BelievedClock
from muntin.disorder.observation import Key, Maker, Observation, Punctuations
from muntin.errors import Refusal
from muntin.timeline import BEGINNING, END


@dataclass(frozen=True)
class Counts:
    """What went wrong since the beginning. `broken` counts sub-streams in batches, `rows_late` rows, where they are known."""

    idle: int = 0
    stalled: int = 0
    broken: int = 0
    rows_late: int = 0
    clock_jumps: int = 0


@dataclass(frozen=True)
class Punctuator:
    """`idle_after` in microseconds on the clock, for ever if it is None; `expected` sub-streams hold back before they are first heard."""

    makers: tuple[Maker, ...]
    idle_after: int | None = None
    expected: frozenset[Key] = frozenset()
    clock: BelievedClock = BelievedClock()
    heard: Mapping[Key, int] = field(default_factory=dict)  #: when a sub-stream last had rows or a marker
    punctuations: Punctuations = Punctuations()
    counts: Counts = Counts()

    def __post_init__(self) -> None:
        if not self.makers:
            law, way_out = "punctuations are made by something", "give a slack, an order, a heartbeat or markers"
            raise Refusal(law, values="no maker", way_out=way_out)

    def observe(self, observation: Observation, *, rows_late: int = 0) -> Punctuator:
        """The punctuator after a batch or timer. `rows_late` is how many of its rows lay below the punctuation they came under."""
        clock = self.clock.observe(observation.clock)
        heard = dict.fromkeys(self.expected, clock.now) | dict(self.heard)
        heard |= {key: clock.now for key, seen in observation.seen.items() if seen.rows or seen.marker > BEGINNING}
        makers = tuple(maker.observe(observation, clock.now) for maker in self.makers)
        stalled = self._stalled(heard, clock.now)
        counts = Counts(
            idle=self.counts.idle + (not observation.rows),
            stalled=self.counts.stalled + len(stalled - self._stalled(self.heard, self.clock.now)),
            broken=self.counts.broken + sum(seen.least < self.punctuations.at(key) for key, seen in observation.seen.items()),
            rows_late=self.counts.rows_late + rows_late,
            clock_jumps=clock.jumps,
        )
        made = self._made(makers, heard.keys() - stalled)
        return replace(self, makers=makers, clock=clock, heard=heard, punctuations=made, counts=counts)

    def _stalled(self, heard: Mapping[Key, int], now: int) -> set[Key]:
        """Sub-streams that were silent for too long."""
        return set() if self.idle_after is None else {key for key, last in heard.items() if now - last > self.idle_after}

    def _made(self, makers: Collection[Maker], live: Collection[Key]) -> Punctuations:
        promised = self.punctuations
        for maker in makers:
            promised = promised.strongest(maker.promised)
        if not promised.of or not all(maker.one_axis for maker in makers):
            return promised
        least = min((promised.of.get(key, BEGINNING) for key in live if key), default=BEGINNING)
        return promised.strongest(Punctuations(least))

    def closed(self) -> Punctuator:
        """The end of the input: everything is complete."""
        return replace(self, punctuations=Punctuations(END, self.punctuations.of))
