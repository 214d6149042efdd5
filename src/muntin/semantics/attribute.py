"""The windowing attribute: what RANGE and SLIDE are over.

In: a name, its measure, and the columns that row numbers are counted by. Out: `Attribute`, by which slices, punctuations and state go.
Convention: a column of the stream goes by its declared name. `row_num` and `arrival_ts` are attributes of every stream whose columns do not
take these names; that `row_num` is one is told by its measure.
"""

from __future__ import annotations

from dataclasses import dataclass

from muntin.semantics.measure import ROWS, TIME, Measure

ROW_NUMBER, ARRIVAL_TIME = "row_num", "arrival_ts"
#: Attributes that every stream has.
ARRIVAL = {ROW_NUMBER: ROWS, ARRIVAL_TIME: TIME}


@dataclass(frozen=True)
class Attribute:
    name: str
    measure: Measure = TIME
    pattr: tuple[str, ...] = ()

    @property
    def counts_rows(self) -> bool:
        return self.measure == ROWS

    def __str__(self) -> str:
        return f"{self.name} by {', '.join(self.pattr)}" if self.pattr else self.name


def row_number(by: tuple[str, ...] = ()) -> Attribute:
    """The position of a row in the order of arrival, counted for each value of some columns by itself, if any are given."""
    return Attribute("row_num", ROWS, by)
