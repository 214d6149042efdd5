"""Exact punctuations of the attributes that arrival itself defines: `row_num` and `arrival_ts`.

In: observations. Out: promises that cannot be broken. Convention: every row numbered below the count of rows has come, per partition
where PATTR counts by partitions; and no row arrives before now.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from muntin.disorder.observation import Key, Maker, Observation, Punctuations
from muntin.timeline import BEGINNING


@dataclass(frozen=True)
class RowCount(Maker):
    """For row numbers of the stream observe it as the one sub-stream `()`; for those of partitions, each of them."""

    state: ClassVar[tuple[str, ...]] = ("rows",)
    one_axis: ClassVar[bool] = False
    rows: Mapping[Key, int] = field(default_factory=dict)

    def observe(self, observation: Observation, now: int) -> RowCount:
        return RowCount({**self.rows, **{key: seen.rows + self.rows.get(key, 0) for key, seen in observation.seen.items()}})

    @property
    def promised(self) -> Punctuations:
        return Punctuations(self.rows.get((), BEGINNING), {key: rows for key, rows in self.rows.items() if key})


@dataclass(frozen=True)
class ArrivalClock(Maker):
    state: ClassVar[tuple[str, ...]] = ("now",)
    now: int = BEGINNING

    def observe(self, observation: Observation, now: int) -> ArrivalClock:
        return ArrivalClock(now)

    @property
    def promised(self) -> Punctuations:
        return Punctuations(self.now)
