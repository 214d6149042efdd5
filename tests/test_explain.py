"""`explain` of ten mixed queries: one screen that says what is shared, by whom and why."""

from __future__ import annotations

import re
from pathlib import Path

from muntin.aggregates import AGGREGATES
from muntin.plan.divide import Load, Sharing
from muntin.plan.explain import explain
from muntin.plan.shared import shared_plan
from muntin.query.check import check_pipeline

TEN = check_pipeline((Path(__file__).parent / "cases/ten_queries.sql").read_text(), AGGREGATES)


def explained(sharing: Sharing = Sharing.AUTOMATIC, load: Load | None = None) -> str:
    known = {"load": load} if load else {}
    return explain(TEN.streams[0], shared_plan(TEN.queries, AGGREGATES, sharing=sharing, **known), *known.values())


def test_ten_mixed_queries_fit_one_screen() -> None:
    assert len(explained().splitlines()) <= 40


def test_it_names_who_shares_what() -> None:
    text = explained()
    assert "10 queries in 3 groupings, the source read once" in text
    assert "sum(vol) · count(vol)  used by volume_1h, volume_12h" in text
    assert "by nothing ⋈ close, for movers, losers" in text


def test_it_says_why_with_the_numbers_it_used() -> None:
    assert "200,000 rows a batch (guessed, before any batch)" in explained()
    assert re.search(r"why: joint \d+\.\d ms, conditional \d+\.\d ms a batch for these queries", explained())
    observed = explained(load=Load(rows=1_000, slices=1))
    assert "1,000 rows a batch (observed in the latest batch)" in observed
    assert "why: the strategy slices was asked for" in explained(Sharing.SLICES)


def test_it_names_the_class_of_the_windows_and_what_they_hold() -> None:
    assert "context free (CF), holding partials of the slices in the last RANGE, 12 hours" in explained()


def test_a_coarser_grouping_is_rolled_up_where_that_is_cheaper() -> None:
    without_predicates = [query for query in TEN.queries if query.name in ("volume_1h", "trades_a_minute")]
    many_rows, few_rows = (Load(rows=rows, slices=10) for rows in (10_000_000, 10_000))
    rolled = "rolled up from the same partials: by nothing, for trades_a_minute"
    for load, expected in ((many_rows, True), (few_rows, False)):
        plan = shared_plan(without_predicates, AGGREGATES, load=load)
        assert (rolled in explain(TEN.streams[0], plan, load)) is expected


def test_it_tells_of_early_and_corrected_results() -> None:
    queries = """CREATE QUERY {name} AS SELECT count(*) AS n FROM trades [RANGE 1 hour SLIDE 1 minute] {emission};"""
    stream = "CREATE STREAM trades (ts TIMESTAMP, vol BIGINT) WITH (source = 'files', path = 'trades', time = 'ts');"
    told = {"a": "EMIT EVERY '10 seconds'", "b": "EMIT EVERY '10 seconds' LATE REEMIT FOR '2 hours'", "c": "LATE GENEROUS"}
    pipeline = check_pipeline(stream + "".join(queries.format(name=name, emission=one) for name, one in told.items()), AGGREGATES)
    text = explain(pipeline.streams[0], shared_plan(pipeline.queries, AGGREGATES))
    assert "early results every 10 seconds on the clock, for a, b: one more column" in text
    assert "corrected for 2 hours after they closed, state kept as long: b" in text
