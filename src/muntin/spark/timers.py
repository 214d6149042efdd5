"""When time alone makes an entry.

In: how long no entry was made, and what the clock can move. Out: whether one is due. Convention: a heartbeat, an idle sub-stream or the
time of arrival goes on while no rows come, and `foreachBatch` is not called then. Nor is it for early results of rows that came last:
their time comes once, so an idle stream makes no more than one entry for each EMIT EVERY.
"""

from __future__ import annotations

import time

from muntin.disorder import Attributes
from muntin.spark.advance import periods
from muntin.spark.assembling import Assembling, Step

#: How long no entry was made before a timer makes one.
TIMER_SECONDS = 1.0


class Timer:
    def __init__(self) -> None:
        self._wound = time.monotonic()
        self._told: set[int] = set()  #: the EMIT EVERY whose early results tell of all rows so far

    def wind(self, step: Step) -> None:
        """An entry was made."""
        self._wound = time.monotonic()
        self._told = (set() if step.entry.facts.rows else self._told) | step.early

    def is_due(self, attributes: Attributes, assembly: Assembling, clock: int) -> bool:
        """Whether the clock can close anything, or has come to the time of early results; and was given the time to."""
        if time.monotonic() - self._wound < TIMER_SECONDS or not assembly.holds:
            return False
        waiting = periods(assembly.plan) - self._told
        return attributes.moved_by_the_clock(assembly.plan.attributes) or any(attributes.begins_period(one, clock) for one in waiting)
