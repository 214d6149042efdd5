"""All that a query emits, in order of window end and group, from rows with the punctuation each came under.

In: `Arrival`s. Out: result rows as dictionaries. Convention: it is `emission` with a step for each punctuation.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any, Self

from muntin.aggregates.base import Aggregate
from muntin.errors import DataError
from muntin.query.model import Query
from muntin.reference.emission import Oracle
from muntin.reference.rows import Row, Tables, sort_key
from muntin.reference.steps import Promise, Step
from muntin.timeline import BEGINNING, END, instant_of


@dataclass(frozen=True)
class Arrival:
    """A row and the punctuation that was in force when it came."""

    row: Row
    punctuation: int = BEGINNING

    def with_row(self, row: Row) -> Self:
        return replace(self, row=row)


def arrivals(batches: Iterable[Sequence[Row]], *, time: str, slack: int) -> tuple[list[Arrival], int]:
    """Rows of batches under slack: after each batch the punctuation is the greatest time seen less the slack."""
    out: list[Arrival] = []
    punctuation = BEGINNING
    for batch in batches:
        out += [Arrival(row, punctuation) for row in batch]
        punctuation = max([punctuation] + [instant_of(row[time]) - slack for row in batch])
    return out, punctuation


class Results(list[dict[str, Any]]):
    """Result rows, up to the first window whose data fails; `error` is what failed there."""

    error: DataError | None = None


def results(
    query: Query, rows: Sequence[Arrival], aggregates: Mapping[str, Aggregate], *, since: int = BEGINNING, punctuation: int = END,
    tables: Tables | None = None,
) -> Results:  # fmt: skip
    """What it emits for windows that start at `since` or later and end at the punctuation or before, in order of end and group."""
    steps = [Step()]
    for reached, arrived in groupby(rows, key=lambda one: one.punctuation):
        steps[-1] = Step(steps[-1].rows, (Promise(reached),))
        steps.append(Step([one.row for one in arrived]))
    steps[-1] = Step(steps[-1].rows, (Promise(punctuation),))
    oracle = Oracle(query, steps, aggregates, tables or {}, since)
    found = sorted(oracle.emitted(), key=lambda one: (one[0], [sort_key(part) for part in one[1]]))
    out = Results(row for _, _, row in found)
    out.error = oracle.error
    return out
