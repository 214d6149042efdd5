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
from benchmarks import long_windows, restart, workload_a
from benchmarks.answers import WrongAnswer, check_same
from benchmarks.counting import Scheme, counted

from muntin import Slicing
from muntin.demo.workloads import workload_a as workload_a_queries

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: Two trades a second: every slice of whole seconds holds a row, as the count by definition takes for granted.
ROWS = 7_200
TINY = command.Setups(
    workload_a.Setup(queries=(4,), rows=ROWS, rounds=1, warmups=0, measured=2, checked=2),
    long_windows.Setup(hours=(1, 2), groups=50, slides=40, selects=("all four",)),
    restart.Setup(batches=5, groups=10, minutes=3, restarts=2),
)


def run_tiny(name: str, spark: SparkSession, out: Path) -> tuple[dict[str, Any], str]:
    """The raw numbers and the page of one benchmark."""
    (report,) = command.run([name], spark, TINY, out, Console(file=io.StringIO()))
    assert sorted(path.suffix for path in out.iterdir()) == [".json", ".md", ".png", ".svg"]
    assert all(path.stat().st_size > 1000 for path in out.iterdir())
    return json.loads((out / f"{report.name}.json").read_text()), (out / f"{report.name}.md").read_text()


def test_workload_a_checks_every_strategy_before_it_times_it(spark: SparkSession, tmp_path: Path) -> None:
    raw, page = run_tiny("workload_a", spark, tmp_path)
    outcome = raw["outcome"]
    claims = {claim["text"]: claim["holds"] for claim in raw["claims"]}
    assert claims["every strategy gives the same answers"]
    assert claims["paired never has more slices than paned"]
    assert outcome["rows_compared"] > 100
    assert {one["strategy"] for one in outcome["timings"]} == {workload_a.PLAIN, *workload_a.STRATEGIES}
    assert {one["strategy"] for one in outcome["timings"] if one["scaled"]} == {workload_a.PLAIN, *workload_a.UNSHARED}
    for work in outcome["work"]:
        scheme, slicing = workload_a.STRATEGIES[work["strategy"]]
        by_definition = counted(workload_a_queries(work["queries"]), scheme, slicing, rows=ROWS)
        assert (work["counted"]["slices"], work["counted"]["final"]) == (by_definition.slices, by_definition.final)
        assert work["counted"]["partial"] == by_definition.partial
    assert "load average" in page
    assert "other processes had" in page
    assert 0 <= raw["machine"]["elsewhere"] <= raw["machine"]["cores"]


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
    assert [one["batch"] for one in outcome["restarts"]] == [2, 5]
    assert all(one["read"] >= outcome["kept"][one["batch"] - 1]["log"] for one in outcome["restarts"])


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
    queries = workload_a_queries(16)
    assert counted(queries, Scheme.SHARED, slicing, rows=ROWS).partial == ROWS
    assert counted(queries, Scheme.UNSHARED, slicing, rows=ROWS).partial == 16 * ROWS
