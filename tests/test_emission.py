"""Early and corrected results = the reference, for every type of window, any cut, arrival order and restart, next to any other queries."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from cases import cut
from muntin.plan.divide import Sharing
from muntin.query.model import Query
from muntin.timeline import SECOND
from python_engine import Batch, PythonEngine
from test_laws import same
from test_window_types import DECLARED, QUERIES, VALUES, WINDOWS, goes_with, named, readings, stream
from traffic import query

CLAUSES = ["EMIT EVERY '2 seconds'", "LATE REEMIT FOR {horizon}", "EMIT EVERY '3 seconds' LATE REEMIT FOR {horizon}"]
SELECTS = [
    f"SELECT {VALUES} FROM traffic [{{}}]",
    "SELECT window_start AS s, count(*) + 1 AS n, min(speed) AS slowest FROM traffic [{}] WHERE vehicles > 1 EMIT EMPTY",
    f"SELECT seg_id, {VALUES} FROM traffic [{{}}] WHERE vehicles <> 2 GROUP BY seg_id",
]
OTHERS = [
    f"SELECT seg_id, {VALUES} FROM traffic [{{}}] GROUP BY seg_id HAVING count(*) > 1 EMIT EVERY '2 seconds'",
    f"SELECT {VALUES} FROM traffic [{{}}] WHERE vehicles > 1 LATE CONSISTENT EMIT EVERY '3 seconds'",
]


def horizons(window: str) -> list[str]:
    """Some lengths in the unit of a window's attribute."""
    if "mile" in window or "speed" in window:
        return ["0.25", "3.75"]
    return ["1", "3"] if "vehicles" in window else ["5 us", "30 us"]


def texts() -> list[str]:
    found = []
    for window in WINDOWS:
        for select in SELECTS:
            for clause in CLAUSES:
                ranked = "rank" in window and "REEMIT" in clause  # refused
                for horizon in horizons(window) if "REEMIT" in clause else [""]:
                    text = f"{select} {clause.format(horizon=horizon)}"
                    found += [text.replace("{}", window)] if goes_with(text, window) and not ranked else []
        found += [text.format(window) for text in OTHERS if goes_with(text, window)]
    return found


EMITTING = [query(text) for text in texts()]


@settings(max_examples=200)
@given(
    some=st.lists(st.integers(0, len(EMITTING) - 1), min_size=1, max_size=3),
    others=st.lists(st.integers(0, len(QUERIES) - 1), max_size=2),
    rows=st.lists(readings, max_size=25),
    places=st.lists(st.integers(0, 100), max_size=5),
    pauses=st.lists(st.integers(0, 4), min_size=6, max_size=6),
    declared=st.sampled_from(DECLARED),
    sharing=st.sampled_from(Sharing),
    restart_after=st.none() | st.integers(0, 4),
)
def test_early_and_corrected_results_are_those_of_the_reference(
    some: list[int],
    others: list[int],
    rows: list[dict[str, Any]],
    places: list[int],
    pauses: list[int],
    declared: dict[str, str],
    sharing: Sharing,
    restart_after: int | None,
) -> None:
    queries: list[Query] = named([*(EMITTING[at] for at in some), *(QUERIES[at] for at in others)])
    clocks = [sum(pauses[: at + 1]) * SECOND for at in range(6)]
    batches = [Batch(part, clock) for part, clock in zip(cut(rows, places), clocks, strict=False)]
    engine = PythonEngine(stream(**declared), queries, sharing).run(batches, restart_after=restart_after)
    for one in queries:
        ours, truth = engine.results[one.name], engine.truth(one)
        assert same(ours, truth), f"{one}\nours  {ours}\ntruth {truth}"
