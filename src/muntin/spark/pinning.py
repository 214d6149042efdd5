"""Pins: what the next entry's result will depend on besides its rows, decided once.

In: the registry's version, how far attributes have come, the clock. Out: a `Pin`, with the plan that is the best for the load.
Convention: what a pin says is used by every replay of its entry; nothing else of the day is.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

from muntin.disorder import Attributes
from muntin.plan.load import Load
from muntin.plan.planner import Planner, division_names
from muntin.plan.shared import SharedPlan
from muntin.spark.checkpoint import Checkpoint
from muntin.spark.entries import Pin
from muntin.spark.joining import Joiner
from muntin.timeline import BEGINNING


def wall_clock() -> int:
    return time.time_ns() // 1000


@dataclass(frozen=True)
class Pinning:
    planner: Planner
    joiner: Joiner
    checkpoint: Checkpoint | None

    def __call__(self, version: int, attributes: Attributes, load: Load, present: SharedPlan | None, *, clock: int) -> Pin:
        """A new pin. `present` is the plan in use, if it is one for this version; `clock` says what time it is."""
        query = (self.checkpoint.spark_query() if self.checkpoint else None) or ""
        plan = self.planner.choose(version, load, present)
        tables = self.joiner.tables.versions(sorted({join.table for part in plan.division for join in part.family.joins}))
        reached = {str(one): found for one in attributes.punctuators if (found := attributes.reached(one).punctuation) > BEGINNING}
        # The latest time that is not too far ahead: `max_ahead` beyond both the highest punctuation and the clock.
        limit = max(attributes.time.punctuation, clock) + attributes.stream.max_ahead.micros
        return Pin(version, reached, limit, clock, query, division_names(plan), tables)
