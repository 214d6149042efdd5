"""The query workloads of on-the-fly-sharing-2006, section 6, as SQL over a stream of trades and two static tables.

In: a number of queries and a seed. Out: `WindowedSum`s, or pipeline text. RANGE is uniform in [600, 900] and SLIDE in [300, 600] whole
seconds (Table 8). Convention: in every workload all queries are different, and the first n of a longer list are the list of n.

    A               different windows, no predicate
    B               different predicates, one tumbling window of ten minutes
    C regular       k different predicates with each of k different windows, k × k queries
    C low sharing   neither a window nor a predicate occurs twice
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from muntin.demo.restrictions import Restriction, restrictions

TRADES = "ts TIMESTAMP, symbol STRING, price DOUBLE, vol BIGINT"
TABLES = {"close": "symbol STRING, cp DOUBLE", "index": "symbol STRING, r3000 BOOLEAN, r2000 BOOLEAN, r1000 BOOLEAN"}

TUMBLING = (600, 600)


@dataclass(frozen=True)
class WindowedSum:
    """The total transaction value of a sliding window: Query 2 of the paper, or Query 4 with a restriction; lengths in seconds."""

    name: str
    range: int
    slide: int
    restriction: Restriction | None = None

    @property
    def select(self) -> str:
        window = f"[RANGE {self.range} seconds SLIDE {self.slide} seconds]"
        if self.restriction is None:
            return f"SELECT sum(price * vol) AS value FROM trades {window}"  # noqa: S608 - our own SQL
        joined = f"SELECT sum(T.price * T.vol) AS value FROM trades T {window}, close C, index X"  # noqa: S608
        return f"{joined} WHERE T.symbol = C.symbol AND T.symbol = X.symbol AND {self.restriction.sql}"


def named(parts: Sequence[tuple[tuple[int, int], Restriction | None]]) -> list[WindowedSum]:
    return [WindowedSum(f"q{at:03d}", *window, restriction) for at, (window, restriction) in enumerate(parts)]


def windows(count: int, seed: int = 1) -> list[tuple[int, int]]:
    """So many different RANGEs and SLIDEs."""
    chance = random.Random(seed)  # noqa: S311 - a workload, not a secret
    found: dict[tuple[int, int], None] = {}
    while len(found) < count:
        found.setdefault((chance.randint(600, 900), chance.randint(300, 600)))
    return list(found)


def workload_a(queries: int, seed: int = 1) -> list[WindowedSum]:
    """Same predicates, different windows."""
    return named([(window, None) for window in windows(queries, seed)])


def workload_b(queries: int, seed: int = 1) -> list[WindowedSum]:
    """Different predicates, same window."""
    return named([(TUMBLING, restriction) for restriction in restrictions(queries, seed)])


def workload_c_regular(queries: int, seed: int = 1) -> list[WindowedSum]:
    """As many predicates as windows: of 4 and 4 come the first 16 queries, of 5 and 5 the first 25.

    >>> few = workload_c_regular(16)
    >>> len(set(few)), len({(one.range, one.slide) for one in few}), len({one.restriction for one in few})
    (16, 4, 4)
    """
    side = next(number for number in range(1, queries + 1) if number**2 >= queries)
    pairs = sorted(((window, predicate) for window in range(side) for predicate in range(side)), key=max)
    all_windows, predicates = windows(side, seed), restrictions(side, seed)
    return named([(all_windows[window], predicates[predicate]) for window, predicate in pairs[:queries]])


def workload_c_low_sharing(queries: int, seed: int = 1) -> list[WindowedSum]:
    """The windows of A with the predicates of B."""
    return named(list(zip(windows(queries, seed), restrictions(queries, seed), strict=True)))


def pipeline(queries: Sequence[WindowedSum], directory: Path) -> str:
    """A pipeline file over the files that the generator writes; the tables are declared where a query joins them."""
    source = f"source = 'files', format = 'parquet', path = '{directory}/trades/*.parquet', time = 'ts'"
    lines = [f"CREATE STREAM trades ({TRADES})\n  WITH ({source});"]
    if any(query.restriction for query in queries):
        lines += [
            f"CREATE TABLE {name} ({columns})\n  WITH (path = '{directory}/{name}.csv', format = 'csv');"
            for name, columns in TABLES.items()
        ]
    lines += [f"CREATE QUERY {query.name} AS\n  {query.select};" for query in queries]
    return "\n".join(lines) + "\n"
