"""Random queries that join static tables, for the laws of joins: as SQL, so that SQLite and Spark read them too.

In: `choose`, which takes one of a list (a hypothesis draw, or a seeded `Random.choice`). Out: texts and checked queries.
Convention: keys are few, so that they meet often; tables have duplicate keys, keys that nothing meets, and NULLs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from muntin.aggregates import AGGREGATES
from muntin.query.check import changed, check_pipeline
from muntin.query.model import Query
from muntin.query.registry import Registry
from muntin.query.text import parse_query

Choose = Callable[[Sequence[Any]], Any]
STREAM = "id INT, ts TIMESTAMP, seg STRING, lane INT, n BIGINT, x DOUBLE"
TABLES = {"names": "id INT, seg STRING, rate INT, kind STRING", "lanes": "id INT, lane INT, seg STRING, m DECIMAL(12,2)"}
SEGS, LANES = [None, "a", "b", "c"], [None, 0, 1, 2]
PIPELINE = check_pipeline(
    f"CREATE STREAM s ({STREAM}) WITH (time = 'ts'); " + "; ".join(f"CREATE TABLE {name} ({columns})" for name, columns in TABLES.items()),
    AGGREGATES,
)


@dataclass(frozen=True)
class Source:
    """Tables of FROM and the equalities that connect them; what can be asked of the joined rows."""

    tables: str = ""
    on: str = ""
    groups: tuple[str, ...] = ()
    aggregates: tuple[str, ...] = ()
    conditions: tuple[str, ...] = ()


_NAMES = Source(
    "names N", "T.seg = N.seg", ("N.kind", "N.rate"), ("sum(N.rate)", "max(N.kind)", "sum(T.x * N.rate)"), ("N.rate > 0", "N.rate < T.lane")
)
_LANES = Source("lanes L", "T.lane = L.lane", ("L.seg",), ("sum(L.m)", "avg(L.m)", "min(L.seg)"), ("L.m > 0", "L.seg = T.seg", "L.m < T.n"))


def both(on: str) -> Source:
    """Names and lanes joined on other pairs."""
    aggregates, conditions = _NAMES.aggregates + _LANES.aggregates, (*_NAMES.conditions, *_LANES.conditions, "N.kind <> L.seg")
    return Source("names N, lanes L", on, _NAMES.groups + _LANES.groups, aggregates, conditions)


SOURCES = [
    Source(),
    _NAMES,
    _LANES,
    both("T.seg = N.seg AND T.lane = L.lane"),  # on different keys
    both("T.seg = N.seg AND T.seg = L.seg"),  # on the same key: one look-up
    both("T.seg = N.seg AND N.rate = L.lane"),  # one table through the other
    Source("lanes L", "T.lane = L.lane AND T.seg = L.seg", _LANES.groups, _LANES.aggregates, _LANES.conditions),
    Source("names N, names M", "T.seg = N.seg AND T.lane = M.rate", ("N.kind", "M.kind"), ("max(M.seg)", "sum(N.rate + M.rate)")),
]


#: Windows that end at tuples, for joins in which a tuple without a match ends one all the same.
TUPLE_WINDOWS = [
    "RANGE 9 {unit} RATTR ts SLIDE 1 row SATTR row_num",
    "RANGE 12 {unit} RATTR ts SLIDE 2 rows SATTR row_num",
    "RANGE 7 {unit} RATTR ts SLIDE 3 rows SATTR rank(ts)",
    "RANGE 9 {unit} RATTR ts SLIDE 1 row SATTR row_num PATTR seg",
    "RANGE 20 {unit} RATTR ts SLIDE 2 rows SATTR row_num PATTR seg, lane",
    "RANGE 4 rows SLIDE 2 rows WATTR row_num PATTR seg",
]


def some_text(choose: Choose, unit: str, window: str = "") -> str:
    """A query with or without joins; windows are measured in `unit`."""
    source: Source = choose(SOURCES)
    groups = choose([(), (), ("T.seg",), *((group,) for group in source.groups), ("T.lane", *source.groups)])
    aggregates = dict.fromkeys(choose(["count(*)", "sum(T.n)", "avg(T.x)", "max(T.seg)", *source.aggregates]) for _ in range(2))
    items = [*(f"{group} AS g{at}" for at, group in enumerate(groups)), *(f"{text} AS v{at}" for at, text in enumerate(aggregates))]
    length, slide = choose([(12, 5), (10, 10), (7, 3), (4, 9), (30, 1)])
    conditions = [source.on, choose(["", "", "T.n > 0", "T.seg IS NOT NULL", *source.conditions])]
    where = " AND ".join(condition for condition in conditions if condition)
    return " ".join(
        [
            f"SELECT {', '.join(items)} FROM s T [{window or f'RANGE {length} {unit} SLIDE {slide} {unit} WATTR ts'}]",
            f", {source.tables}" if source.tables else "",
            f"WHERE {where}" if where else "",
            f"GROUP BY {', '.join(groups)}" if groups else choose(["", "" if "PATTR" in window else "EMIT EMPTY"]),
        ]
    )


@lru_cache(maxsize=10_000)
def checked(text: str, name: str) -> Query:
    streams = {stream.name: stream for stream in PIPELINE.streams}
    tables = {table.name: table for table in PIPELINE.tables}
    return changed(Registry(), parse_query(text, name), streams, tables, AGGREGATES).queries[0]
