"""Placing: which families are assembled in the driver, and which on the executors.

In: what the user asked for, and how many groups a family is known to have. Out: for each family, whether it is spread over instances, and
why. Convention: a decision stands as long as the job runs; the next start decides again, and what is held moves. Only windows made of
slices of the stream's own time are spread: instances are told one punctuation, and hold no rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum

from muntin.choice import named
from muntin.plan.family import Family, family_of
from muntin.query.model import Query

#: From so many groups on, assembling side by side outweighs a second Spark job and Python tasks in every batch: where the cost model of
#: docs/scaling.md breaks even for four queries on 4 to 16 cores. With one query it is four times as many, with ten half.
MANY_GROUPS = 200_000


class Placement(Enum):
    """Where windows are assembled."""

    DRIVER = "driver"
    EXECUTORS = "executors"
    AUTOMATIC = "automatic"

    @classmethod
    def named(cls, name: str | Placement) -> Placement:
        return named(cls, name, "windows are assembled in the driver or on the executors", found=f"assembly = {name!r}")


@dataclass
class Placing:
    """The decisions of one job. `time` is the stream's; `hindrance` says why executors cannot assemble, if they cannot."""

    time: str
    placement: Placement = Placement.DRIVER
    instances: int = 1
    hindrance: str = ""
    groups: dict[Family, int] = field(default_factory=dict)
    _decided: dict[Family, bool] = field(default_factory=dict)

    def learn(self, groups: Mapping[Family, int]) -> None:
        """How many groups families had in an earlier run, or in its latest batch."""
        for family, count in groups.items():
            if count:
                self.groups[family] = max(count, self.groups.get(family, 0))

    def learn_of(self, queries: Iterable[Query], groups: Mapping[str, int]) -> None:
        """The same, by the names of queries."""
        for query in queries:
            self.learn({family_of(query): groups.get(query.name, 0)})

    def agrees(self, other: Placing) -> bool:
        """Whether the other one would have decided the same so far."""
        same = all(getattr(self, name) == getattr(other, name) for name in ("time", "placement", "instances", "hindrance"))
        return same and all(other(family) == decision for family, decision in self._decided.items())

    def __call__(self, family: Family) -> bool:
        return self._decided.setdefault(family.in_one, self._decide(family.in_one))

    def _decide(self, family: Family) -> bool:
        if self._kept_in_one(family) or self.hindrance or self.placement is Placement.DRIVER:
            return False
        return self.placement is Placement.EXECUTORS or self.groups.get(family, 0) >= MANY_GROUPS

    def _kept_in_one(self, family: Family) -> str:
        """Why a family cannot be spread, whatever is asked for; nothing if it can."""
        if not family.keys:
            return "one group"
        if family.by_tuple:
            return "executors take no slide-by-tuple windows"
        return "" if family.over.name == self.time else f"executors take windows over {self.time}, these are over {family.over}"

    def reason(self, family: Family) -> str:
        """Where a family is assembled, and why, for people."""
        family, asked = family.in_one, self.placement is not Placement.AUTOMATIC
        known = f"{self.groups[family]:,} groups" if family in self.groups else "groups not counted yet"
        if self(family):
            why = "asked for" if asked else f"{known}, from {MANY_GROUPS:,} on it pays"
            return f"assembled on the executors, by {self.instances} instance{'s' * (self.instances != 1)}: {why}"
        if kept := self._kept_in_one(family) or self.hindrance or ("asked for" if asked else ""):
            return f"assembled in the driver: {kept}"
        return f"assembled in the driver: {known}, executors from {MANY_GROUPS:,} on"
