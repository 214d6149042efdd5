"""Early and corrected results = the reference, for every type of window, any cut, arrival order and restart, next to any other queries."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cases import cut
from muntin.plan.divide import Sharing
from muntin.query.model import Query
from muntin.timeline import SECOND
from python_engine import Batch, PythonEngine
from test_laws import same
from test_window_types import DECLARED, QUERIES, VALUES, WINDOWS, goes_with, named, readings, stream
from traffic import query, reading

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


def batches_of(rows: list[dict[str, Any]], places: list[int]) -> list[Batch]:
    return [Batch(part, (at + 1) * SECOND) for at, part in enumerate(cut(rows, places))]


BY_SEGMENT = f"SELECT seg_id, {VALUES} FROM traffic [{{}}] WHERE vehicles <> 2 GROUP BY seg_id"
CORRECTABLE = [one for one in WINDOWS if goes_with("LATE", one) and "rank" not in one]


@given(window=st.sampled_from(CORRECTABLE), rows=st.lists(readings, max_size=20), places=st.lists(st.integers(0, 100), max_size=4))
def test_corrected_long_enough_the_highest_revisions_are_the_results_of_a_run_in_which_nothing_is_late(
    window: str, rows: list[dict[str, Any]], places: list[int]
) -> None:
    longest = "1000" if "mile" in window or "speed" in window or "vehicles" in window else "1 hour"
    corrected, plain = (query(BY_SEGMENT.format(window) + late) for late in (f" LATE REEMIT FOR {longest}", ""))
    found = PythonEngine(stream(slack="0 us"), [corrected]).run(batches_of(rows, places)).results["q"]
    highest = {(row["window_end"], row["seg_id"]): row for row in found}
    assert [row["revision"] for row in highest.values()] == [
        sum((other["window_end"], other["seg_id"]) == key for other in found) - 1 for key in highest
    ]
    ours = [{name: value for name, value in row.items() if name != "revision"} for row in highest.values()]
    truth = PythonEngine(stream(slack="0 us"), [plain]).run(batches_of(rows, [])).results["q"]
    assert same(sorted(ours, key=place), sorted(truth, key=place))


def place(row: dict[str, Any]) -> tuple[str, str]:
    return str(row["window_end"]), str(row["seg_id"])


@given(window=st.sampled_from(WINDOWS), rows=st.lists(readings, max_size=20), places=st.lists(st.integers(0, 100), max_size=4))
def test_final_results_are_the_same_with_early_ones_and_without(window: str, rows: list[dict[str, Any]], places: list[int]) -> None:
    early, plain = (query(BY_SEGMENT.format(window) + emit) for emit in (" EMIT EVERY '1 second'", ""))
    told, untold = (PythonEngine(stream(slack="5 us"), [one]).run(batches_of(rows, places)).results["q"] for one in (early, plain))
    assert [{name: value for name, value in row.items() if name != "final"} for row in told if row["final"]] == untold


def test_a_running_value_that_cannot_be_computed_is_left_out_and_the_final_one_decides() -> None:
    text = "SELECT seg_id, 6 / (count(*) - 1) AS n FROM traffic [RANGE 10 us SLIDE 10 us] WHERE 6 / vehicles > 0 GROUP BY seg_id"
    window = query(f"{text} EMIT EVERY '1 second'")
    engine = PythonEngine(stream(slack="5 us"), [window])
    steps = [[], [(1, "a", 1)], [(2, "a", 2)], [(3, "a", 0), (4, "a", 1), (5, "b", 1), (6, "b", 2)]]  # 0 fails in WHERE
    for at, rows in enumerate(steps):
        engine.take(Batch([reading(tick, seg, vehicles=vehicles) for tick, seg, vehicles in rows], (at + 1) * SECOND))
    assert [(row["seg_id"], row["n"], row["final"]) for row in engine.results["q"]] == [("a", 6.0, False), ("b", 6.0, False)]
    assert same(engine.results["q"], engine.told(window))
    with pytest.raises(AssertionError, match="a row failed"):  # the window closes
        engine.take(Batch([reading(40, "a", vehicles=1)], 5 * SECOND))


def test_a_correction_that_fails_stops_its_query_and_no_other() -> None:
    text = "SELECT count(*) AS n FROM traffic [RANGE 10 us SLIDE 10 us] WHERE 6 / vehicles > 0"
    queries = named([query(f"{text} LATE REEMIT FOR 50 us"), query(f"{text} LATE CONSISTENT")])
    engine = PythonEngine(stream(slack="0 us"), queries)
    engine.take(Batch([reading(1, vehicles=1), reading(12, vehicles=1)]))
    with pytest.raises(AssertionError, match="a row failed"):
        engine.take(Batch([reading(2, vehicles=0)]))
    assert list(engine.assemblies.stopped) == ["q0"]


OVER_TIME = [one for one in EMITTING if one.window.attribute.name == "ts"]


@settings(max_examples=60)
@given(
    one=st.sampled_from(OVER_TIME),
    others=st.lists(st.sampled_from(OVER_TIME), min_size=1, max_size=3),
    rows=st.lists(readings, min_size=4, max_size=25),
    places=st.lists(st.integers(0, 100), min_size=3, max_size=3),
    joins=st.integers(1, 3),
    declared=st.sampled_from(DECLARED),
)
def test_others_that_were_there_before_or_leave_later_change_nothing(
    one: Query, others: list[Query], rows: list[dict[str, Any]], places: list[int], joins: int, declared: dict[str, str]
) -> None:
    joining, *before = named([one, *others])
    found = []
    for beside in ([], before):
        engine = PythonEngine(stream(**declared), beside)
        for at, batch in enumerate(batches_of(rows, places)):
            if at == joins:
                engine.change([*beside, joining])
            engine.take(batch)
            if at == joins:
                engine.change([joining])
                engine.restart()
        found.append(engine.run([]).results[joining.name])
    assert found[0] == found[1]
