"""What Spark returns of a pass, as partials.

In: an Arrow table with the columns that a `Pass` names. Out: `Partials` per grouping, and what the rows say of the batch. Convention: no
Columns here: it goes to the executors as it is.
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from muntin.columnar import Array, integers
from muntin.expression.tree import Expression
from muntin.plan.shared import Grouping
from muntin.timeline import BEGINNING
from muntin.windows.shards import Partials

SET, CELL, AT, BUCKET = "_muntin_set", "_muntin_cell", "_muntin_at", "_muntin_bucket"
ROWS, LAST = "_muntin_rows", "_muntin_last"
#: The instant of rows that find no match in a table; dead letters have none.
UNMATCHED = -(2**63)


@dataclass(frozen=True)
class BatchFacts:
    """Rows read, the greatest time among the good ones, and how many were dead letters."""

    rows: int
    last: int
    dead: int

    def __add__(self, other: BatchFacts) -> BatchFacts:
        return BatchFacts(self.rows + other.rows, max(self.last, other.last), self.dead + other.dead)


NO_FACTS = BatchFacts(rows=0, last=BEGINNING, dead=0)


@dataclass(frozen=True)
class Decoding:
    """The groupings of a pass, and the group columns that some of them have."""

    groupings: tuple[Grouping, ...]
    expressions: tuple[Expression, ...]

    def key_names(self, grouping: Grouping) -> list[str]:
        return [key_name(self.expressions.index(key)) for key in grouping.keys]

    def sets(self, table: pa.Table) -> list[pa.Table]:
        """The rows of each grouping."""
        return [table] if len(self.groupings) == 1 else split(table, integers(table[SET], null=0), len(self.groupings))

    @staticmethod
    def facts(table: pa.Table) -> BatchFacts:
        """What the rows of the first grouping say: each row of the batch is in one of them."""
        counts = integers(table[ROWS], null=0)
        dead = int(counts[table[AT].is_null().to_numpy()].sum())
        return BatchFacts(int(counts.sum()), int(integers(table[LAST], null=BEGINNING).max(initial=BEGINNING)), dead)

    def partials(self, table: pa.Table, number: int) -> Partials:
        """The partials of a grouping, without the rows that have no slice."""
        grouping = self.groupings[number]
        used = integers(table[AT], null=UNMATCHED) != UNMATCHED
        table = table if used.all() else table.filter(pa.array(used))
        states = tuple(
            column.partial.decode(*(table[name] for name in table.column_names if name.startswith(lane_prefix(place))))
            for place, column in enumerate(grouping.columns)
        )
        names = [*(CELL,) * grouping.by_cell, *self.key_names(grouping), *(BUCKET,) * grouping.family.spread]
        return Partials(integers(table[AT], null=0), tuple(table[name].combine_chunks() for name in names), states)


def key_name(number: int) -> str:
    """A group column."""
    return f"_muntin_k{number}"


def lane_prefix(column: int) -> str:
    """How the names of a partial column's Spark columns begin."""
    return f"_muntin_p{column}_"


def split(table: pa.Table, numbers: Array, count: int) -> list[pa.Table]:
    return [table.filter(pa.array(numbers == one)) for one in range(count)]
