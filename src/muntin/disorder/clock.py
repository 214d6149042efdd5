"""A wall clock, believed one step at a time: what heartbeats and idle times go by.

In: readings of the wall clock. Out: the time it is believed to be, and how often the clock jumped.
Convention: a clock that goes back stands still until it is caught up. One that leaps ahead by more than `step` is followed by one
`step` per reading: after a wrong setting that is put right, little harm was done; after a pause of the job it catches up in a while.
"""

from __future__ import annotations

from dataclasses import dataclass

from muntin.timeline import BEGINNING, MINUTE


@dataclass(frozen=True)
class BelievedClock:
    step: int = 5 * MINUTE
    now: int = BEGINNING
    read: int = BEGINNING
    jumps: int = 0

    def observe(self, reading: int) -> BelievedClock:
        if self.now == BEGINNING:
            return BelievedClock(self.step, reading, reading)
        jumped = not 0 <= reading - self.read <= self.step
        now = max(self.now, min(reading, self.now + self.step))
        return BelievedClock(self.step, now, reading, self.jumps + jumped)
