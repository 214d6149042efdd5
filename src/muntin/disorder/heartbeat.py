"""Heartbeats: the clock makes punctuations while a source says nothing.

In: the believed clock. Out: a promise for the whole stream. Paper: window-id-2005, section 7.2.
Convention: only for attributes that are times; `delay` is the longest that a row takes from its own time to its arrival.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from muntin.disorder.observation import Maker, Observation, Punctuations
from muntin.timeline import BEGINNING


@dataclass(frozen=True)
class Heartbeat(Maker):
    """A row arrives at most `delay` microseconds after its own time."""

    state: ClassVar[tuple[str, ...]] = ("now",)
    delay: int
    now: int = BEGINNING

    def observe(self, observation: Observation, now: int) -> Heartbeat:
        return replace(self, now=now)

    @property
    def promised(self) -> Punctuations:
        return Punctuations(max(BEGINNING, self.now - self.delay))
