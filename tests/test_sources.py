"""Sources: what is declared is what comes, bad records are seen whichever columns are used, and what cannot be read is refused."""

from __future__ import annotations

from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from muntin import schema
from muntin.errors import SourceError
from muntin.query.model import StreamDefinition
from muntin.schema import Field, Schema
from muntin.spark.generator import TRADES
from muntin.spark.sources import CORRUPT, open_source

NOON = datetime(2004, 12, 1, 12, tzinfo=UTC)
GOOD_CSV = "2004-12-01T12:00:00Z,IBM,10.5,100\n"
CSV = f"""\
{GOOD_CSV}2004-12-01T12:00:01Z,IBM,bad price,100

2004-12-01T12:00:02Z,IBM,10.5,1.5
2004-12-01T12:00:03Z,IBM,10.5
2004-12-01T12:00:04Z,IBM,10.5,100,too many
no time,IBM,10.5,100
2004-12-01T12:00:05Z,,,
"""
JSON = """\
{"ts": "2004-12-01T12:00:00Z", "symbol": "IBM", "price": 10.5, "vol": 100}
{"ts": "2004-12-01T12:00:01Z", "symbol": "IBM", "price": "bad", "vol": 100}

{"ts": "2004-12-01T12:00:02Z", "symbol": "IBM", "price": 10.5, "vol": 1.5}
{"ts": "2004-12-01T12:00:03Z", "symbol": "IBM", "price": 10.5
["neither", "is", "this"]
{"ts": "no time", "symbol": "IBM", "price": 10.5, "vol": 100}
{"ts": "2004-12-01T12:00:05Z"}
"""
PARQUET = {"ts": pa.array([NOON], pa.timestamp("us", "UTC")), "symbol": ["IBM"], "price": [10.5], "vol": pa.array([100], pa.int64())}


def stream(*, columns: Schema = TRADES, **options: object) -> StreamDefinition:
    return StreamDefinition("trades", columns, "ts", options={name: str(value) for name, value in options.items()})


def written(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def opened(spark: SparkSession, path: Path | str, *, bounded: bool = True, columns: Schema = TRADES, **options: object) -> DataFrame:
    return open_source(spark, stream(columns=columns, source="files", path=path, **options), bounded=bounded)


def streamed(frame: DataFrame, spark: SparkSession, name: str) -> list[Any]:
    """The rows of a stream, taken to the end of what is there."""
    assert frame.isStreaming
    frame.writeStream.format("memory").queryName(name).trigger(availableNow=True).start().awaitTermination(60)
    return spark.table(name).collect()


def corrupt(frame: DataFrame) -> list[str]:
    return sorted(row[CORRUPT] for row in frame.where(F.col(CORRUPT).isNotNull()).select(CORRUPT).collect())


# -- bad records ------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("format", "text", "bad"), [("csv", CSV, 5), ("json", JSON, 5)])
def test_a_record_with_any_bad_field_is_corrupt_whichever_columns_are_used(
    spark: SparkSession, tmp_path: Path, format: str, text: str, bad: int
) -> None:
    frame = opened(spark, written(tmp_path / "in", text), format=format)
    whole = {row[CORRUPT]: row for row in frame.collect() if row[CORRUPT]}
    assert len(whole) == bad
    assert all(line in text.splitlines() for line in whole)
    assert corrupt(frame) == sorted(whole)
    for name in ("ts", "symbol", "price", "vol"):
        assert sorted(row[CORRUPT] for row in frame.select(name, CORRUPT).collect() if row[CORRUPT]) == sorted(whole)
    good = frame.where(F.col(CORRUPT).isNull())
    assert good.count() == good.select("symbol").count() == good.agg(F.count("ts")).collect()[0][0] == 2
    assert frame.where(F.col(CORRUPT).isNull()).groupBy().agg(F.sum("vol")).collect()[0][0] == 100


@pytest.mark.parametrize(("format", "text"), [("csv", CSV), ("json", JSON)])
def test_a_stream_sees_the_bad_records_a_bounded_run_sees(spark: SparkSession, tmp_path: Path, format: str, text: str) -> None:
    written(tmp_path / "in" / "a", text)
    bounded = sorted(corrupt(opened(spark, tmp_path / "in", format=format)))
    pruned = opened(spark, tmp_path / "in", format=format, bounded=False).select("ts", CORRUPT)
    assert sorted(row[CORRUPT] for row in streamed(pruned.where(F.col(CORRUPT).isNotNull()), spark, f"bad_{format}")) == bounded


def test_empty_lines_are_skipped_and_empty_fields_are_null(spark: SparkSession, tmp_path: Path) -> None:
    rows = opened(spark, written(tmp_path / "in.csv", "\n" + GOOD_CSV + "\n   \n2004-12-01T12:00:05Z,,,\n"), format="csv").collect()
    assert [tuple(row)[1:] for row in rows] == [("IBM", 10.5, 100, None), (None, None, None, None)]


def test_a_filter_on_other_columns_does_not_turn_a_bad_record_into_a_good_one(spark: SparkSession, tmp_path: Path) -> None:
    frame = opened(spark, written(tmp_path / "in.csv", CSV), format="csv")
    assert frame.where((F.col("vol") > 50) & F.col(CORRUPT).isNull()).count() == 1


# -- headers and options ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("header", ["ts,symbol,price,vol", '"TS", "Symbol", "Price", "Vol"', "\ufeffts,symbol,price,vol"])
def test_a_line_that_spells_the_columns_is_a_header_where_nothing_is_said(spark: SparkSession, tmp_path: Path, header: str) -> None:
    for name in ("a", "b"):
        written(tmp_path / "in" / f"{name}.csv", f"{header}\n{GOOD_CSV}")
    assert [row[CORRUPT] for row in opened(spark, tmp_path / "in", format="csv").collect()] == [None, None]


def test_without_header_means_without_header(spark: SparkSession, tmp_path: Path) -> None:
    frame = opened(spark, written(tmp_path / "in.csv", f"ts,symbol,price,vol\n{GOOD_CSV}"), format="csv", header="false")
    assert corrupt(frame) == ["ts,symbol,price,vol"]


@pytest.mark.parametrize("bounded", [True, False])
def test_a_header_in_another_order_is_refused(spark: SparkSession, tmp_path: Path, bounded: bool) -> None:
    written(tmp_path / "in" / "a.csv", f"symbol,ts,price,vol\n{GOOD_CSV}")
    with pytest.raises(SourceError, match=r"(?s)in their order.*the header says symbol, ts, price, vol.*way out: declare the columns"):
        opened(spark, tmp_path / "in", format="csv", header="true", bounded=bounded)


def test_csv_options_reach_the_reader(spark: SparkSession, tmp_path: Path) -> None:
    text = "ts;symbol;price;vol\n# a comment\n01.12.2004 12:00;'I;B;M';NA;100\n"
    options = {"header": "true", "delimiter": ";", "quote": "'", "null_value": "NA", "timestamp_format": "dd.MM.yyyy HH:mm", "comment": "#"}
    rows = opened(spark, written(tmp_path / "in.csv", text), format="csv", **options).collect()
    assert [tuple(row)[1:] for row in rows] == [("I;B;M", None, 100, None)]
    assert rows[0].ts.replace(tzinfo=UTC) == NOON


def test_a_pattern_of_times_that_spark_cannot_read_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="with the options given"):
        opened(spark, written(tmp_path / "in.csv", GOOD_CSV), format="csv", timestamp_format="bogus pattern")


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"format": "csv", "delimeter": ";"}, "found: delimeter\n  way out: did you mean delimiter?"),
        ({"format": "parquet", "header": "true"}, "an option is one that the format parquet has"),
        ({"format": "json", "mode": "FAILFAST"}, "found: mode"),
        ({"format": "orc"}, "format is one of parquet, csv, json"),
        ({"format": "jsno"}, "did you mean json?"),
        ({}, "found: no format\n  way out: write format = 'parquet' or 'csv' or 'json'"),
        ({"format": "csv", "header": "maybe"}, "header is one of true, false"),
    ],
)
def test_an_unknown_option_or_value_is_refused_with_the_nearest_name(
    spark: SparkSession, tmp_path: Path, options: dict[str, str], text: str
) -> None:
    path = written(tmp_path / "in.csv", GOOD_CSV)
    with pytest.raises(SourceError) as refused:
        opened(spark, path, **options)
    assert text in str(refused.value)


@pytest.mark.parametrize(
    ("source", "text"), [({"source": "kafak"}, "one of files, generator"), ({}, "no source"), ({"source": "files"}, "no path")]
)
def test_a_source_says_what_it_is_and_where(spark: SparkSession, source: dict[str, str], text: str) -> None:
    with pytest.raises(SourceError, match=text):
        open_source(spark, stream(format="csv", **source), bounded=True)


def test_the_limits_of_a_micro_batch_are_one_and_a_number(spark: SparkSession, tmp_path: Path) -> None:
    written(tmp_path / "in" / "a.csv", GOOD_CSV)
    with pytest.raises(SourceError, match="limited in one way"):
        opened(spark, tmp_path / "in", bounded=False, format="csv", max_files_per_trigger=1, max_bytes_per_trigger=1)
    with pytest.raises(SourceError, match="whole number of 1 or more"):
        opened(spark, tmp_path / "in", bounded=False, format="csv", max_files_per_trigger="0")


# -- paths -------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("bounded", [True, False])
@pytest.mark.parametrize("format", ["csv", "json", "parquet"])
def test_a_path_that_is_not_there_is_refused(spark: SparkSession, tmp_path: Path, format: str, bounded: bool) -> None:
    for path in (tmp_path / "nowhere", tmp_path / "nowhere" / "*.txt"):
        with pytest.raises(SourceError, match=r"(?s)the path of a source exists.*nowhere.*way out"):
            opened(spark, path, format=format, bounded=bounded)


@pytest.mark.parametrize("format", ["csv", "json", "parquet"])
def test_a_directory_without_files_is_refused_only_where_no_more_can_come(spark: SparkSession, tmp_path: Path, format: str) -> None:
    (tmp_path / "in").mkdir()
    written(tmp_path / "in" / "_hidden", "Spark does not read this")
    with pytest.raises(SourceError, match="there are files to read"):
        opened(spark, tmp_path / "in", format=format)
    assert opened(spark, tmp_path / "in", format=format, bounded=False).isStreaming
    assert opened(spark, tmp_path / "in" / "*.later", format=format, bounded=False).isStreaming


def test_a_file_system_spark_does_not_have_is_refused_without_a_java_stack(spark: SparkSession) -> None:
    with pytest.raises(SourceError) as refused:
        opened(spark, "nosuch://bucket/in", format="parquet")
    assert 'No FileSystem for scheme "nosuch"' in str(refused.value)
    assert "\tat " not in str(refused.value)


def test_a_glob_names_files(spark: SparkSession, tmp_path: Path) -> None:
    for name in ("a.csv", "b.csv", "c.txt"):
        written(tmp_path / name, GOOD_CSV)
    assert opened(spark, tmp_path / "*.csv", format="csv").count() == 2


def test_a_stream_takes_files_that_come_later(spark: SparkSession, tmp_path: Path) -> None:
    written(tmp_path / "in" / "a.json", JSON.splitlines()[0])
    frame = opened(spark, tmp_path / "in", format="json", bounded=False, max_files_per_trigger=1)
    query = frame.writeStream.format("memory").queryName("growing").option("checkpointLocation", str(tmp_path / "checkpoint")).start()
    try:
        query.processAllAvailable()
        assert spark.table("growing").count() == 1
        written(tmp_path / "in" / "b.json", JSON.splitlines()[0])
        query.processAllAvailable()
        assert spark.table("growing").count() == 2
    finally:
        query.stop()


# -- Parquet -----------------------------------------------------------------------------------------------------------------------


def parquet(path: Path, **columns: Any) -> Path:
    pq.write_table(pa.table(columns), path)
    return path


def test_parquet_rows_are_the_declared_columns_in_their_order_and_none_is_corrupt(spark: SparkSession, tmp_path: Path) -> None:
    columns = Schema((Field("vol", schema.BIGINT), Field("TS", schema.TIMESTAMP)))
    frame = opened(spark, parquet(tmp_path / "in.parquet", extra=[1], **PARQUET), format="parquet", columns=columns)
    assert frame.columns == ["vol", "TS", CORRUPT]
    assert [(row.vol, row[CORRUPT]) for row in frame.collect()] == [(100, None)]


@pytest.mark.parametrize("bounded", [True, False])
@pytest.mark.parametrize(
    ("declared", "text"),
    [
        (Field("volume", schema.BIGINT), "volume is not; the files have ts timestamp, symbol string, price double, vol bigint"),
        (Field("vol", schema.INT), "vol is declared int and is bigint in the files\n  way out: declare vol BIGINT"),
        (Field("price", schema.STRING), "price is declared string and is double"),
        (Field("vol", schema.DOUBLE), "vol is declared double and is bigint"),
    ],
)
def test_a_parquet_column_that_is_missing_or_of_another_type_is_refused_at_the_start(
    spark: SparkSession, tmp_path: Path, declared: Field, text: str, bounded: bool
) -> None:
    (tmp_path / "in").mkdir()
    parquet(tmp_path / "in" / "a.parquet", **PARQUET)
    with pytest.raises(SourceError) as refused:
        opened(spark, tmp_path / "in", format="parquet", columns=Schema((TRADES.fields[0], declared)), bounded=bounded)
    assert text in str(refused.value)


def test_a_parquet_column_may_be_declared_wider_than_it_is(spark: SparkSession, tmp_path: Path) -> None:
    path = parquet(
        tmp_path / "in.parquet",
        ts=pa.array([NOON.replace(tzinfo=None)], pa.timestamp("us")),
        small=pa.array([1], pa.int32()),
        real=pa.array([1.5], pa.float32()),
        whole=pa.array([2], pa.int16()),
        exact=pa.array([3], pa.decimal128(5, 2)),
        day=pa.array([date(2004, 12, 1)]),
    )
    columns = Schema(
        (
            Field("ts", schema.TIMESTAMP),
            Field("small", schema.BIGINT),
            Field("real", schema.DOUBLE),
            Field("whole", schema.DOUBLE),
            Field("exact", schema.decimal(10, 3)),
            Field("day", schema.DATE),
        )
    )
    (row,) = opened(spark, path, format="parquet", columns=columns).collect()
    assert tuple(row)[1:] == (1, 1.5, 2.0, 3, date(2004, 12, 1), None)
    assert row.ts.replace(tzinfo=UTC) == NOON


def test_a_file_that_is_not_parquet_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(SourceError, match=r"(?s)read as parquet.*way out: correct the format"):
        opened(spark, written(tmp_path / "in.parquet", GOOD_CSV), format="parquet")


@pytest.mark.parametrize(
    ("field", "text"),
    [(Field("tags", schema.OTHER), "the columns of a source are scalars"), (Field("_Corrupt", schema.STRING), "Muntin's own column")],
)
def test_a_column_that_no_source_can_have_is_refused(spark: SparkSession, tmp_path: Path, field: Field, text: str) -> None:
    with pytest.raises(SourceError, match=text):
        opened(spark, written(tmp_path / "in.csv", GOOD_CSV), format="csv", columns=Schema((*TRADES.fields, field)))
