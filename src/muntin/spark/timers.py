"""When time alone makes an entry.

In: how long no entry was made, and what the clock can move. Out: whether one is due. Convention: a heartbeat, an idle sub-stream or the
time of arrival goes on while no rows come, and `foreachBatch` is not called then.
"""

from __future__ import annotations

import time

from muntin.disorder import Attributes
from muntin.spark.assembling import Assembling

#: How long no entry was made before a timer makes one.
TIMER_SECONDS = 1.0


class Timer:
    def __init__(self) -> None:
        self._wound = time.monotonic()

    def wind(self) -> None:
        """An entry was made."""
        self._wound = time.monotonic()

    def is_due(self, attributes: Attributes, assembly: Assembling) -> bool:
        """Whether the clock can close anything, and was given the time to."""
        waited = time.monotonic() - self._wound >= TIMER_SECONDS
        return waited and attributes.moved_by_the_clock(assembly.plan.attributes) and assembly.holds
