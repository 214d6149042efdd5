"""Turns: what an instance of a spread assembly is told of an entry, and what it tells of it.

In: an assembly with some of the groups, its part of an entry's partials. Out: results, and a `Report`. Convention: the same turns in the
same order give the same state, whichever process takes them; how many rows, windows and results there were is reported turn by turn and
added up by whoever asked. A query that goes wrong in one instance ends in all of them, with the same window: that needs a second telling,
of the entry with its `stops`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass, field, fields, replace

from muntin.plan.shared import SharedPlan
from muntin.windows.assembly import Assembly
from muntin.windows.life import QueryLife, Stop
from muntin.windows.lowering import ResultChunk
from muntin.windows.shards import Partials
from muntin.windows.substreams import NO_SUBSTREAMS, Substreams


@dataclass(frozen=True)
class Turn:
    """All that an entry does to an instance besides its partials. `plan` has the queries that are spread, under all groupings.

    `latest` is the greatest time so far; `substreams` says which groups are further than all; `early` are the EMIT EVERY, in
    microseconds, of queries that give early results.
    """

    plan: SharedPlan
    punctuation: int
    latest: int
    substreams: Substreams = NO_SUBSTREAMS
    stops: Mapping[str, Stop] = field(default_factory=dict)
    early: frozenset[int] = frozenset()


@dataclass(frozen=True)
class Count:
    """What a query went through in one turn."""

    windows: int = 0
    results: int = 0
    early: int = 0
    corrected: int = 0
    late: int = 0
    dropped: int = 0

    @classmethod
    def of(cls, life: QueryLife) -> Count:
        return cls(*(getattr(life, one.name) for one in fields(cls)))

    def since(self, was: Count) -> Count:
        return Count(*(now - before for now, before in zip(astuple(self), astuple(was), strict=True)))

    def beside(self, other: Count) -> Count:
        """Of two instances. They have windows in common, not groups: the one that closed more of them counts."""
        added = Count(*(one + another for one, another in zip(astuple(self), astuple(other), strict=True)))
        return replace(added, windows=max(self.windows, other.windows))

    def count(self, life: QueryLife) -> None:
        """Into what the query went through."""
        for one in fields(self):
            setattr(life, one.name, getattr(life, one.name) + getattr(self, one.name))


@dataclass(frozen=True)
class Report:
    """What came of a turn: counts per query, queries that went wrong, combines, and what is held now: slices, and groups per query."""

    counts: Mapping[str, Count]
    stops: Mapping[str, Stop]
    final: int
    slices: int
    groups: int
    groups_of: Mapping[str, int]


class Taking:
    """A turn being taken: exhaust the results, then ask for the report."""

    def __init__(self, assembly: Assembly, turn: Turn, partials: Sequence[Partials]) -> None:
        self.assembly, self.turn, self.partials = assembly, turn, partials
        if turn.plan is not assembly.plan:
            assembly.use(turn.plan)
        self._before = {name: Count.of(life) for name, life in assembly.lives.items()}
        self._combined = assembly.aggregations.final

    def results(self) -> Iterator[ResultChunk]:
        turn = self.turn
        yield from self.assembly.step(self.partials, turn.punctuation, turn.latest, turn.substreams, turn.stops, turn.early)

    def report(self) -> Report:
        assembly = self.assembly
        nothing = Count()
        changes = {name: Count.of(life).since(self._before.get(name, nothing)) for name, life in assembly.lives.items()}
        return Report(
            {name: count for name, count in changes.items() if count != nothing},
            dict(assembly.stops),
            assembly.aggregations.final - self._combined,
            assembly.slices,
            assembly.groups,
            assembly.groups_of(),
        )


def together(reports: Sequence[Report]) -> Report:
    """Of all instances."""
    counts: dict[str, Count] = {}
    stops: dict[str, Stop] = {}
    for report in reports:
        for name, one in report.counts.items():
            counts[name] = counts.get(name, Count()).beside(one)
        for name, stop in report.stops.items():
            stops[name] = min(stops.get(name, stop), stop)
    groups_of = {name: sum(report.groups_of.get(name, 0) for report in reports) for report in reports for name in report.groups_of}
    final, slices, groups = (sum(getattr(report, name) for report in reports) for name in ("final", "slices", "groups"))
    return Report(counts, stops, final, slices, groups, groups_of)
