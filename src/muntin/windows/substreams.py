"""Punctuations of sub-streams: which groups are complete before the others.

In: the columns that divide a stream, a punctuation for each combination of their values, and the groups of a family. Out: a punctuation per
group. Convention: a promise about a sub-stream closes a group's windows by themselves if the dividing columns are among the group columns;
for others it counts through the punctuation of the whole stream. Paper: window-id-2005, sections 2 and 5.1 (p1 closes windows of s6).
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from muntin.aggregates.base import Array
from muntin.expression.tree import Column, Expression
from muntin.timeline import BEGINNING
from muntin.windows.groups import GroupIndex


@dataclass(frozen=True)
class Substreams:
    """No more rows below `of[values]` of the sub-stream whose `columns` have these values."""

    columns: tuple[str, ...] = ()
    of: Mapping[tuple[Hashable, ...], int] = field(default_factory=dict)

    def divide(self, keys: Sequence[Expression]) -> bool:
        """Whether groups by these keys are parts of sub-streams."""
        return bool(self.columns) and set(self.columns) <= {key.name for key in keys if isinstance(key, Column)}

    def by_group(self, keys: Sequence[Expression], groups: GroupIndex, overall: int) -> Array:
        """The punctuation in force for each group."""
        names = [key.name if isinstance(key, Column) else "" for key in keys]
        values = [groups.columns()[names.index(name)].to_pylist() for name in self.columns]
        own = [self.of.get(one, BEGINNING) for one in zip(*values, strict=True)]
        return np.maximum(np.array(own, dtype=np.int64), overall)


NO_SUBSTREAMS = Substreams()


@dataclass(frozen=True)
class Reach:
    """The punctuation of all groups, or where they have their own, of each."""

    overall: int
    by_group: Array | None = None

    def of(self, group: Array) -> Array | int:
        return self.overall if self.by_group is None else self.by_group[group]

    @property
    def lowest(self) -> int:
        return self.overall

    @property
    def highest(self) -> int:
        return self.overall if self.by_group is None else int(self.by_group.max(initial=self.overall))


@dataclass(frozen=True)
class Closed:
    """Per group: windows that end at or below `before` were closed already, those up to `now` close."""

    before: Array
    now: Array

    def closes(self, group: Array, end: Array) -> Array:
        closing: Array = (end > self.before[group]) & (end <= self.now[group])
        return closing

    @property
    def upto(self) -> int:
        return int(self.now.max(initial=BEGINNING))

    @property
    def moved(self) -> bool:
        return bool((self.now > self.before).any())
