"""Which windows a late row missed, as a Column: what is written out with it.

In: the queries over an attribute, the row's tick, the punctuation it came under. Out: an array with an element for each window clause whose
windows it missed: the clause, the queries that have it, where the first and the last of those windows end; between them there is one every
SLIDE. Convention: a window is missed if it was closed, and with LATE REEMIT is not corrected any more. Of slide-by-tuple windows those
between the two are missed that a tuple makes. WHERE is not asked. Clauses are data, not code: no punctuation makes Spark compile anew.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from pyspark.sql import Column
from pyspark.sql import functions as F

from muntin.query.model import Query
from muntin.semantics import TIME, LandmarkWindow, Measure, SlidingWindow, TupleSlide, Unit, Window, extent, wids_after
from muntin.windows.landmarks import first_wid_since

_CLAUSES = "array<struct<window:string,queries:array<string>,{}>>".format(
    ",".join(f"{name}:bigint" for name in ("phase", "slide", "range", "anchor", "period", "least", "closed", "shown"))
)


def missed(queries: Iterable[Query], since: Mapping[str, int], tick: Column, punctuation: int, measure: Measure) -> Column:
    """`since` says from when on a query takes part; one that is not in it has yet to begin."""
    known: dict[str, dict[str, Any]] = {}
    for query in queries:
        if query.name in since:
            asked = clause(query.window, since[query.name], punctuation - query.late.horizon)
            known.setdefault(json.dumps(asked), {"window": str(query.window), "queries": [], **asked})["queries"].append(query.name)
    clauses = F.from_json(F.lit(json.dumps(list(known.values()))), _CLAUSES)

    def first(one: Column) -> Column:
        return F.greatest(tick - F.pmod(tick - one["phase"], one["slide"]) + one["slide"], one["least"])

    def last(one: Column) -> Column:
        """Of a window that slides, the last that begins at or before the row; of a landmark's, the one at the next landmark."""
        sliding = tick + one["range"] - F.pmod(tick + one["range"] - one["phase"], one["slide"])
        landmark = tick - F.pmod(tick - one["anchor"], one["period"]) + one["period"]
        return F.least(F.coalesce(sliding, landmark, one["closed"]), one["closed"])

    def told(one: Column) -> Column:
        ends = (value_of(end + one["shown"], measure).alias(name) for name, end in (("first_end", first(one)), ("last_end", last(one))))
        return F.struct(one["window"].alias("window"), one["queries"].alias("queries"), *ends)

    return F.transform(F.filter(clauses, lambda one: first(one) <= last(one)), told)


def clause(window: Window, since: int, closed: int) -> dict[str, int | None]:
    """Where windows end, in ticks: at `phase` and every `slide`; not before `least`, nor after `closed`. `shown` makes results of ends."""
    if isinstance(window, TupleSlide):
        lengths = {"phase": 0, "slide": 1, "range": window.range, "anchor": None, "period": None}
        return {**lengths, "least": since + window.range, "closed": closed, "shown": -1}
    least = extent(first_wid_since(since, window), window).end
    ends = {"least": least, "closed": extent(wids_after(closed, window) - 1, window).end, "shown": 0}
    if isinstance(window, SlidingWindow):
        return {"phase": window.first_end, "slide": window.slide, "range": window.range, "anchor": None, "period": None, **ends}
    assert isinstance(window, LandmarkWindow)
    return {"phase": window.first_end, "slide": window.slide, "range": None, "anchor": window.offset, "period": window.period, **ends}


def value_of(tick: Column, measure: Measure) -> Column:
    """`Measure.value`, as a Column."""
    if measure == TIME:
        return F.timestamp_micros(tick)
    if measure.unit is Unit.DOUBLE:
        return tick / F.lit(float(measure.per_one))
    return (tick.cast("decimal(20,0)") / F.lit(measure.per_one)).cast(f"decimal(20,{measure.scale})") if measure.scale else tick
