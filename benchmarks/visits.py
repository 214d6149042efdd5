"""Who joins and leaves, and when.

In: a number of visits, of micro-batches, and how many of these a visit lasts. Out: `Visit`s, and the changes to ask for after each batch.
Convention: visitors differ from each other and from all standing queries: RANGE is 60 to 120 s and SLIDE 30 to 60 s, so that windows
close while they are there, with predicates as in workload B. A visit begins after batch 0 at the earliest and ends before the last.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from muntin.demo.restrictions import restrictions
from muntin.demo.workloads import WindowedSum

SEED = 77


class Kind(Enum):
    JOIN = "join"
    LEAVE = "leave"


@dataclass(frozen=True)
class Change:
    kind: Kind
    query: WindowedSum


@dataclass(frozen=True)
class Visit:
    """A query that joins after one batch and leaves after a later one."""

    query: WindowedSum
    joins: int
    leaves: int


def visits(count: int, *, batches: int, stay: int) -> list[Visit]:
    """Spread evenly over the run."""
    chance = random.Random(SEED)
    room = batches - stay - 1
    found = []
    for number, restriction in enumerate(restrictions(count, SEED)):
        query = WindowedSum(f"visitor{number:04d}", chance.randint(60, 120), chance.randint(30, 60), restriction)
        joins = number * room // count
        found.append(Visit(query, joins, joins + stay))
    return found


def schedule(all_visits: Sequence[Visit], batches: int) -> list[list[Change]]:
    """What to ask for after each batch: those who leave first."""
    return [
        [Change(Kind.LEAVE, visit.query) for visit in all_visits if visit.leaves == batch]
        + [Change(Kind.JOIN, visit.query) for visit in all_visits if visit.joins == batch]
        for batch in range(batches)
    ]
