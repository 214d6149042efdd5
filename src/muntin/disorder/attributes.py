"""The punctuations of all attributes that a stream's windows are over, step by step.

In: what each batch or timer showed of each attribute, and the clock. Out: per attribute the punctuation and the greatest tick so far.
Convention: frozen, like the punctuators in it. The stream's time, `row_num` and `arrival_ts` are followed from the beginning, since every
batch tells of them; another column from the first query over it on.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from muntin.disorder.declared import punctuator_of
from muntin.disorder.observation import Key, Observation, Seen
from muntin.disorder.punctuator import Counts, Punctuator
from muntin.disorder.record import record, restored
from muntin.query.model import StreamDefinition
from muntin.semantics import ARRIVAL, Attribute
from muntin.timeline import BEGINNING


@dataclass(frozen=True)
class Reached:
    """How far an attribute has come: no more rows below `punctuation`, none so far above `latest`."""

    punctuation: int = BEGINNING
    latest: int = BEGINNING


@dataclass(frozen=True)
class Attributes:
    """What was observed so far; `rows` came, so that is the number of the next one; `clock` is the latest reading of it."""

    stream: StreamDefinition
    punctuators: Mapping[Attribute, Punctuator] = field(default_factory=dict)
    latest: Mapping[Attribute, int] = field(default_factory=dict)
    rows: int = 0
    clock: int = BEGINNING

    @classmethod
    def begun(cls, stream: StreamDefinition) -> Attributes:
        return cls(stream).following(())

    def following(self, attributes: Iterable[Attribute]) -> Attributes:
        """The same for these attributes and those that are always followed; others are forgotten, since nobody looks at their rows."""
        wanted = dict.fromkeys([*self._always(), *attributes])
        if wanted.keys() == self.punctuators.keys():
            return self
        punctuators = {one: self.punctuators.get(one) or punctuator_of(self.stream, one) for one in wanted}
        return replace(self, punctuators=punctuators, latest={one: tick for one, tick in self.latest.items() if one in wanted})

    def _always(self) -> list[Attribute]:
        of_arrival = [Attribute(name, measure) for name, measure in ARRIVAL.items() if not self.stream.schema.field(name)]
        return [Attribute(self.stream.time), *of_arrival]

    def begun_at(self, latest: Mapping[Attribute, int]) -> Attributes:
        """The same, with the greatest tick of attributes whose earlier rows nobody looked at."""
        return replace(self, latest={**self.latest, **latest})

    def closed(self) -> Attributes:
        """The end of the input: everything is complete."""
        return replace(self, punctuators={one: punctuator.closed() for one, punctuator in self.punctuators.items()})

    @property
    def time(self) -> Reached:
        return self.reached(Attribute(self.stream.time))

    @property
    def counts(self) -> Counts:
        """What went wrong on the stream's time."""
        return self.punctuators[Attribute(self.stream.time)].counts

    def reached(self, attribute: Attribute) -> Reached:
        found = self.punctuators.get(attribute)
        return Reached(found.punctuations.overall, self.latest.get(attribute, BEGINNING)) if found else Reached()

    def counted(self, counter: Attribute) -> Mapping[Key, int]:
        """How many rows came, of the stream or of each partition: that is the number of the next one there."""
        if not counter.pattr:
            return {(): self.rows}
        found = self.punctuators.get(counter)
        return found.punctuations.of if found else {}

    def moved_by_the_clock(self, attributes: Iterable[Attribute]) -> bool:
        """Whether time alone can move the punctuation of one of these attributes."""
        declared = self.stream.disorder
        by_clock = declared.heartbeat is not None or declared.idle_after is not None
        return any(self._is_arrival(one) or (by_clock and one.name == self.stream.time) for one in attributes)

    def begins_period(self, every: int, clock: int) -> bool:
        """Whether the clock, once it reads this, has come into another period of so many microseconds."""
        return self.clock > BEGINNING and max(clock, self.clock) // every > self.clock // every

    def arrival(self, clock: int) -> int:
        """The time at which a batch arrives: a clock that goes back stands still."""
        return max([clock, *(latest for one, latest in self.latest.items() if self._is_arrival(one))])

    def observe(self, clock: int, seen: Mapping[str, Mapping[Key, Seen]], rows: int, late: Mapping[str, int]) -> Attributes:
        """After a batch of so many rows. `seen` and `late`, rows below the punctuation, go by names of attributes."""
        punctuators, latest = dict(self.punctuators), dict(self.latest)
        for one, punctuator in self.punctuators.items():
            observation = Observation(clock, self._seen(one, clock, seen, rows))
            punctuators[one] = punctuator.observe(observation, rows_late=late.get(str(one), 0))
            latest[one] = max(latest.get(one, BEGINNING), observation.greatest)
        return replace(self, punctuators=punctuators, latest=latest, rows=self.rows + rows, clock=max(clock, self.clock))

    def _seen(self, one: Attribute, clock: int, seen: Mapping[str, Mapping[Key, Seen]], rows: int) -> Mapping[Key, Seen]:
        if str(one) in seen or not rows:
            return seen.get(str(one), {})
        if one.counts_rows and not one.pattr:
            return {(): Seen(rows, self.rows, self.rows + rows - 1)}
        if self._is_arrival(one):
            return {(): Seen(rows, self.arrival(clock), self.arrival(clock))}
        return {}

    def _is_arrival(self, one: Attribute) -> bool:
        return not one.counts_rows and self.stream.schema.field(one.name) is None

    def record(self) -> dict[str, Any]:
        """As JSON, for checkpoints; what was declared is not in it."""
        kept = {str(one): {"latest": self.latest.get(one, BEGINNING), **record(held)} for one, held in self.punctuators.items()}
        return {"rows": self.rows, "clock": self.clock, "attributes": kept}

    def restored(self, recorded: Mapping[str, Any], attributes: Iterable[Attribute]) -> Attributes:
        """As it was recorded; `attributes` are those that queries are over."""
        followed, kept = self.following(attributes), recorded["attributes"]
        known = [one for one in followed.punctuators if str(one) in kept]
        punctuators = {one: restored(followed.punctuators[one], kept[str(one)]) for one in known}
        latest = {one: int(kept[str(one)]["latest"]) for one in known}
        punctuators, rows, clock = {**followed.punctuators, **punctuators}, int(recorded["rows"]), int(recorded["clock"])
        return replace(followed, punctuators=punctuators, latest=latest, rows=rows, clock=clock)
