"""The load of a stream: what the planner goes by, looked at again where batches change.

In: what was collected of each batch. Out: the `Load` of the latest one that was looked at. Convention: looking costs a pass over the
partials, so it is done where the groupings are new, or where a row makes half or twice as many shards as it did. A run goes on with
what the one before it saw.
"""

from __future__ import annotations

from muntin.plan.load import FIRST_LOAD, Load
from muntin.plan.shared import SharedPlan
from muntin.spark.collecting import Collected
from muntin.windows.observing import observed


class LoadWatch:
    def __init__(self) -> None:
        self.load: Load = FIRST_LOAD
        self._shape: object = None
        self._shards = 0.0

    def see(self, plan: SharedPlan, found: Collected) -> None:
        """Look at a batch, unless it is nothing new. One that is too small to learn from changes nothing."""
        shards = (sum(map(len, found.partials)) + sum(one.shards for one in found.tallies.values())) / max(1, found.facts.rows)
        if plan.shape == self._shape and 0.5 <= shards / max(self._shards, 1e-9) <= 2:
            return
        counts = {position: (tally.shards, tally.groups) for position, tally in found.tallies.items()}
        load = observed(plan, found.partials, found.facts.rows, counts)
        if load:
            self.load, self._shape, self._shards = load, plan.shape, shards
