"""Every type of window through the shared plan and the assemblies = the reference, for any cut, arrival order and restart."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cases import cut
from muntin.plan.divide import Sharing
from muntin.query.model import Query
from muntin.timeline import SECOND
from muntin.windows import store
from python_engine import Batch, PythonEngine
from test_laws import same
from traffic import TRAFFIC, query, reading

VALUES = "count(*) AS n, sum(vehicles) AS v, max(speed) AS fastest, avg(mile) AS mile, min(seg_id) AS least"
WINDOWS = [
    "RANGE 7 us SLIDE 3 us",
    "RANGE 4 us SLIDE 10 us OFFSET 1 us ALIGN STARTS",
    "RANGE UNBOUNDED SLIDE 5 us",
    "RANGE UNBOUNDED SLIDE 3 us LANDMARK 12 us OFFSET 1 us",
    "RANGE 2.5 SLIDE 0.75 WATTR mile",
    "RANGE UNBOUNDED SLIDE 1.5 WATTR mile",
    "RANGE 1.5 SLIDE 0.25 WATTR speed",
    "RANGE UNBOUNDED SLIDE 0.5 LANDMARK 1.5 WATTR speed",
    "RANGE 2 SLIDE 1 WATTR vehicles",
    "RANGE 3 seconds SLIDE 2 seconds WATTR arrival_ts",
    "RANGE 6 rows SLIDE 4 rows WATTR row_num",
    "RANGE 2 rows SLIDE 5 rows",
    "RANGE UNBOUNDED SLIDE 3 rows LANDMARK 6 rows WATTR row_num",
    "RANGE 9 us RATTR ts SLIDE 1 row SATTR row_num",
    "RANGE 12 us RATTR ts SLIDE 3 rows SATTR row_num",
    "RANGE 7 us RATTR ts SLIDE 2 rows SATTR rank(ts)",
    "RANGE 7 us RATTR ts SLIDE 1 row SATTR row_num PATTR seg_id",
    "RANGE 7 us RATTR ts SLIDE 2 rows SATTR rank(ts) PATTR seg_id",
    "RANGE 2.5 RATTR mile SLIDE 1 row SATTR row_num",
]
SELECTS = [
    f"SELECT {VALUES} FROM traffic [{{}}]",
    f"SELECT {VALUES} FROM traffic [{{}}] WHERE vehicles > 1",
    "SELECT window_start AS s, count(*) + 1 AS n FROM traffic [{}] WHERE vehicles > 1 EMIT EMPTY",
    f"SELECT seg_id, {VALUES} FROM traffic [{{}}] WHERE vehicles <> 2 GROUP BY seg_id HAVING count(*) > 1",
    f"SELECT {VALUES} FROM traffic [{{}}] WHERE vehicles > 1 LATE CONSISTENT",
    f"SELECT seg_id, {VALUES} FROM traffic [{{}}] GROUP BY seg_id LATE CONSISTENT",
]


def goes_with(text: str, window: str) -> bool:
    """An empty window has no groups, and nothing is late over what arrival defines."""
    return not ("EMPTY" in text and "PATTR" in window) and not (
        "LATE" in text and ("WATTR row_num" in window or "rows SLIDE" in window or "arrival" in window)
    )


QUERIES = [query(text.format(window)) for text in SELECTS for window in WINDOWS if goes_with(text, window)]
readings = st.builds(
    lambda at, seg, vehicles, speed, mile: reading(at, seg, vehicles=vehicles, speed=speed, mile=mile),
    st.integers(-20, 60),
    st.none() | st.sampled_from("ab"),
    st.integers(0, 3),
    st.integers(-40, 40).map(lambda number: number / 8),
    st.integers(-500, 500).map(lambda cents: Decimal(cents).scaleb(-2)),
)


def named(some: list[Query]) -> list[Query]:
    return [replace(one, name=f"q{at}") for at, one in enumerate(some)]


def stream(**options: Any) -> Any:
    from muntin.query.disorder import disorder_of

    slack, disorder = disorder_of(TRAFFIC.schema, "ts", options, lambda _, refusal: refusal)
    return type(TRAFFIC)(TRAFFIC.name, TRAFFIC.schema, TRAFFIC.time, slack, disorder=disorder)


DECLARED = [
    {"slack": "0 us"},
    {"slack": "15 us", "slack_of": "mile 2.5, speed 0.5, vehicles 1"},
    {"slack_rows": "3"},
    {"substreams": "seg_id", "slack": "5 us"},
    {"substreams": "seg_id", "slack": "5 us", "idle_after": "2 seconds", "slack_rows": "6"},
]


@settings(max_examples=150)
@given(
    some=st.lists(st.integers(0, len(QUERIES) - 1), min_size=1, max_size=4).map(lambda places: named([QUERIES[at] for at in places])),
    rows=st.lists(readings, max_size=25),
    places=st.lists(st.integers(0, 100), max_size=4),
    pauses=st.lists(st.integers(0, 4), min_size=5, max_size=5),
    declared=st.sampled_from(DECLARED),
    sharing=st.sampled_from(Sharing),
    restart_after=st.none() | st.integers(0, 3),
)
def test_every_window_type_gives_the_reference_result(
    some: list[Query],
    rows: list[dict[str, Any]],
    places: list[int],
    pauses: list[int],
    declared: dict[str, str],
    sharing: Sharing,
    restart_after: int | None,
) -> None:
    clocks = [sum(pauses[: at + 1]) * SECOND for at in range(5)]
    batches = [Batch(part, clock) for part, clock in zip(cut(rows, places), clocks, strict=False)]
    engine = PythonEngine(stream(**declared), some, sharing).run(batches, restart_after=restart_after)
    for one in some:
        ours, truth = engine.results[one.name], engine.truth(one)
        assert same(ours, truth), f"{one}\nours  {ours}\ntruth {truth}"


@pytest.mark.parametrize("window", ["RANGE UNBOUNDED SLIDE 2 us", "RANGE UNBOUNDED SLIDE 2 us LANDMARK 20 us"])
def test_closed_slices_of_landmark_windows_are_merged(window: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "FEWEST_MERGED", 4)
    one = query(f"SELECT seg_id, {VALUES} FROM traffic [{window}] GROUP BY seg_id")
    rows = [reading(at * 3, "ab"[at % 2], vehicles=at % 5, speed=float(at), mile=Decimal(at)) for at in range(60)]
    engine = PythonEngine(stream(slack="4 us"), [one])
    engine.run([Batch(rows[at : at + 3]) for at in range(0, 60, 3)], restart_after=11)
    assert same(engine.results["q"], engine.truth(one))
    engine = PythonEngine(stream(slack="4 us"), [one])
    for at in range(0, 60, 3):
        engine.take(Batch(rows[at : at + 3]))
    assert engine.assemblies.slices < 30


def test_a_resumed_slide_by_tuple_window_finds_its_groups_whatever_their_numbers_are_now() -> None:
    one = query("SELECT seg_id, count(*) AS n FROM traffic [RANGE 12 us RATTR ts SLIDE 3 rows SATTR row_num] GROUP BY seg_id")
    placed = [[(-18, None)], [(8, "a"), (8, None), (8, "a"), (9, "b"), (13, "b"), (15, None), (16, "a")], [(16, None)]]
    engine = PythonEngine(stream(slack="0 us"), [one])
    engine.run([Batch([reading(at, seg) for at, seg in some]) for some in placed], restart_after=1)
    assert same(engine.results["q"], engine.truth(one))
