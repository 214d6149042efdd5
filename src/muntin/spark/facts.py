"""What a batch says about itself, and its form in the slice log.

In: counted by the passes over a batch. Out: `BatchFacts`, as JSON and back.
Convention: attributes go by their names. A row that has no place on an attribute, since its value there is NULL or cannot be measured, is
`missing` there; one without a usable time is `dead` for all.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import astuple, dataclass, field
from typing import Any

from muntin.disorder import Key, Seen
from muntin.timeline import BEGINNING, END


@dataclass(frozen=True)
class BatchFacts:
    """Rows read; dead letters and markers among them; per attribute what was seen, how many rows lack it, how many came late."""

    rows: int
    dead: int = 0
    markers: int = 0
    seen: Mapping[str, Mapping[Key, Seen]] = field(default_factory=dict)
    missing: Mapping[str, int] = field(default_factory=dict)
    late: Mapping[str, int] = field(default_factory=dict)

    @property
    def tuples(self) -> int:
        return self.rows - self.dead - self.markers

    def least(self, attribute: str) -> int:
        return min((one.least for one in self.seen.get(attribute, {}).values()), default=END)

    def last(self, attribute: str) -> int:
        return max((one.greatest for one in self.seen.get(attribute, {}).values()), default=BEGINNING)


NO_ROWS = BatchFacts(rows=0)


def facts_record(facts: BatchFacts) -> dict[str, Any]:
    seen = {name: [[list(key), *astuple(one)] for key, one in of.items()] for name, of in facts.seen.items()}
    counts = {"rows": facts.rows, "dead": facts.dead, "markers": facts.markers}
    return {**counts, "seen": seen, "missing": dict(facts.missing), "late": dict(facts.late)}


def facts_from(recorded: Mapping[str, Any]) -> BatchFacts:
    seen = {name: {tuple(key): Seen(*numbers) for key, *numbers in of} for name, of in recorded["seen"].items()}
    return BatchFacts(**{**recorded, "seen": seen})
