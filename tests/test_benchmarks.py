"""The benchmarks at a size of seconds, so that they do not rot: they check their answers, and leave their pages, plots and numbers."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from rich.console import Console

sys.path.insert(0, str(Path(__file__).parents[1]))  # `benchmarks` is no installed package; it is run from the root of the repository

from benchmarks import __main__ as command
from benchmarks import (
    buffering,
    churn,
    groups,
    latency,
    long_windows,
    many_queries,
    model,
    panes,
    paper,
    restart,
    scaling,
    slide_by_tuple,
    touched,
    tuple_windows,
    workloads,
)
from benchmarks.answers import WrongAnswer, check_same
from benchmarks.counting import Scheme, counted
from benchmarks.fragments import JoinedRows, aggregations, lineage
from benchmarks.outcome import Setup
from benchmarks.visits import schedule, visits

from muntin import Slicing
from muntin.demo.workloads import workload_a, workload_b, workload_c_regular
from muntin.spark.generator import closing_prices, index_membership, trades

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: Two trades a second: every slice of whole seconds holds a row, as the count by definition takes for granted.
ROWS = 7_200
TINY = {
    **dict.fromkeys(workloads.WORKLOADS, Setup(queries=(4,), rows=ROWS, rounds=1, warmups=0, measured=2, checked=2)),
    "queries": many_queries.Setup(counts=(1, 20), rows=ROWS, rounds=1, warmups=0, checked=2, batches=4, batch_rows=200),
    "churn": churn.Setup(queries=4, changes=12, batches=10, stay=2, rows=3 * ROWS, processes=1, checked=6, memory="1g"),
    "long_windows": long_windows.Setup(hours=(1, 2), groups=50, slides=40, selects=("all four",)),
    "restart": restart.Setup(batches=5, groups=10, minutes=3, restarts=2),
    "groups": groups.Setup(groups=(10, 100), windows=(2, 3), batches=3, warmups=1, memory=""),
    "scaling": scaling.Setup(fitted=((10, 1, 1, 2),), held_out=((20, 2, 2, 2),), batches=3, warmups=1),
    "touched": touched.Setup(alive=(20, 50), touched=(5, 20), minutes=2, rounds=2),
    "slide_by_tuple": slide_by_tuple.Setup(ranges=(1, 2), rows=60_000, file=15_000, rounds=1, warmups=0),
    "tuple_windows": tuple_windows.Setup(counts=(1, 4), rows=40_000, file=10_000, rounds=1, warmups=0, checked=2),
    "panes": panes.Setup(tuples=(2, 20), panes=(2, 5), rows=4_000, rounds=1),
    "buffering": buffering.Setup(range=40, slides=(1, 7, 40), rows=3_000, batch=500, rounds=1),
    "latency": latency.Setup(bounded=100, blocks=2200),
}


Ran = tuple[dict[str, Any], str]


def run_tiny(name: str, spark: SparkSession, out: Path) -> Ran:
    """The raw numbers and the page of one benchmark."""
    (report,) = command.run([name], spark, TINY, out, Console(file=io.StringIO()))
    assert sorted(path.suffix for path in out.iterdir()) == [".json", ".md", ".png", ".svg"]
    assert all(path.stat().st_size > 1000 for path in out.iterdir())
    return json.loads((out / f"{report.name}.json").read_text()), (out / f"{report.name}.md").read_text()


@pytest.fixture(scope="module")
def contests(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Ran]:
    """Every workload, run once."""
    return {name: run_tiny(name, spark, tmp_path_factory.mktemp(name)) for name in workloads.WORKLOADS}


@pytest.mark.parametrize("name", list(workloads.WORKLOADS))
def test_a_workload_checks_every_strategy_before_it_times_it(name: str, contests: dict[str, Ran]) -> None:
    workload, (raw, page) = workloads.WORKLOADS[name], contests[name]
    assert {claim["text"]: claim["holds"] for claim in raw["claims"]}["every strategy gives the same answers"]
    strategies, forms = {strategy.name for strategy in workload.strategies}, {form.value for form in workload.forms}
    timings = raw["outcome"]["timings"]
    assert {one["strategy"] for one in raw["outcome"]["work"]} == strategies
    assert {one["strategy"] for one in timings} == strategies | forms | {workloads.PLAIN}
    assert {one["strategy"] for one in timings if one["scaled"]} == {workloads.PLAIN, *(one.name for one in workload.sampled)}
    assert raw["outcome"]["rows_compared"] > 10 * len(strategies | forms)
    assert "load average" in page
    assert "other processes had" in page
    assert 0 <= raw["machine"]["elsewhere"] <= raw["machine"]["cores"]


def test_paired_never_has_more_slices_than_paned_and_both_are_as_counted(contests: dict[str, Ran]) -> None:
    raw, _ = contests["workload_a"]
    assert next(claim for claim in raw["claims"] if claim["text"].startswith("paired never"))["holds"]
    ways = {strategy.name: strategy for strategy in workloads.A.strategies}
    for work in raw["outcome"]["work"]:
        scheme = Scheme.UNSHARED if ways[work["strategy"]].sampled else Scheme.SHARED
        queries = workload_a(4)[:: 4 // work["queries"]]
        by_definition = counted(queries, scheme, ways[work["strategy"]].slicing, rows=ROWS)
        assert work["counted"] == {"slices": by_definition.slices, "partial": by_definition.partial, "final": by_definition.final}


def test_more_queries_over_the_same_rows_are_checked_and_their_code_is_watched(spark: SparkSession, tmp_path: Path) -> None:
    raw, page = run_tiny("queries", spark, tmp_path)
    claims = {claim["text"]: claim["holds"] for claim in raw["claims"]}
    assert claims["answers do not depend on the number of queries"]
    assert "no generated method is too long for the JVM to compile" in claims
    assert [(one["kind"], one["queries"]) for one in raw["outcome"]["points"]] == [
        ("windows", 20), ("windows", 1), ("predicates", 20), ("predicates", 1)
    ]  # fmt: skip
    assert all(len(one["per_batch"]) == 4 and one["per_batch"][0] > 0 for one in raw["outcome"]["compiled"])
    assert "parsing" in page


def test_churn_is_checked_from_each_join_to_each_leave(spark: SparkSession, tmp_path: Path) -> None:
    raw, page = run_tiny("churn", spark, tmp_path)
    claims = {claim["text"]: claim["holds"] for claim in raw["claims"]}
    assert claims["every change is made during the run"]
    assert claims["a change is in effect within one micro-batch"]
    assert raw["outcome"]["queries_compared"] == 10
    assert raw["outcome"]["rows_compared"] > 40
    assert max(raw["outcome"]["churning"][0]["queries"]) > 4
    assert "without churn" in page


def test_visitors_leave_before_the_end_and_no_change_is_forgotten() -> None:
    all_visits = visits(20, batches=12, stay=3)
    asked = schedule(all_visits, 12)
    assert [len(asked), sum(map(len, asked)), len(asked[-1])] == [12, 40, 0]
    assert {visit.leaves - visit.joins for visit in all_visits} == {3}
    assert len({visit.query for visit in all_visits}) == 20


def test_long_windows_are_checked_when_full_and_after_the_last_slide(spark: SparkSession, tmp_path: Path) -> None:
    raw, page = run_tiny("long_windows", spark, tmp_path)
    assert [(one["case"]["hours"], one["checked"], one["slices"]) for one in raw["outcome"]] == [(1, 100, 59), (2, 100, 119)]
    assert all(claim["holds"] for claim in raw["claims"] if "memory" in claim["text"])
    assert "all four" in page


def test_a_restart_reads_the_log_and_every_window_is_checked(spark: SparkSession, tmp_path: Path) -> None:
    raw, _ = run_tiny("restart", spark, tmp_path)
    outcome = raw["outcome"]
    assert outcome["checked"] == 4 * 10
    assert [one["batch"] for one in outcome["kept"]] == [1, 2, 3, 4, 5]
    assert [one["batch"] for one in outcome["restarts"]] == [2, 4]
    assert all(one["read"] >= outcome["kept"][one["batch"] - 1]["log"] for one in outcome["restarts"])
    assert all(one["first"] > one["seconds"] > 0 for one in outcome["restarts"])


def windows(*values: float) -> pa.Table:
    times = pa.array(range(len(values)), type=pa.timestamp("us", tz="UTC"))
    return pa.table({"window_start": times, "window_end": times, "value": values})


@pytest.mark.parametrize("ours", [windows(1.0), windows(1.0, 2.0 + 1e-11), windows(1.0, float("nan")), windows(2.0, 1.0)])
def test_a_wrong_answer_stops_a_benchmark(ours: pa.Table) -> None:
    with pytest.raises(WrongAnswer, match="every strategy gives the same answer"):
        check_same("mine", ours, windows(1.0, 2.0))


def test_sums_in_another_order_are_the_same_answer() -> None:
    assert check_same("mine", windows(1.0, 2.0 + 1e-12), windows(1.0, 2.0)) == 2


def test_a_wrong_window_of_a_long_run_stops_it() -> None:
    case = long_windows.Case("sum", hours=1, groups=3, slides=1)
    with pytest.raises(WrongAnswer, match="column s"):
        long_windows.check(case, pa.table({"g": [0, 1, 2], "s": [1.0, 2.0, 3.0]}), last=60)


@pytest.mark.parametrize("slicing", list(Slicing))
def test_sharing_never_makes_more_partial_aggregations_than_rows(slicing: Slicing) -> None:
    queries = workload_a(16)
    assert counted(queries, Scheme.SHARED, slicing, rows=ROWS).partial == ROWS
    assert counted(queries, Scheme.UNSHARED, slicing, rows=ROWS).partial == 16 * ROWS


@pytest.fixture(scope="module")
def hour(spark: SparkSession) -> JoinedRows:
    return JoinedRows.of(trades(spark).join(closing_prices(spark), "symbol").join(index_membership(spark), "symbol").toArrow())


def test_the_generated_hour_has_the_papers_fragments(hour: JoinedRows) -> None:
    queries = workload_b(256)
    found = lineage(hour, queries)
    fragments, unshared, shared = found.fragments(), paper.B[0], paper.B[1]
    assert fragments.per_window == pytest.approx(paper.FRAGMENTS_PER_WINDOW, rel=0.06)
    assert fragments.altogether == pytest.approx(paper.FRAGMENTS_PER_HOUR, rel=0.06)
    assert aggregations(found, queries, Scheme.UNSHARED).partial == pytest.approx(unshared.partial, rel=0.02)
    assert aggregations(found, queries, Scheme.SHARED).final == pytest.approx(shared.final, rel=0.06)


def test_a_row_is_in_the_fragment_of_the_predicates_it_satisfies(hour: JoinedRows) -> None:
    queries = workload_c_regular(9)
    found = lineage(hour, queries)
    row = {name: values[777] for name, values in hour.columns.items()}
    held = [bool(query.restriction.holds(row)) for query in queries if query.restriction]
    assert [bool(found.signatures[777, at // 8] >> (at % 8) & 1) for at in range(9)] == held
    assert found.satisfied[777] == sum(held)


def test_without_predicates_shards_are_slices(hour: JoinedRows) -> None:
    queries = workload_a(16)
    by_slices = counted(queries, Scheme.SHARED, Slicing.PAIRED, rows=len(hour.times))
    by_shards = aggregations(lineage(hour, queries), queries, Scheme.SHARED)
    assert (by_shards.slices, by_shards.partial) == (by_slices.slices, by_slices.partial)
    into_queries = by_slices.slices * len(queries)
    single = by_slices.final + into_queries - by_shards.final  # windows of one slice are not combined again
    assert 0 <= single < len(queries)


def test_driver_and_executors_give_the_same_windows_and_are_timed(spark: SparkSession, tmp_path: Path) -> None:
    raw, page = run_tiny("groups", spark, tmp_path)
    found = raw["outcome"]["found"]
    assert [(one["groups"], one["place"]) for one in found] == [(10, "driver"), (10, "executors"), (100, "driver"), (100, "executors")]
    assert all(one["checked"] == 2 * 3 * one["groups"] and len(one["seconds"]) == 2 and one["peak"] > 0 for one in found)
    assert "with 10 groups the planner's choice is the faster one" in page


def test_turns_are_checked_and_timed_by_groups_touched_and_alive(tmp_path: Path) -> None:
    raw, page = run_tiny("touched", None, tmp_path)  # type: ignore[arg-type]  # no Spark
    assert [(one["alive"], list(one["absorbing"]), one["checked"]) for one in raw["outcome"]] == [
        (20, ["5", "20"], 40),
        (50, ["5", "20"], 100),
    ]
    assert "closing grows no faster than the groups alive" in page


def test_a_model_finds_the_constants_that_runs_were_made_with() -> None:
    true = model.Model(dict.fromkeys(model.TERMS, 0.0) | {"batch": 0.1, "file": 1e-3}, dict.fromkeys(model.TERMS, 1e-6), 0.2)
    some = [
        model.Load(groups, rows, queries, 2, "driver") for groups, rows, queries in [(10, 1, 1), (10, 1, 9), (10**5, 1, 1), (10**5, 4, 3)]
    ]
    some += [model.Load(3 * 10**5, 1, 2, 2, "driver"), model.Load(10**4, 16, 1, 2, "driver")]
    serial = [sum(true.serial[term] * amount for term, amount in one.amounts.items()) for one in some]
    parallel = [sum(true.parallel[term] * amount for term, amount in one.amounts.items()) for one in some]
    costs = [model.Cost(true.wall(one, 2), *parts) for one, *parts in zip(some, serial, parallel, strict=True)]
    found = model.fitted([model.Run(one, cost) for one, cost in zip(some, costs, strict=True)], cores=2)
    other = model.Load(5 * 10**4, 2, 5, 2, "driver")
    assert found.processor(other) == pytest.approx(true.processor(other), rel=0.01)
    assert found.wall(other, 2) == pytest.approx(true.wall(other, 2), rel=0.01)
    assert found.wall(other, 8) == pytest.approx(true.wall(other, 8), rel=0.01)


def test_what_a_batch_costs_is_measured_and_the_model_held_against_it(spark: SparkSession, tmp_path: Path) -> None:
    raw, page = run_tiny("scaling", spark, tmp_path)
    runs = [(one["load"]["place"], one["load"]["groups"]) for part in ("fitted", "held_out") for one in raw["outcome"][part]]
    assert sorted(runs) == [("driver", 10), ("driver", 20), ("executors", 10), ("executors", 20)]
    assert all(one["cost"]["parallel"] > 0 for one in raw["outcome"]["fitted"])
    assert "1,000 executors" in page


def holding(raw: dict[str, Any]) -> dict[str, bool]:
    return {claim["text"]: claim["holds"] for claim in raw["claims"]}


def test_every_window_of_slide_by_tuple_is_checked_in_order_and_out_of_it(spark: SparkSession, tmp_path: Path) -> None:
    raw, page = run_tiny("slide_by_tuple", spark, tmp_path)
    assert raw["outcome"]["compared"] == 3 * 60_000
    assert [one["case"] for one in raw["outcome"]["points"]] == [
        {"seconds": 1, "percent": 0}, {"seconds": 2, "percent": 0}, {"seconds": 2, "percent": 10}
    ]  # fmt: skip
    assert "tuples a second" in page


def test_tuple_based_windows_are_checked_alone_and_among_others(spark: SparkSession, tmp_path: Path) -> None:
    raw, _ = run_tiny("tuple_windows", spark, tmp_path)
    rows, windows = 40_000, [tuple_windows.Window(0), tuple_windows.Window(0), tuple_windows.Window(2)]
    assert raw["outcome"]["compared"] == sum((rows + one.range - 1) // one.slide for one in windows)


def test_panes_are_compared_with_windows_and_with_the_model(spark: SparkSession, tmp_path: Path) -> None:
    raw, page = run_tiny("panes", spark, tmp_path)
    assert panes.model(*panes.PAPER_CELL) == pytest.approx(panes.PAPER_RATIO, abs=0.05)
    assert [one["model"] for one in raw["outcome"]["cells"]] == [5 / 4, 8 / 10, 23 / 40, 26 / 100]
    assert raw["outcome"]["compared"] == 2 * (2_000 + 200) + (1 + 4) * 2
    assert "0.26" in page


def test_window_ids_and_buffers_give_the_same_windows(spark: SparkSession, tmp_path: Path) -> None:
    raw, _ = run_tiny("buffering", spark, tmp_path)
    assert raw["outcome"]["compared"] == 3_000 + 3_000 // 7 + 3_000 // 40
    assert [(one["slices"], one["rows"]) for one in raw["outcome"]["points"]] == [(39, 39), (11, 39), (1, 20)]


def test_what_the_paper_says_of_latency_and_accuracy_holds(spark: SparkSession, tmp_path: Path) -> None:
    """Figure 9: external punctuation beats both slacks. Figure 10: blocks of 490 s, one slack stands out."""
    raw, page = run_tiny("latency", spark, tmp_path)
    claims = holding(raw)
    assert claims["Figure 9: external punctuation beats both slacks, in latency and in accuracy"]
    assert [text for text, holds in claims.items() if text.startswith("Figure 10") and not holds] == []
    assert "| optimal |" in page
