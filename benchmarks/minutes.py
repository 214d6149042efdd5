"""Minutes: the input of benchmarks about groups. A batch is one minute with some rows of every group, in a Parquet file or in some.

In: a minute, groups, rows of each. Out: files; queries over it; the values again, to check answers. Convention: the values of a minute
are the same on every machine, and none is zero.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa

from benchmarks.batches import SOME_A_BATCH, write_batch
from muntin.timeline import MINUTE

STREAM = f"CREATE STREAM s (ts TIMESTAMP, g BIGINT, x DOUBLE) WITH ({SOME_A_BATCH});\n"
SELECTS = ("count(*)", "sum(x)", "avg(x)", "min(x)", "max(x)", "stddev(x)", "sum(x * x)", "max(x) - min(x)")
QUERY = (
    "CREATE QUERY {name} AS SELECT g, count(*) AS n, sum(x) AS s, max(x) AS m FROM s [RANGE {minutes} minutes SLIDE 1 minute] GROUP BY g;\n"
)


def values_of(minute: int, groups: int, rows: int = 1) -> np.ndarray:
    """By row of a group, then by group; by group alone where each has one row."""
    found = np.random.default_rng(minute).random((rows, groups)) + 1e-3
    return found[0] if rows == 1 else found


def write_minute(directory: Path, minute: int, groups: int, rows: int = 1, files: int = 1) -> None:
    times = pa.array(np.full(groups * rows, minute * MINUTE), type=pa.timestamp("us", tz="UTC"))
    names = pa.array(np.tile(np.arange(groups), rows))
    write_batch(directory, minute, pa.table({"ts": times, "g": names, "x": values_of(minute, groups, rows).reshape(-1)}), files)


def one_query(path: Path, minutes: int) -> str:
    """The pipeline with one query: count, sum and max of each group."""
    return STREAM.format(path=path, files=1) + QUERY.format(name="q", minutes=minutes)


def queries_over(path: Path, windows: Sequence[int]) -> str:
    """The same query over windows of so many minutes each, named after them."""
    return STREAM.format(path=path, files=1) + "".join(QUERY.format(name=query_over(minutes), minutes=minutes) for minutes in windows)


def query_over(minutes: int) -> str:
    return f"q{minutes}"


def many_queries(path: Path, queries: int, files: int = 1) -> str:
    """Windows of two minutes and more, sliding every minute, each with every select list."""
    text = STREAM.format(path=path, files=files)
    for number in range(queries):
        select, minutes = SELECTS[number % len(SELECTS)], 2 + number // len(SELECTS)
        text += f"CREATE QUERY q{number} AS SELECT g, {select} AS v FROM s [RANGE {minutes} minutes SLIDE 1 minute] GROUP BY g;\n"
    return text
