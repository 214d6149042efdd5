"""The examples in `examples/` run and say what they should."""

from __future__ import annotations

import runpy
from collections import Counter
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from muntin import Engine, LaneType, Part, own_aggregate, reference
from muntin.errors import Refusal

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

EXAMPLES = Path(__file__).parent.parent / "examples"


def test_counts_of_the_last_1_12_and_24_hours_per_user_come_from_one_pass(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(EXAMPLES.parent)
    example = runpy.run_path(str(EXAMPLES / "last_day_per_user.py"))
    clicks = [(row["ts"], row["user"]) for row in example["clicks_of"](spark).toArrow().to_pylist()]
    results = example["results_of"](spark)
    assert len(results.jobs["clicks"].plan.groupings) == 1
    for hours in (1, 12, 24):
        table = results[f"clicks_{hours}h"].to_pylist()
        last = max(row["window_end"] for row in table) - timedelta(minutes=90)
        counted = {row["user"]: row["clicks"] for row in table if row["window_end"] == last}
        assert counted == Counter(user for ts, user in clicks if last - timedelta(hours=hours) <= ts < last)


def test_the_pipeline_file_means_the_same_as_the_program(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(EXAMPLES.parent)
    program = runpy.run_path(str(EXAMPLES / "last_day_per_user.py"))["results_of"](spark)
    engine = Engine(spark)
    engine.execute((EXAMPLES / "last_day_per_user.sql").read_text())
    pipeline = engine.run()
    assert list(pipeline) == list(program)
    for name in program:
        assert pipeline[name].to_pylist() == program[name].to_pylist()


def test_an_aggregate_of_ones_own_equals_its_evaluation(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    example = runpy.run_path(str(EXAMPLES / "own_aggregate.py"))
    assert [row["mean"] for row in example["example"]()] == pytest.approx([2 ** (sum(range(5)) / 5)] * 8)
    rows = [(second, float(1 + second % 7) if second % 3 else None) for second in range(50)]
    frame = spark.createDataFrame(rows, "second INT, x DOUBLE").selectExpr("timestamp_seconds(second) AS ts", "x")
    engine = Engine(spark, aggregates=[example["geometric_mean"]])
    engine.stream("s", frame, time="ts")
    query = engine.add("SELECT geometric_mean(x) AS g FROM s [RANGE 7 seconds SLIDE 2 seconds]", name="g")
    arrived = [reference.Arrival(row) for row in frame.toArrow().to_pylist()]
    skipping = own_aggregate_over(example["geometric_mean"])
    truth = reference.results(query, arrived, {"geometric_mean": skipping})
    assert [row["g"] for row in engine.run()["g"].to_pylist()] == pytest.approx([row["g"] for row in truth])


def own_aggregate_over(aggregate: Any) -> Any:
    """The same aggregate, its evaluation skipping NULLs as SQL does."""
    return own_aggregate(
        aggregate.name,
        lift=aggregate.partial.lift_columns,
        combine=aggregate.partial.combine_parts,
        lower=aggregate.lower_parts,
        parts=aggregate.partial.parts,
        evaluate=lambda rows: aggregate.evaluate_rows([row for row in rows if row[0] is not None]),
    )


def test_an_aggregate_combined_by_a_function_with_uncombine_is_differential(spark: SparkSession) -> None:
    """Span of time covered: combined by a function of all parts at once."""
    spread = own_aggregate(
        "spread",
        lift=lambda F, x: {"low": F.min(x), "high": F.max(x)},  # noqa: N803
        combine={"low": "min", "high": "max"},
        lower=lambda part: (part["high"] - part["low"], part["high"] == part["high"]),
    )
    total = own_aggregate(
        "total",
        lift=lambda F, n: {"n": F.sum(n)},  # noqa: N803
        combine=lambda a, b: {"n": a["n"] + b["n"]},
        uncombine=lambda a, b: {"n": a["n"] - b["n"]},
        lower=lambda part: part["n"].astype(float),
        parts=[Part("n", LaneType.INT64)],
    )
    start = datetime(2024, 1, 1)
    rows = [(start + timedelta(seconds=at), float(at * at % 17), at) for at in range(40)]
    engine = Engine(spark, aggregates=[spread, total])
    engine.stream("s", spark.createDataFrame(rows, "ts TIMESTAMP, x DOUBLE, n INT"), time="ts")
    engine.add("SELECT spread(x) AS s, max(x) - min(x) AS t, total(n) AS a, sum(n) AS b FROM s [RANGE 9 seconds SLIDE 4 seconds]", name="q")
    table = engine.run()["q"].to_pylist()
    assert len(table) == 12
    assert all(row["s"] == row["t"] and row["a"] == row["b"] for row in table)


def test_an_own_aggregate_without_parts_is_refused() -> None:
    with pytest.raises(Refusal, match="named parts"):
        own_aggregate("f", lift=lambda F, x: {"n": F.count(x)}, combine=lambda a, b: a, lower=lambda part: part["n"])  # noqa: N803
