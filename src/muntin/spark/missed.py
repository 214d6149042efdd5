"""Which windows a late row missed, as a Column: what is written out with it.

In: the queries over an attribute, the row's tick, the punctuations it came under. Out: an array with an element for each clause whose
windows it missed: the clause, the queries that have it, where the first and the last of those windows end; between them there is one every
SLIDE. Convention: a window is missed if it was closed, and with LATE REEMIT is not corrected any more. Of slide-by-tuple windows those
between the two are missed that a tuple makes. WHERE is not asked. Clauses are data, not code: no punctuation makes Spark compile anew.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import Column
from pyspark.sql import functions as F

from muntin.expression.tree import Column as TableColumn
from muntin.query.model import Query
from muntin.semantics import TIME, Measure, SlidingWindow, TupleSlide, Unit, Window, extent
from muntin.windows.landmarks import first_wid_since

_NUMBERS = ("phase", "slide", "range", "anchor", "period", "least", "horizon", "own", "shown")
_CLAUSES = f"array<struct<window:string,queries:array<string>,{','.join(f'{name}:bigint' for name in _NUMBERS)}>>"


@dataclass(frozen=True)
class Missed:
    """`since` says from when on queries take part, `overall` is the punctuation of the whole stream. Called with a row's tick and the
    punctuation of its sub-stream, which counts for queries whose groups are parts of sub-streams.
    """

    queries: Sequence[Query]
    since: Mapping[str, int]
    substreams: tuple[str, ...]
    overall: int
    measure: Measure

    def __call__(self, tick: Column, reached: Column) -> Column:
        def first(one: Column) -> Column:
            return F.greatest(tick - F.pmod(tick - one["phase"], one["slide"]) + one["slide"], one["least"])

        def last(one: Column) -> Column:
            """Of a window that slides, the last that begins at or before the row; of a landmark's, the one at the next landmark."""
            punctuation = F.when(one["own"] == 1, reached).otherwise(F.lit(self.overall)) - one["horizon"]
            closed = punctuation - F.pmod(punctuation - one["phase"], one["slide"])
            sliding = tick + one["range"] - F.pmod(tick + one["range"] - one["phase"], one["slide"])
            landmark = tick - F.pmod(tick - one["anchor"], one["period"]) + one["period"]
            return F.least(F.coalesce(sliding, landmark, closed), closed)

        def told(one: Column) -> Column:
            ends = (("first_end", first(one)), ("last_end", last(one)))
            values = (value_of(end + one["shown"], self.measure).alias(name) for name, end in ends)
            return F.struct(one["window"].alias("window"), one["queries"].alias("queries"), *values)

        clauses = F.from_json(F.lit(json.dumps(self._clauses())), _CLAUSES)
        return F.transform(F.filter(clauses, lambda one: first(one) <= last(one)), told)

    def _clauses(self) -> list[dict[str, Any]]:
        known: dict[str, dict[str, Any]] = {}
        for query in self.queries:
            asked = clause(query.window, self.since[query.name]) | {"horizon": query.late.horizon, "own": int(self._closes_alone(query))}
            known.setdefault(json.dumps(asked), {"window": str(query.window), "queries": [], **asked})["queries"].append(query.name)
        return list(known.values())

    def _closes_alone(self, query: Query) -> bool:
        """Whether its windows close with those of the row's sub-stream."""
        groups = {group.expression.name for group in query.group_by if isinstance(group.expression, TableColumn)}
        dividing = set(query.window.pattr) if isinstance(query.window, TupleSlide) else groups
        return bool(self.substreams) and set(self.substreams) <= dividing


def clause(window: Window, since: int) -> dict[str, int | None]:
    """Where windows end, in ticks: at `phase` and every `slide`, not before `least`. `shown` makes results of ends."""
    if isinstance(window, TupleSlide):
        return {"phase": 0, "slide": 1, "range": window.range, "anchor": None, "period": None, "least": since + window.range, "shown": -1}
    ends = {"phase": window.first_end, "slide": window.slide, "least": extent(first_wid_since(since, window), window).end, "shown": 0}
    if isinstance(window, SlidingWindow):
        return {**ends, "range": window.range, "anchor": None, "period": None}
    return {**ends, "range": None, "anchor": window.offset, "period": window.period}


def value_of(tick: Column, measure: Measure) -> Column:
    """`Measure.value`, as a Column."""
    if measure == TIME:
        return F.timestamp_micros(tick)
    if measure.unit is Unit.DOUBLE:
        return tick / F.lit(float(measure.per_one))
    return (tick.cast("decimal(20,0)") / F.lit(measure.per_one)).cast(f"decimal(20,{measure.scale})") if measure.scale else tick
