"""The trades generator: the papers' data shape, the same rows however they are asked for."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from muntin import schema
from muntin.errors import Refusal, SourceError
from muntin.query.model import StreamDefinition
from muntin.schema import Field, Schema
from muntin.spark.columns import type_of_spark
from muntin.spark.generator import (
    CLOSE,
    COMMON_VOLUMES,
    INDEX,
    ROWS,
    START,
    TRADES,
    VOLUME_SLOTS,
    Trading,
    closing_prices,
    index_membership,
    rare_volumes,
    trades,
    trades_of,
)
from muntin.spark.sources import CORRUPT, open_source


def stream(*, columns: Schema = TRADES, **options: object) -> StreamDefinition:
    return StreamDefinition(
        "trades", columns, "ts", options={"source": "generator"} | {name: str(value) for name, value in options.items()}
    )


@pytest.fixture(scope="module")
def hour(spark: SparkSession) -> DataFrame:
    return trades(spark).cache()


def test_an_hour_has_the_papers_number_of_trades_spread_over_it(hour: DataFrame) -> None:
    micros = F.unix_micros("ts")
    rows, times, first, last = hour.agg(F.count("*"), F.count_distinct("ts"), F.min(micros), F.max(micros)).collect()[0]
    begin = int(START.timestamp()) * 1_000_000
    assert rows == times == ROWS == 1_138_636
    assert first == begin
    assert begin + 3_599_990_000 < last < begin + 3_600_000_000


def test_half_the_volumes_are_100_and_15_values_make_90_percent(hour: DataFrame) -> None:
    counts = {row.vol: row["count"] for row in hour.groupBy("vol").count().collect()}
    common = sorted(counts.values(), reverse=True)[:15]
    assert abs(counts[100] / ROWS - 0.5) < 0.002
    assert 0.90 < sum(common) / ROWS < 0.92
    assert (min(counts), max(counts)) == (10, 1_600_000)
    assert {vol for vol, count in counts.items() if count >= common[-1]} == set(COMMON_VOLUMES)


def test_any_ten_minutes_have_fewer_than_2000_distinct_volumes(hour: DataFrame) -> None:
    windows = hour.groupBy(F.window("ts", "10 minutes", "5 minutes")).agg(
        F.count_distinct("vol").alias("volumes"), F.count("*").alias("rows")
    )
    full = [row.volumes for row in windows.collect() if row.rows > 180_000]
    assert len(full) == 11
    assert 1_500 < min(full) <= max(full) < 2_000


def test_symbols_are_some_3000_and_skewed(hour: DataFrame) -> None:
    counts = sorted((row["count"] for row in hour.groupBy("symbol").count().collect()), reverse=True)
    assert len(counts) == 3_200
    assert counts[0] > 200 * counts[-1]
    assert sum(counts[:320]) / ROWS > 0.5


def test_prices_are_whole_cents_and_a_symbol_stays_near_its_own(hour: DataFrame) -> None:
    prices = hour.groupBy("symbol").agg((F.max("price") / F.min("price")).alias("spread"), F.min("price").alias("low")).collect()
    assert max(row.spread for row in prices) < 1.06
    assert min(row.low for row in prices) > 2
    assert hour.where(F.abs(F.col("price") * 100 - F.round(F.col("price") * 100)) > 1e-6).count() == 0


def test_prices_fit_the_last_day_s_close(spark: SparkSession, hour: DataFrame) -> None:
    changes = hour.join(closing_prices(spark), "symbol").select((F.col("price") / F.col("cp") - 1).alias("change"))
    assert changes.count() == ROWS  # every symbol has one closing price
    low, middle, high = changes.approxQuantile("change", [0.01, 0.5, 0.99], 0.001)
    assert -0.01 < low < 0 < middle < 0.02 < high < 0.04
    assert changes.agg(F.max(F.abs("change"))).collect()[0][0] < 0.05


def test_the_market_rises_during_the_hour(spark: SparkSession, hour: DataFrame) -> None:
    minutes = hour.join(closing_prices(spark), "symbol").groupBy(F.window("ts", "10 minutes").alias("w"))
    changes = minutes.agg(F.avg(F.col("price") / F.col("cp") - 1).alias("change")).orderBy("w").collect()
    steps = [after.change - before.change for before, after in pairwise(changes)]
    assert all(0.004 < step < 0.006 for step in steps)


def test_r3000_is_r2000_and_r1000_together_and_the_largest_are_in_r1000(spark: SparkSession) -> None:
    rows = [row.asDict() for row in index_membership(spark).collect()]
    members = {name: {row["symbol"] for row in rows if row[name]} for name in ("r3000", "r2000", "r1000")}
    assert [len(members[name]) for name in ("r3000", "r2000", "r1000")] == [3_000, 2_000, 1_000]
    assert members["r2000"] | members["r1000"] == members["r3000"]
    ranks = {row["symbol"]: rank for rank, row in enumerate(rows)}
    assert max(ranks[one] for one in members["r1000"]) < min(ranks[one] for one in members["r2000"])
    assert len(rows) == 3_200


def test_tables_belong_to_a_trading_and_have_the_declared_columns(spark: SparkSession) -> None:
    trading = Trading(rows=100, seconds=10, symbols=40, seed=9)
    symbols = {row.symbol for row in trades_of(spark.range(100), "id", trading).collect()}
    for make, declared in ((closing_prices, CLOSE), (index_membership, INDEX)):
        frame = make(spark, trading)
        assert [(field.name, type_of_spark(field.dataType)) for field in frame.schema.fields] == [
            (field.name, field.type) for field in declared.fields
        ]
        assert frame.count() == 40
        assert symbols <= {row.symbol for row in frame.collect()}


def test_rows_are_in_order_of_time(spark: SparkSession) -> None:
    times = [row.ts for row in trades(spark, rows=5_000, seconds=7).select("ts").collect()]
    assert times == sorted(times)
    assert len(set(times)) == 5_000


def test_the_table_of_volumes_is_full_and_its_rare_volumes_are_distinct() -> None:
    rare = rare_volumes(VOLUME_SLOTS - sum(COMMON_VOLUMES.values()))
    assert len(set(rare)) == len(rare)
    assert not set(rare) & set(COMMON_VOLUMES)
    assert len(rare) + len(COMMON_VOLUMES) < 2_000


def test_a_row_is_a_function_of_its_number_and_the_seed(spark: SparkSession) -> None:
    trading = Trading(rows=1_000, seconds=10)
    whole = trades(spark, rows=1_000, seconds=10).collect()
    part = trades_of(spark.range(500, 600, 1, 7), "id", trading).collect()
    assert part == whole[500:600]
    assert (
        trades(spark, rows=1_000, seconds=10, seed=7).select("vol").collect()
        != trades(spark, rows=1_000, seconds=10).select("vol").collect()
    )


def test_known_rows_never_change(spark: SparkSession) -> None:
    """Benchmarks and documents quote results of these rows."""
    rows = [tuple(row) for row in trades(spark).limit(3).collect()]
    assert [(str(ts), *rest) for ts, *rest in rows] == [
        ("2004-12-01 12:00:00", "AZW", 45.81, 100),
        ("2004-12-01 12:00:00.003161", "X", 46.91, 100),
        ("2004-12-01 12:00:00.006323", "AE", 27.41, 300),
    ]
    assert [tuple(row) for row in closing_prices(spark).limit(3).collect()] == [("A", 57.62), ("B", 40.21), ("C", 7.03)]


def test_a_stream_of_batches_gives_the_rows_of_a_bounded_run(spark: SparkSession, tmp_path: Path) -> None:
    options = {"rows": 250, "seconds": 60, "start": "2020-01-01T00:00:00", "symbols": 5, "seed": 3}
    bounded = open_source(spark, stream(**options), bounded=True)
    streaming = open_source(spark, stream(rows_per_batch=100, **options), bounded=False)
    assert bounded.columns == streaming.columns == ["ts", "symbol", "price", "vol", CORRUPT]
    query = streaming.writeStream.format("memory").queryName("generated").option("checkpointLocation", str(tmp_path)).start()
    try:
        while (query.lastProgress or {}).get("batchId", 0) < 3:
            query.awaitTermination(1)
            assert query.exception() is None
    finally:
        query.stop()
    assert sorted(map(tuple, spark.table("generated").collect())) == sorted(map(tuple, bounded.collect()))
    assert bounded.count() == 250
    assert bounded.agg(F.min("ts")).collect()[0][0].replace(tzinfo=UTC) == datetime(2020, 1, 1, tzinfo=UTC)


def test_a_stream_by_the_clock_is_spark_s_rate(spark: SparkSession) -> None:
    frame = open_source(spark, stream(rows_per_second=100, seconds=60), bounded=False)
    assert frame.isStreaming
    rows = open_source(spark, stream(rows_per_second=100, seconds=60), bounded=True)
    assert rows.count() == 6_000  # time runs as fast as rows come


def test_fewer_columns_in_another_order_may_be_declared(spark: SparkSession) -> None:
    columns = Schema((Field("VOL", schema.BIGINT), Field("ts", schema.TIMESTAMP)))
    assert open_source(spark, stream(columns=columns, rows=3), bounded=True).columns == ["VOL", "ts", CORRUPT]


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"rows_per_secnd": 5}, "did you mean rows_per_second?"),
        ({"rows": "many"}, "rows is a whole number of 1 or more"),
        ({"start": "noon"}, "start is a time"),
        ({"path": "x"}, "an option is one that the generator has"),
        ({"rows": 10**12, "seconds": 10**6}, "computed in 64 bits"),
    ],
)
def test_what_the_generator_cannot_make_is_refused(spark: SparkSession, options: dict[str, object], text: str) -> None:
    with pytest.raises(SourceError) as refused:
        open_source(spark, stream(**options), bounded=True)
    assert text in str(refused.value)


def test_a_column_the_generator_does_not_make_is_refused(spark: SparkSession) -> None:
    with pytest.raises(SourceError, match="the generator makes the columns ts timestamp, symbol string, price double, vol bigint"):
        open_source(spark, stream(columns=Schema((Field("ts", schema.TIMESTAMP), Field("vol", schema.INT)))), bounded=True)
    with pytest.raises(Refusal, match="at least one row"):
        trades(spark, rows=0)
