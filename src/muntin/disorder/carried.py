"""Punctuations carried in the stream: marker rows or a column, such as a router's end of a purge.

In: the highest marker of each sub-stream in a batch. Out: the promise that it is.
Convention: a marker of the sub-stream `()` is about the whole stream. A sub-stream that carried no marker yet is promised nothing.
Paper: window-id-2005, sections 2 and 7.1.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from muntin.disorder.observation import Key, Maker, Observation, Punctuations
from muntin.timeline import BEGINNING


@dataclass(frozen=True)
class Carried(Maker):
    state: ClassVar[tuple[str, ...]] = ("marker",)
    marker: Mapping[Key, int] = field(default_factory=dict)

    def observe(self, observation: Observation, now: int) -> Carried:
        heard = {key: max(seen.marker, self.marker.get(key, BEGINNING)) for key, seen in observation.seen.items()}
        return Carried({**self.marker, **heard})

    @property
    def promised(self) -> Punctuations:
        return Punctuations(self.marker.get((), BEGINNING), {key: marker for key, marker in self.marker.items() if key})
