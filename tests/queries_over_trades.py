"""The stream that the tests of `muntin.query` ask about, and refusals written down as data.

A file of refusals holds blocks with an empty line between them: a text with the place that is marked between « and », then,
indented, the complaint: the law, what was found, the way out.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from muntin.aggregates import AGGREGATES
from muntin.errors import QueryError
from muntin.query.check import check_pipeline, check_query
from muntin.query.model import Query
from muntin.query.text import parse_query

CREATE_TRADES = """CREATE STREAM trades (
  ts TIMESTAMP, symbol STRING, price DOUBLE, vol BIGINT, fee DECIMAL(10,2), day DATE, flag BOOLEAN, tags ARRAY<STRING>, seen TIMESTAMP
) WITH (source = 'files', path = 'trades/*.parquet', time = 'ts', slack = '5 seconds')"""
(TRADES,) = check_pipeline(CREATE_TRADES, AGGREGATES).streams

#: A window behind the stream's name, for queries whose window does not matter.
FROM_TRADES = "FROM trades [RANGE 12 minutes SLIDE 5 minutes]"


def checked(sql: str) -> Query:
    return check_query(parse_query(sql, name="q"), TRADES, AGGREGATES)


@dataclass(frozen=True)
class Refused:
    """One block of a file of refusals."""

    marked: str
    complaint: str

    def __str__(self) -> str:
        return self.marked

    def check(self, read: Callable[[str], object]) -> None:
        """Reading the text is refused with exactly this complaint and a marker under exactly this place."""
        with pytest.raises(QueryError) as refusal:
            read(self.marked.replace("«", "").replace("»", ""))
        assert str(refusal.value) == f"{self.complaint}\n{self.marker()}"

    def marker(self) -> str:
        before, place, after = self.marked.replace("»", "«").split("«")
        line_start = before.rfind("\n") + 1
        head = f"  line {before.count(chr(10)) + 1}: "
        line = (before[line_start:] + place + after).split("\n")[0]
        return f"{head}{line}\n{' ' * (len(head) + len(before) - line_start)}{'^' * len(place.split(chr(10))[0])}"


def refusals(name: str) -> list[Refused]:
    """The blocks of `tests/cases/<name>.txt`."""
    blocks = (Path(__file__).parent / "cases" / f"{name}.txt").read_text(encoding="utf-8").strip().split("\n\n")
    return [_refused(block.split("\n")) for block in blocks]


def _refused(lines: list[str]) -> Refused:
    text = [line for line in lines if not line.startswith("    ")]
    law, *rest = [line[4:] for line in lines if line.startswith("    ")]
    return Refused("\n".join(text), "\n".join([law, *(f"  {line}" for line in rest)]))
