"""What a batch shows of the stream, and what follows from it: observations in, punctuations out, and the makers between them.

In: counts and extremes per sub-stream. Out: `Punctuations`. Convention: a sub-stream is named by the values of the columns that divide
the stream (a source, a partition, a segment), each a string, a whole number, a boolean or NULL; the whole stream, where nothing
divides it, is `()`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Self

from muntin.timeline import BEGINNING, END

Key = tuple[Hashable, ...]


@dataclass(frozen=True)
class Seen:
    """One sub-stream in one batch: its rows, their least and greatest tick, the highest punctuation it carried."""

    rows: int = 0
    least: int = END
    greatest: int = BEGINNING
    marker: int = BEGINNING


@dataclass(frozen=True)
class Observation:
    """A batch, or a timer where nothing came. `clock` is the wall clock in microseconds."""

    clock: int
    seen: Mapping[Key, Seen] = field(default_factory=dict)

    @property
    def rows(self) -> int:
        return sum(one.rows for one in self.seen.values())

    @property
    def greatest(self) -> int:
        return max((one.greatest for one in self.seen.values()), default=BEGINNING)


@dataclass(frozen=True)
class Punctuations:
    """No more rows below `overall`; none of a sub-stream below what `of` says of it."""

    overall: int = BEGINNING
    of: Mapping[Key, int] = field(default_factory=dict)

    def at(self, key: Key) -> int:
        """The punctuation in force for a sub-stream."""
        return max(self.overall, self.of.get(key, BEGINNING))

    def strongest(self, other: Punctuations) -> Punctuations:
        """Both promises hold, so the higher one of each does."""
        of = {key: max(self.of.get(key, BEGINNING), other.of.get(key, BEGINNING)) for key in [*self.of, *other.of]}
        return Punctuations(max(self.overall, other.overall), of)


class Maker(ABC):
    """A way to know that rows are complete. It is told every observation, and what time it is believed to be."""

    #: The fields that change with observations: what a checkpoint keeps of it.
    state: ClassVar[tuple[str, ...]]
    #: Whether ticks of different sub-streams lie on one axis. Row numbers counted per partition do not.
    one_axis: ClassVar[bool] = True

    @abstractmethod
    def observe(self, observation: Observation, now: int) -> Self:
        """The maker after an observation."""

    @property
    @abstractmethod
    def promised(self) -> Punctuations:
        """What follows from all it was told. A sub-stream that it heard of and knows nothing about is promised `BEGINNING`."""
