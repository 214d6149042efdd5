"""The law tests' random queries as a streaming job: some are there from the start, some leave, some join. For any session.

`python law_job.py MASTER DIRECTORY SEED INSTANCES` runs it on a cluster with assembly on executors; `run` is the same in a session.
Settings of Spark come as JSON in SETTINGS.
"""

from __future__ import annotations

import json
import math
import os
import random
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from muntin import Engine, FileSink, Layout, Pace, Trigger, session
from opaque import FAILING, STEADY
from test_engine_spark import EXACT, GROUPINGS, Asked, some_query, some_rows

STREAM = """CREATE STREAM s (ts TIMESTAMP, seg STRING, lane INT, n BIGINT, x DOUBLE, money DECIMAL(12, 2), flag BOOLEAN, day DATE, y DOUBLE)
  WITH (source = 'files', format = 'parquet', path = '{path}', time = 'ts', slack = '30 seconds', max_files_per_trigger = '1');"""
ARROW = pa.schema(
    {
        "ts": pa.timestamp("us", tz="UTC"), "seg": pa.string(), "lane": pa.int32(), "n": pa.int64(), "x": pa.float64(),
        "money": pa.decimal128(12, 2), "flag": pa.bool_(), "day": pa.date32(), "y": pa.float64(),
    }
)  # fmt: skip
FILES, AT_FIRST, ALTOGETHER, LEAVING = 4, 18, 26, 6


def write_files(directory: Path, seed: int) -> None:
    """Rows in order but for a few neighbours, a file a batch."""
    rows = sorted(some_rows(random.Random(seed), 600), key=lambda row: row[0])
    rows = [row for at in range(0, len(rows), 5) for row in random.Random(at).sample(rows[at : at + 5], len(rows[at : at + 5]))]
    length = -(-len(rows) // FILES)
    directory.mkdir(parents=True)
    for number in range(FILES):
        table = pa.Table.from_pylist([dict(zip(ARROW.names, row, strict=True)) for row in rows[number * length :][:length]], schema=ARROW)
        pq.write_table(table, directory / f"{number}.parquet")
        os.utime(directory / f"{number}.parquet", (1_700_000_000 + number,) * 2)


def some_queries(seed: int) -> dict[str, Asked]:
    """Sums of the dyadic x are exact whoever adds them up, those of y are not."""
    chance, found = random.Random(seed), {}
    while len(found) < ALTOGETHER:
        asked = some_query(chance)
        if set(asked.items) <= {*EXACT, "var_pop(x)", "stddev(x)"} - {"max(y) - min(y)"} and asked.groups in GROUPINGS:
            found[f"q{len(found)}"] = asked
    return found


def run(engine_of: Any, directory: Path, seed: int) -> dict[str, str]:
    """Two runs on one checkpoint: after the first, some queries leave and others join. Says which queries stopped."""
    write_files(directory / "waiting", seed)
    (directory / "rows").mkdir()
    queries, stopped = list(some_queries(seed).items()), {}
    for half, present in enumerate((queries[:AT_FIRST], queries[LEAVING:])):
        for number in range(half * FILES // 2, (half + 1) * FILES // 2):
            (directory / "waiting" / f"{number}.parquet").rename(directory / "rows" / f"{number}.parquet")
        engine: Engine = engine_of()
        engine.execute(STREAM.format(path=directory / "rows"))
        for name, asked in present:
            engine.add(asked.sql(), name=name)
        sink = FileSink(directory / "out", "jsonl", Layout.PARTS)
        job = engine.start(sink, checkpoint=directory / "checkpoint", trigger=Trigger(Pace.AVAILABLE_NOW))
        job.wait(final=half == 1)
        stopped |= job.stopped
    return stopped


def results(directory: Path) -> dict[str, list[dict[str, Any]]]:
    found = {}
    for query in sorted((directory / "out").glob("q*")):
        rows = [json.loads(line) for part in query.glob("*.jsonl") for line in part.read_text().splitlines()]
        found[query.name] = sorted(rows, key=lambda row: [str(row[name]) for name in row if name[0] in "wg"])
    return found


def alike(ours: dict[str, list[dict[str, Any]]], theirs: dict[str, list[dict[str, Any]]]) -> bool:
    if ours.keys() != theirs.keys():
        return False
    pairs = [(a, b) for name in ours for a, b in zip(ours[name], theirs[name], strict=False)]
    same_length = all(len(ours[name]) == len(theirs[name]) for name in ours)
    return same_length and all(list(a) == list(b) and all(map(equal, a.values(), b.values())) for a, b in pairs)


def equal(a: Any, b: Any) -> bool:
    return math.isclose(a, b, rel_tol=1e-9, abs_tol=1e-9) if isinstance(a, float) and isinstance(b, float) else bool(a == b)


def main(master: str, directory: Path, seed: int, instances: int) -> None:
    spark = session(**{"spark.master": master} | json.loads(os.environ["SETTINGS"]))
    functions = [*STEADY, *FAILING]
    stopped = run(lambda: Engine(spark, functions=functions, assembly="executors", instances=instances), directory, seed)
    (directory / "stopped.json").write_text(json.dumps(stopped))
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]))
