"""Slack: a bound on disorder, by time or by number of tuples, for the stream or for each sub-stream.

In: observations. Out: what the bound promises. Paper: window-id-2005, sections 5.1 and 7.2.
Convention: the greatest tick less the slack. A sub-stream that is sorted has a slack of zero: each row is a promise.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import ClassVar

from muntin.disorder.observation import Key, Maker, Observation, Punctuations
from muntin.timeline import BEGINNING


@dataclass(frozen=True)
class Slack(Maker):
    """A row comes at most `slack` ticks after a row with a greater one."""

    state: ClassVar[tuple[str, ...]] = ("greatest",)
    slack: int
    greatest: int = BEGINNING

    def punctuation(self, greatest: int) -> int:
        return max(BEGINNING, greatest - self.slack)

    def observe(self, observation: Observation, now: int) -> Slack:
        return replace(self, greatest=max(self.greatest, observation.greatest))

    @property
    def promised(self) -> Punctuations:
        return Punctuations(self.punctuation(self.greatest))


@dataclass(frozen=True)
class Ordered(Maker):
    """Each sub-stream is sorted, or out of order by at most `slack` ticks; nothing is known between them.

    What is promised for all is for the `Punctuator` to say, which knows the sub-streams that wait.
    """

    state: ClassVar[tuple[str, ...]] = ("greatest",)
    slack: int = 0
    greatest: Mapping[Key, int] = field(default_factory=dict)

    def observe(self, observation: Observation, now: int) -> Ordered:
        heard = {key: max(seen.greatest, self.greatest.get(key, BEGINNING)) for key, seen in observation.seen.items()}
        return replace(self, greatest={**self.greatest, **heard})

    @property
    def promised(self) -> Punctuations:
        return Punctuations(of={key: max(BEGINNING, greatest - self.slack) for key, greatest in self.greatest.items()})


@dataclass(frozen=True)
class TupleSlack(Maker):
    """A row comes at most `tuples` positions after a row with a greater tick, as Aurora's BSort assumes.

    So the next row is not below any row that has `tuples` rows after it. Only the greatest of a batch is known, and it may have been
    the batch's last row: a batch promises its greatest once `tuples` rows came after the whole of it.
    """

    state: ClassVar[tuple[str, ...]] = ("rows", "waiting", "reached")
    tuples: int
    rows: int = 0
    waiting: tuple[tuple[int, int], ...] = ()  #: rows up to the end of a batch, and the greatest tick up to there; ascending in both
    reached: int = BEGINNING

    def observe(self, observation: Observation, now: int) -> TupleSlack:
        if not observation.rows:
            return self
        rows = self.rows + observation.rows
        waiting = [*self.waiting]
        if observation.greatest > max((greatest for _, greatest in waiting), default=self.reached):
            waiting.append((rows, observation.greatest))
        done = [greatest for end, greatest in waiting if end <= rows - self.tuples]
        return replace(self, rows=rows, waiting=tuple(waiting[len(done) :]), reached=max([self.reached, *done]))

    @property
    def promised(self) -> Punctuations:
        return Punctuations(self.reached)
