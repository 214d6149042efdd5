"""Queries in plain Spark: what Muntin is measured and checked against says the same, or refuses what Spark's window() cannot express."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from muntin import Engine, Sharing, Slicing, own_aggregate, reference
from muntin.aggregates import AGGREGATES
from muntin.errors import Refusal
from muntin.query.check import check_query
from muntin.query.text import parse_query
from opaque import FAILING, STEADY
from test_engine_spark import SCHEMA, check_same, some_query, some_rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

START = datetime(2026, 1, 1, tzinfo=UTC)
TRADES = [(START + timedelta(minutes=at), symbol, price) for at, (symbol, price) in enumerate([("a", 1.0), ("b", 2.0), (None, 4.0)] * 5)]
NOTHING = own_aggregate(
    "nothing", lift=lambda functions, x: {"n": functions.count(x)}, combine={"n": "sum"}, lower=lambda part: (part["n"], part["n"] > 0)
)


@pytest.mark.parametrize("seed", range(2))
def test_random_queries_in_plain_spark_equal_the_reference(spark: SparkSession, seed: int) -> None:
    chance = random.Random(100 + seed)
    rows = some_rows(chance, 300)
    frame = spark.createDataFrame(rows, SCHEMA).repartition(2).cache()
    engine = Engine(spark, functions=[*STEADY, *FAILING])
    engine.stream("s", frame, time="ts")
    arrived = [reference.Arrival(dict(zip(frame.columns, row, strict=True))) for row in rows]
    compared = 0
    while compared < 12:
        query, name = some_query(chance), f"q{compared}"
        checked = check_query(parse_query(query.with_bounds(), name), engine.streams["s"], AGGREGATES, functions=engine.functions)
        bounds = reference.results(checked, arrived, AGGREGATES)
        if checked.window.slide > checked.window.range or bounds.error is not None:
            continue
        engine.add(query.sql(), name=name)
        truth = [{key: value for key, value in row.items() if not key.startswith("b")} for row in bounds]
        check_same(query, engine.plain(name).toArrow().to_pylist(), truth, bounds)
        compared += 1
    frame.unpersist()


def engine_over_trades(spark: SparkSession, **how: Any) -> Engine:
    engine = Engine(spark, aggregates=[NOTHING], **how)
    engine.stream("trades", spark.createDataFrame(TRADES, "ts TIMESTAMP, symbol STRING, price DOUBLE"), time="ts")
    engine.table("close", spark.createDataFrame([("a", 1.0), ("a", 2.0), (None, 3.0), ("b", 2.0)], "symbol STRING, cp DOUBLE"))
    return engine


@pytest.mark.parametrize("sharing", ["unshared", "slices", "FRAGMENTS", Sharing.SHARDS, "automatic"])
@pytest.mark.parametrize("slicing", ["paned", Slicing.PAIRED])
def test_every_strategy_gives_what_plain_spark_gives(spark: SparkSession, sharing: str | Sharing, slicing: str | Slicing) -> None:
    engine = engine_over_trades(spark, sharing=sharing, slicing=slicing)
    window = "[RANGE 7 minutes SLIDE 3 minutes]"
    engine.add(f"SELECT symbol, count(*) AS n, weighted_avg(price, 2) AS w FROM trades {window} GROUP BY symbol", name="by_symbol")
    engine.add(f"SELECT sum(C.cp) AS s FROM trades T {window}, close C WHERE T.symbol = C.symbol AND T.price >= C.cp", name="joined")
    results = engine.run()
    for name in ("by_symbol", "joined"):
        assert results[name].num_rows > 0
        assert engine.plain(name).toArrow().to_pylist() == results[name].to_pylist()


@pytest.mark.parametrize(
    ("select", "values"),
    [
        ("count(*) FROM trades [RANGE 1 minute SLIDE 2 minutes]", "SLIDE is longer than RANGE"),
        ("count(*) FROM trades [RANGE 10 rows SLIDE 10 rows]", "RANGE 10 rows SLIDE 10 rows WATTR row_num"),
        ("count(*) FROM trades [RANGE UNBOUNDED SLIDE 1 hour]", "UNBOUNDED"),
        ("count(*) FROM trades [RANGE 1 minute SLIDE 1 minute] EMIT EMPTY", "an EMIT or LATE clause"),
        ("nothing(price) FROM trades [RANGE 1 minute SLIDE 1 minute]", "nothing is an aggregate of your own"),
    ],
)
def test_what_windows_of_spark_cannot_express_is_refused(spark: SparkSession, select: str, values: str) -> None:
    engine = engine_over_trades(spark)
    engine.add(f"SELECT {select}", name="q")
    with pytest.raises(Refusal, match=f"(?s)plain Spark has what its window.. can express.*{values}.*choose another strategy"):
        engine.plain("q")


def test_a_strategy_and_a_query_are_ones_there_are(spark: SparkSession) -> None:
    with pytest.raises(Refusal, match=r"(?s)share by a strategy.*'none'.*choose one of unshared, slices, fragments, shards, automatic"):
        Engine(spark, sharing="none")
    with pytest.raises(Refusal, match=r"(?s)panes or pairs.*'sliced'.*choose one of paned, paired"):
        Engine(spark, slicing="sliced")
    with pytest.raises(Refusal, match="only a registered query can be asked for"):
        engine_over_trades(spark).plain("q")
