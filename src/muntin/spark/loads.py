"""The load of a running job: what the planner goes by, looked at again where batches change.

In: what was collected of each batch. Out: a new `Load`, where there is one. Convention: looking costs a pass over the partials, so it is
done where the groupings are new, or where a row makes half or twice as many shards as it did.
"""

from __future__ import annotations

from muntin.plan.load import Load
from muntin.plan.shared import SharedPlan
from muntin.spark.collecting import Collected
from muntin.windows.observing import observed


class LoadWatch:
    def __init__(self) -> None:
        self._shape: object = None
        self._shards = 0.0

    def seen(self, plan: SharedPlan, found: Collected) -> Load | None:
        """The load that a batch shows; None if it is nothing new, or too small to learn from."""
        shards = (sum(map(len, found.partials)) + sum(one.shards for one in found.tallies.values())) / max(1, found.facts.rows)
        if plan.shape == self._shape and 0.5 <= shards / max(self._shards, 1e-9) <= 2:
            return None
        counts = {position: (tally.shards, tally.groups) for position, tally in found.tallies.items()}
        load = observed(plan, found.partials, found.facts.rows, counts)
        if load:
            self._shape, self._shards = plan.shape, shards
        return load
