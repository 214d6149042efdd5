"""The stream of the window-id paper's running example, small rows of it, and queries over it checked from their text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from muntin.aggregates import AGGREGATES
from muntin.query.check import check_pipeline, check_query
from muntin.query.model import Query
from muntin.query.text import parse_query
from muntin.reference import Promise, Step
from muntin.timeline import END, datetime_of, instant_of

CREATE_TRAFFIC = """CREATE STREAM traffic (ts TIMESTAMP, seg_id STRING, speed DOUBLE, mile DECIMAL(8,2), vehicles INT)
  WITH (source = 'files', path = 'traffic', time = 'ts')"""
(TRAFFIC,) = check_pipeline(CREATE_TRAFFIC, AGGREGATES).streams


def query(sql: str) -> Query:
    return check_query(parse_query(sql, name="q"), TRAFFIC, AGGREGATES)


def reading(ts: int, seg_id: str | None = "s1", **others: Any) -> dict[str, Any]:
    """A row; `ts` in microseconds."""
    return {"ts": datetime_of(ts), "seg_id": seg_id, "speed": None, "mile": None, "vehicles": None} | others


def clock_time(text: str) -> int:
    """Microseconds of `12:06` or `12:06:30`."""
    hours, minutes, *seconds = map(int, text.split(":"))
    return ((hours * 60 + minutes) * 60 + sum(seconds)) * 1_000_000


def tick(row: dict[str, Any]) -> int:
    return instant_of(row["ts"])


def steps(batches: Sequence[Sequence[dict[str, Any]]], punctuations: Sequence[int] = ()) -> list[Step]:
    """Batches, each with the punctuation on all rows that comes after it, if there is one, and the end."""
    given = [*punctuations, *[None] * len(batches)]
    made = [Step(batch, () if below is None else (Promise(below),)) for batch, below in zip(batches, given, strict=False)]
    return [*made, Step((), (Promise(END),))]
