"""Queries as a person lists them: what each is, and how it is doing.

In: a query, who brought it, what it went through, tables that are in trouble. Out: a row of texts, in the order they are shown.
"""

from __future__ import annotations

from collections.abc import Collection

from muntin.query.model import Query
from muntin.spark.registrylog import Origin
from muntin.windows.life import QueryLife


def listed(query: Query, origin: Origin, life: QueryLife | None, older: Collection[str] = ()) -> dict[str, str]:
    """`life` is None before the first batch that the query takes part in; `older` are tables that are used as they were."""
    known = life or QueryLife()
    state = f"stopped: {known.stopped}" if known.stopped else "running" if life else "waiting for its first batch"
    waiting = sorted({join.table for join in query.joins} & set(older))
    state += f", with an older version of {', '.join(waiting)}" if waiting else ""
    counts = {name: getattr(known, name) for name in ("windows", "results", "early", "corrected", "late", "dropped")}
    return {
        "name": query.name,
        "stream": query.stream,
        "window": str(query.window),
        "state": state,
        **{name: f"{count:,}" for name, count in counts.items()},
        "origin": origin.value,
    }
