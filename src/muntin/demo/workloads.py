"""The query workloads of on-the-fly-sharing-2006, section 6, as SQL over a stream of trades.

In: a number of queries and a seed. Out: pipeline text. Workload A: equal predicates, RANGE uniform in [600, 900] and SLIDE in
[300, 600] whole seconds (Table 8).
"""

from __future__ import annotations

import random
from dataclasses import dataclass

TRADES = "ts TIMESTAMP, symbol STRING, price DOUBLE, vol BIGINT"


@dataclass(frozen=True)
class WindowedSum:
    """Query 2 of the paper: the total transaction value of a sliding window; lengths in seconds."""

    name: str
    range: int
    slide: int

    @property
    def select(self) -> str:
        return f"SELECT sum(price * vol) AS value FROM trades [RANGE {self.range} seconds SLIDE {self.slide} seconds]"  # noqa: S608 - our own SQL


def workload_a(queries: int, seed: int = 1) -> list[WindowedSum]:
    """Same predicates, different windows."""
    chance = random.Random(seed)  # noqa: S311 - a workload, not a secret
    return [WindowedSum(f"q{at:03d}", chance.randint(600, 900), chance.randint(300, 600)) for at in range(queries)]


def pipeline(queries: list[WindowedSum], *, path: str) -> str:
    """A pipeline file over Parquet files of trades."""
    stream = f"CREATE STREAM trades ({TRADES})\n  WITH (source = 'files', format = 'parquet', path = '{path}', time = 'ts');\n"
    return stream + "".join(f"CREATE QUERY {query.name} AS\n  {query.select};\n" for query in queries)
