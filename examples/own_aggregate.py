"""An aggregate of your own: the geometric mean, given as lift, combine and lower.

`lift` says what Spark computes over the rows of a slice, `combine` how two slices become one, `lower` what the result is.
Run it with `scripts/run.sh python examples/own_aggregate.py`.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import muntin

geometric_mean = muntin.own_aggregate(
    "geometric_mean",
    lift=lambda F, x: {"n": F.count(x), "logs": F.sum(F.ln(x))},  # noqa: N803 - F is what everybody calls it
    combine={"n": "sum", "logs": "sum"},
    lower=lambda part: (np.exp(part["logs"] / np.maximum(part["n"], 1)), part["n"] > 0),
    parts=[muntin.Part("n", muntin.LaneType.INT64)],
    evaluate=lambda rows: math.exp(sum(math.log(x) for (x,) in rows) / len(rows)) if rows else None,
)


def example() -> list[dict[str, Any]]:
    spark = muntin.session()
    rows = [(second, float(2 ** (second % 5))) for second in range(60)]
    frame = spark.createDataFrame(rows, "second INT, x DOUBLE").selectExpr("timestamp_seconds(second) AS ts", "x")
    engine = muntin.Engine(spark, aggregates=[geometric_mean])
    engine.stream("samples", frame, time="ts")
    engine.add("SELECT geometric_mean(x) AS mean FROM samples [RANGE 30 seconds SLIDE 10 seconds]", name="means")
    rows_out: list[dict[str, Any]] = engine.run()["means"].to_pylist()
    return rows_out


if __name__ == "__main__":
    from rich.console import Console

    Console().print(example())
