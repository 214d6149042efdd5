"""A pipeline with windows of every type, and its input in files, a batch each. For tests of assembly on executors."""

from __future__ import annotations

import json
import os
import random
from pathlib import Path
from typing import Any

from deltalake import DeltaTable

from muntin import Engine, FileSink, Layout, Pace, TableSink, Trigger
from muntin.spark.sinks.text import json_lines

PIPELINE = """
CREATE STREAM clicks (ts TIMESTAMP, user STRING, n BIGINT, x DOUBLE)
  WITH (source = 'files', format = 'json', path = '{path}', time = 'ts', slack = '5 seconds', max_files_per_trigger = '1');
CREATE QUERY by_user AS
  SELECT user, count(*) AS clicks, sum(n) AS n, max(n) AS top FROM clicks [RANGE 60 seconds SLIDE 20 seconds] GROUP BY user;
CREATE QUERY some AS
  SELECT user, avg(n) AS mean FROM clicks [RANGE 35 seconds SLIDE 10 seconds] WHERE n > 4 AND user <> 'u3' GROUP BY user;
CREATE QUERY parity AS
  SELECT n % 2 AS odd, min(n) AS low, stddev(x) AS spread FROM clicks [RANGE 40 seconds SLIDE 40 seconds] WHERE n < 8 GROUP BY n % 2;
CREATE QUERY total AS SELECT sum(n) AS n, max(n) AS top FROM clicks [RANGE 25 seconds SLIDE 10 seconds];
CREATE QUERY since_start AS
  SELECT user, count(*) AS clicks, max(n) AS top FROM clicks [RANGE UNBOUNDED SLIDE 30 seconds] GROUP BY user;
CREATE QUERY by_row AS
  SELECT user, count(*) AS clicks, sum(n) AS n FROM clicks [RANGE 30 rows SLIDE 20 rows WATTR row_num] GROUP BY user;
CREATE QUERY own_rows AS
  SELECT user, count(*) AS clicks, max(n) AS top FROM clicks [RANGE 6 rows SLIDE 4 rows WATTR row_num PATTR user];
CREATE QUERY by_tuple AS
  SELECT user, sum(n) AS n FROM clicks [RANGE 10 seconds RATTR ts SLIDE 3 rows SATTR row_num] WHERE n > 2 GROUP BY user;
CREATE QUERY broken AS SELECT user, sum(1000 / (n - 1)) AS q FROM clicks [RANGE 20 seconds SLIDE 20 seconds] GROUP BY user;
"""
QUERIES = ("by_user", "some", "parity", "total", "since_start", "by_row", "own_rows", "by_tuple", "broken", "late")
LATE = "SELECT user, count(*) AS c FROM clicks [RANGE 30 seconds SLIDE 15 seconds] WHERE n <> 2 GROUP BY user"
#: The same pipeline after a query left and another joined.
CHANGED = (
    PIPELINE[: PIPELINE.index("CREATE QUERY some")] + PIPELINE[PIPELINE.index("CREATE QUERY parity") :] + f"CREATE QUERY late AS {LATE};"
)
FILES = 6


def halves(directory: Path, half: int) -> str:
    """Write the files of the first half of the input or of the second; the pipeline that is to read them."""
    for number in range(half * FILES // 2, (half + 1) * FILES // 2):
        write_file(directory / "clicks", number)
    return (CHANGED if half else PIPELINE).format(path=directory / "clicks")


def write_file(directory: Path, number: int) -> None:
    """Clicks of 25 seconds, a little out of order; the fifth file brings the first n = 1, on which `broken` stops."""
    directory.mkdir(exist_ok=True)
    chance = random.Random(number)
    rows: list[dict[str, Any]] = []
    for _ in range(40):
        second, user = number * 25 + chance.randint(0, 28), chance.choice(["u1", "u2", "u3", "ü", None])
        rows.append(
            {"ts": f"2024-01-01T00:{second // 60:02d}:{second % 60:02d}Z", "user": user, "n": chance.randint(2, 9), "x": chance.random()}
        )
    if number == 4:
        rows.append({"ts": "2024-01-01T00:01:55Z", "user": "u2", "n": 1, "x": 0.5})
    path = directory / f"{number}.json"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    os.utime(path, (1_700_000_000 + number,) * 2)


def run_on(engine: Engine, directory: Path, *, final: bool = False, tables: bool = False) -> dict[str, str]:
    """Take the files that are new, a batch each, and say which queries stopped."""
    sink = TableSink(directory / "out") if tables else FileSink(directory / "out", "jsonl", Layout.PARTS)
    job = engine.start(sink, checkpoint=directory / "checkpoint", trigger=Trigger(Pace.AVAILABLE_NOW))
    job.wait(final=final)
    return job.stopped


def results(directory: Path) -> dict[str, list[str]]:
    """The rows of every query, in one order."""
    found = {}
    for query in QUERIES:
        lines = [line for part in sorted((directory / "out" / query).glob("*.jsonl")) for line in part.read_text().splitlines()]
        found[query] = sorted(rounded(line) for line in lines)
    return found


def table_results(directory: Path) -> dict[str, list[str]]:
    """The same of tables; and nothing lies beside the files that their logs name."""
    found = {}
    for query in QUERIES:
        table = DeltaTable(directory / "out" / query)
        files = [path for path in (directory / "out" / query).rglob("*.parquet") if "_delta_log" not in path.parts]
        assert len(files) == len(table.file_uris())
        text = b"".join(map(bytes, json_lines(table.to_pyarrow_table()))).decode()
        found[query] = sorted(map(rounded, text.splitlines()))
    return found


def rounded(line: str) -> str:
    """Doubles without their last digits: Spark adds in no fixed order."""
    return json.dumps({name: round(value, 9) if isinstance(value, float) else value for name, value in json.loads(line).items()})
