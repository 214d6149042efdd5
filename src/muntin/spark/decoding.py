"""What Spark returns of a pass, as partials.

In: an Arrow table with the columns that a `Pass` names. Out: `Partials` per grouping, and what the rows say of the batch. Convention: no
Columns here: it goes to the executors as it is.
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from muntin.columnar import Array, integers
from muntin.disorder import Key, Seen
from muntin.expression.tree import Expression
from muntin.plan.shared import Grouping
from muntin.spark.facts import BatchFacts
from muntin.timeline import BEGINNING, END
from muntin.windows.shards import Partials

SET, CELL, AT, BUCKET = "_muntin_set", "_muntin_cell", "_muntin_at", "_muntin_bucket"
ROWS, LEAST, LAST = "_muntin_rows", "_muntin_least", "_muntin_last"
LEAST_TIME, LAST_TIME = "_muntin_least_time", "_muntin_last_time"
#: The instants of good rows that have no slice: no match in a table, no value on the attribute, no tuple. Dead letters have none.
UNMATCHED, MISSING, MARKER = -(2**63), -(2**63) + 1, -(2**63) + 2


@dataclass(frozen=True)
class Decoding:
    """The groupings of a pass, the group columns that some of them have, and the stream's time."""

    groupings: tuple[Grouping, ...]
    expressions: tuple[Expression, ...]
    time: str

    @property
    def over(self) -> str:
        """The attribute that all windows of the pass are over."""
        return str(self.groupings[0].family.over)

    def key_names(self, grouping: Grouping) -> list[str]:
        return [key_name(self.expressions.index(key)) for key in grouping.keys]

    def sets(self, table: pa.Table) -> list[pa.Table]:
        """The rows of each grouping."""
        return [table] if len(self.groupings) == 1 else split(table, integers(table[SET], null=0), len(self.groupings))

    def facts(self, table: pa.Table) -> BatchFacts:
        """What the rows of the first grouping say: each row of the batch is in one of them."""
        counts, at = integers(table[ROWS], null=0), integers(table[AT], null=0)
        gone = table[AT].is_null().to_numpy()
        dead, missing, markers = (int(counts[of].sum()) for of in (gone, ~gone & (at == MISSING), ~gone & (at == MARKER)))
        tuples = int(counts.sum()) - dead - markers
        seen: dict[str, dict[Key, Seen]] = {self.over: {(): seen_in(table, LEAST, LAST, tuples - missing)}}
        if self.over != self.time:
            seen[self.time] = {(): seen_in(table, LEAST_TIME, LAST_TIME, tuples)}
        return BatchFacts(int(counts.sum()), dead, markers, seen, {self.over: missing} if missing else {})

    def partials(self, table: pa.Table, number: int) -> Partials:
        """The partials of a grouping, without the rows that have no slice."""
        grouping = self.groupings[number]
        used = integers(table[AT], null=UNMATCHED) > MARKER
        table = table if used.all() else table.filter(pa.array(used))
        states = tuple(
            column.partial.decode(*(table[name] for name in table.column_names if name.startswith(lane_prefix(place))))
            for place, column in enumerate(grouping.columns)
        )
        names = [*(CELL,) * grouping.by_cell, *self.key_names(grouping), *(BUCKET,) * grouping.family.spread]
        return Partials(integers(table[AT], null=0), tuple(table[name].combine_chunks() for name in names), states)


def seen_in(table: pa.Table, least: str, greatest: str, rows: int) -> Seen:
    low, high = integers(table[least], null=END), integers(table[greatest], null=BEGINNING)
    return Seen(rows, int(low.min(initial=END)), int(high.max(initial=BEGINNING)))


def key_name(number: int) -> str:
    """A group column."""
    return f"_muntin_k{number}"


def lane_prefix(column: int) -> str:
    """How the names of a partial column's Spark columns begin."""
    return f"_muntin_p{column}_"


def split(table: pa.Table, numbers: Array, count: int) -> list[pa.Table]:
    return [table.filter(pa.array(numbers == one)) for one in range(count)]
