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


def together(one: Seen, other: Seen) -> Seen:
    """What was seen of a sub-stream in two parts of a batch."""
    least, greatest = min(one.least, other.least), max(one.greatest, other.greatest)
    return Seen(one.rows + other.rows, least, greatest, max(one.marker, other.marker))


def added(some: Mapping[str, int], others: Mapping[str, int]) -> dict[str, int]:
    return {name: some.get(name, 0) + others.get(name, 0) for name in {**some, **others}}


@dataclass(frozen=True)
class BatchFacts:
    """Rows read; dead letters and markers among them; per attribute what was seen, how many rows lack it, how many came late."""

    rows: int
    dead: int = 0
    markers: int = 0
    seen: Mapping[str, Mapping[Key, Seen]] = field(default_factory=dict)
    missing: Mapping[str, int] = field(default_factory=dict)
    late: Mapping[str, int] = field(default_factory=dict)

    def __add__(self, other: BatchFacts) -> BatchFacts:
        """Of two parts of a batch."""
        seen = {name: dict(of) for name, of in self.seen.items()}
        for name, of in other.seen.items():
            known = seen.setdefault(name, {})
            known.update({key: together(known.get(key, Seen()), one) for key, one in of.items()})
        rows, dead, markers = self.rows + other.rows, self.dead + other.dead, self.markers + other.markers
        return BatchFacts(rows, dead, markers, seen, added(self.missing, other.missing), added(self.late, other.late))

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
