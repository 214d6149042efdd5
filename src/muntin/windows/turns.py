"""Turns: what an instance of a spread assembly is told of an entry, and what it tells of it.

In: an assembly with some of the groups, its part of an entry's partials. Out: results, and a `Report`. Convention: the same turns in the
same order give the same state, whichever process takes them; how many rows, windows and results there were is reported turn by turn and
added up by whoever asked. A query that goes wrong in one instance ends in all of them, with the same window: that needs a second telling,
of the entry with its `stops`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from muntin.plan.shared import SharedPlan
from muntin.windows.assembly import Assembly, Stop
from muntin.windows.closing import ResultChunk
from muntin.windows.shards import Partials


@dataclass(frozen=True)
class Turn:
    """All that an entry does to an instance besides its partials. `plan` has the queries that are spread, under all groupings."""

    plan: SharedPlan
    punctuation: int
    latest: int
    stops: Mapping[str, Stop] = field(default_factory=dict)


@dataclass(frozen=True)
class Count:
    """What a query went through in one turn."""

    windows: int = 0
    results: int = 0
    late: int = 0

    def __add__(self, other: Count) -> Count:
        return Count(self.windows + other.windows, self.results + other.results, self.late + other.late)


@dataclass(frozen=True)
class Report:
    """What came of a turn: counts per query, queries that went wrong, combines, and what is held now."""

    counts: Mapping[str, Count]
    stops: Mapping[str, Stop]
    final: int
    slices: int
    groups: int


class Taking:
    """A turn being taken: exhaust the results, then ask for the report."""

    def __init__(self, assembly: Assembly, turn: Turn, partials: Sequence[Partials]) -> None:
        self.assembly, self.turn, self.partials = assembly, turn, partials
        if turn.plan is not assembly.plan:
            assembly.use(turn.plan)
        self._before = {name: Count(life.windows, life.results, life.late) for name, life in assembly.lives.items()}
        self._combined = assembly.aggregations.final

    def results(self) -> Iterator[ResultChunk]:
        turn = self.turn
        yield from self.assembly.step(self.partials, turn.punctuation, turn.latest, turn.stops)

    def report(self) -> Report:
        assembly = self.assembly
        counts = {}
        for name, life in assembly.lives.items():
            was = self._before.get(name, Count())
            now = Count(life.windows - was.windows, life.results - was.results, life.late - was.late)
            if now != Count():
                counts[name] = now
        return Report(counts, dict(assembly.stops), assembly.aggregations.final - self._combined, assembly.slices, assembly.groups)


def together(reports: Sequence[Report]) -> Report:
    """Of all instances. A query's windows are counted once: every instance closes the same ones, as far as it has groups in them."""
    counts: dict[str, Count] = {}
    stops: dict[str, Stop] = {}
    for report in reports:
        for name, one in report.counts.items():
            known = counts.get(name, Count())
            counts[name] = Count(max(known.windows, one.windows), known.results + one.results, known.late + one.late)
        for name, stop in report.stops.items():
            stops[name] = min(stops.get(name, stop), stop)
    held = [sum(getattr(report, name) for report in reports) for name in ("final", "slices", "groups")]
    return Report(counts, stops, *held)
