"""What is known of the load: rows, slices, groups and cells of the latest batches, and what they let one expect.

In: counts observed in a batch. Out: shards to expect of a grouping. Convention: what was never observed is guessed, as if rows fell
into cells and groups at random; what was observed is corrected by how far the guess was off, since values are not spread evenly.
Paper: on-the-fly-sharing-2006, section 4.3.3.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from muntin.expression.tree import Expression
from muntin.plan.family import Family
from muntin.schema import BOOLEAN

#: Groups of a GROUP BY before any were counted.
UNKNOWN_GROUPS = 1_000
#: Cells are counted up to here: beyond it, every row is a shard anyway.
MOST_COUNTED = 10**9

Axes = frozenset[Expression]


@dataclass(frozen=True)
class Load:
    """A batch. `cells` are those that occurred per set of axes, `observed` the shards per family and set of axes.

    `changes` is how much of the latest batches came with other queries than the one before.
    """

    rows: int = 200_000
    slices: int = 60
    groups: Mapping[Family, int] = field(default_factory=dict)
    cells: Mapping[Axes, int] = field(default_factory=dict)
    observed: Mapping[tuple[Family, Axes], int] = field(default_factory=dict)
    changes: float = 0.0

    @cached_property
    def seen(self) -> int:
        """Shards of a batch, as observed."""
        return sum(self.observed.values())

    def shards(self, family: Family, sizes: Mapping[Expression, int]) -> float:
        """Slices × groups × the cells that occur in one."""
        axes = frozenset(sizes)
        seen = self.observed.get((family.in_one, axes))
        return float(seen) if seen is not None else min(self.rows, self._guess(family, sizes) * self._evenness)

    def _guess(self, family: Family, sizes: Mapping[Expression, int]) -> float:
        places = max(1, self.slices * self.groups.get(family.in_one, UNKNOWN_GROUPS if family.keys else 1))
        cells = min(self._cells(sizes), MOST_COUNTED)
        per_place = self.rows / places
        filled = places * -math.expm1(-per_place)
        return min(self.rows, filled * max(1.0, cells * -math.expm1(-per_place / cells)))

    def _cells(self, sizes: Mapping[Expression, int]) -> float:
        """Cells on these axes: as counted, or at the most, from what was counted on some of them."""
        axes = frozenset(sizes)
        if axes in self.cells:
            return float(self.cells[axes])
        singly = {axis: float(self.cells.get(frozenset({axis}), filled_positions(axis, size))) for axis, size in sizes.items()}
        known = [counted * math.prod(singly[axis] for axis in axes - some) for some, counted in self.cells.items() if some < axes]
        return min([math.prod(singly.values()), *known])

    @cached_property
    def _evenness(self) -> float:
        """How many shards there were for each one guessed, over what was observed."""
        known = [(shards, self._guess(family, dict.fromkeys(axes, 1))) for (family, axes), shards in self.observed.items() if axes]
        return sum(shards for shards, _ in known) / max(1.0, sum(guess for _, guess in known)) if known else 1.0


def filled_positions(axis: Expression, size: int) -> float:
    """Positions of an axis that values are likely to be in, before any were seen: few values are common, most are rare."""
    return 2.0 if axis.type == BOOLEAN else min(float(size), 3.0 * math.sqrt(size))


FIRST_LOAD = Load()
