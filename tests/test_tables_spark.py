"""Static tables in Spark: joins equal to the reference, and versions that come, stay and go."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from muntin import reference
from muntin.aggregates import AGGREGATES
from muntin.errors import CheckpointError, Refusal, SourceError
from muntin.query.check import check_pipeline
from muntin.query.model import Query, TableDefinition
from muntin.spark.joining import joined
from muntin.spark.place import Place
from muntin.spark.tables import Tables, definition_of

START = datetime(2026, 1, 1, tzinfo=UTC)
STREAM = "ts TIMESTAMP, symbol STRING, price DOUBLE, vol BIGINT"
DECLARED = f"""CREATE STREAM trades ({STREAM}) WITH (time = 'ts');
CREATE TABLE close (symbol STRING, cp DOUBLE) WITH (path = 'close.csv', format = 'csv');
CREATE TABLE index (name STRING, symbol STRING, code INT) WITH (path = 'index.csv', format = 'csv')"""
TRADES = [
    (START + timedelta(minutes=at), symbol, price, vol)
    for at, (symbol, price, vol) in enumerate(
        [("a", 1.0, 1), ("b", 2.0, 10), ("a", 3.0, 100), (None, 4.0, 1000), ("c", float("nan"), 10), ("7", None, 0), ("a", -0.0, None)]
    )
]
CLOSE = [("a", 1.0), ("a", 2.0), ("a", 2.0), ("b", 3.0), (None, 4.0), ("d", float("nan")), ("e", 0.0)]
INDEX = [("X", "a", 1), ("B", "b", 10), ("B", None, 7), ("a", "d", None)]
TABLES: dict[str, tuple[list[tuple[Any, ...]], str]] = {
    "close": (CLOSE, "symbol STRING, cp DOUBLE"),
    "index": (INDEX, "name STRING, symbol STRING, code INT"),
}

SOURCES = [
    "close C WHERE T.symbol = C.symbol",
    "close C WHERE T.price = C.cp",
    "close C, index X WHERE T.symbol = C.symbol AND T.symbol = X.symbol",
    "index X, close C WHERE T.symbol = X.symbol AND X.name = upper(C.symbol)",
    "close C, index X WHERE T.symbol = X.name AND C.symbol = X.symbol",
    "close A, close B WHERE T.symbol = A.symbol AND A.cp = B.cp AND T.symbol = B.symbol",
    "index X WHERE T.symbol = X.code",
    "index X WHERE upper(T.symbol) = upper(X.symbol) AND T.vol = X.code",
    "index X WHERE 10 / (T.vol - 10) = X.code - 2",
    "close C JOIN index X ON X.symbol = C.symbol WHERE C.symbol = T.symbol AND C.cp < T.price",
]


def query_over(source: str) -> Query:
    window = "SELECT count(*) FROM trades T [RANGE 1 h SLIDE 1 h]"
    return check_pipeline(f"{DECLARED}; CREATE QUERY q AS {window}, {source}", AGGREGATES).queries[0]


def dictionaries(rows: Sequence[tuple[Any, ...]], columns: str) -> list[dict[str, Any]]:
    names = [column.split()[0] for column in columns.split(", ")]
    return [dict(zip(names, row, strict=True)) for row in rows]


def by_text(rows: Sequence[Mapping[str, Any]]) -> list[list[str]]:
    """Rows for comparison; their order does not matter."""
    return sorted(sorted(f"{name}={value!r}" for name, value in row.items() if name != "ts") for row in rows)


@pytest.mark.parametrize("source", SOURCES)
def test_a_join_in_spark_gives_the_rows_of_the_reference(spark: SparkSession, source: str) -> None:
    query = query_over(source)
    frames = {name: spark.createDataFrame(rows, columns) for name, (rows, columns) in TABLES.items()}
    ours = joined(spark.createDataFrame(TRADES, STREAM), query.joins, frames.__getitem__).collect()
    arrivals = [reference.Arrival(row) for row in dictionaries(TRADES, STREAM)]
    tables = {name: dictionaries(rows, columns) for name, (rows, columns) in TABLES.items()}
    theirs = [one.row for one in reference.joined(query, arrivals, tables)]
    assert by_text([row.asDict() for row in ours]) == by_text(theirs)
    assert theirs


def csv_table(file: Path, text: str, columns: str = "symbol STRING, cp DOUBLE", **options: str) -> TableDefinition:
    file.write_text(text)
    given = ", ".join(f"{name} = '{value}'" for name, value in {"path": str(file), "format": "csv", **options}.items())
    return check_pipeline(f"CREATE TABLE close ({columns}) WITH ({given})", AGGREGATES).tables[0]


def values(frame: DataFrame) -> list[tuple[Any, ...]]:
    return sorted(tuple(row) for row in frame.collect())


def later(path: Path) -> None:
    """Move the time of change on: a test writes faster than some clocks tick."""
    moment = path.stat().st_mtime_ns + 1_000_000
    os.utime(path, ns=(moment, moment))


@pytest.mark.parametrize("with_copies", [False, True], ids=["in memory", "with copies"])
def test_a_changed_file_is_a_new_version(spark: SparkSession, tmp_path: Path, with_copies: bool) -> None:
    definition = csv_table(tmp_path / "close.csv", "symbol,cp\na,1\n")
    tables = Tables(spark, {"close": definition}, Place.of(tmp_path / "copies") if with_copies else None)
    first = tables.versions(["close"])
    assert tables.versions(["close"]) == first
    assert values(tables.frame("close", first["close"])) == [("a", 1.0)]
    (tmp_path / "close.csv").write_text("symbol,cp\na,2\n")
    later(tmp_path / "close.csv")
    second = tables.versions(["close"])
    assert second != first
    assert values(tables.frame("close", second["close"])) == [("a", 2.0)]
    if with_copies:
        assert values(tables.frame("close", first["close"])) == [("a", 1.0)]
    else:
        with pytest.raises(Refusal, match="without a checkpoint a static table has its newest version only"):
            tables.frame("close", first["close"])
    tables.release()


def test_an_old_version_is_there_after_a_restart_and_until_it_is_forgotten(spark: SparkSession, tmp_path: Path) -> None:
    path, copies = tmp_path / "close.csv", tmp_path / "a [1]*" / "copies"
    definition = csv_table(path, "a,1\n")
    old = Tables(spark, {"close": definition}, Place.of(copies)).versions(["close"])
    path.write_text("b,2\nc,3\n")
    again = Tables(spark, {"close": definition}, Place.of(copies))
    new = again.versions(["close"])
    assert values(again.frame("close", old["close"])) == [("a", 1.0)]
    again.frame("close", new["close"])
    again.forget([old])
    assert values(again.frame("close", old["close"])) == [("a", 1.0)]
    again.frame("close", new["close"])
    again.forget([])
    assert [path.name for path in copies.iterdir()] == [f"close@{new['close']}"]
    with pytest.raises(CheckpointError, match=f"no copy of version {old['close']} of the table close"):
        again.frame("close", old["close"])
    assert values(again.frame("close", new["close"])) == [("b", 2.0), ("c", 3.0)]
    again.release()


def test_a_copy_that_was_not_finished_is_made_again(spark: SparkSession, tmp_path: Path) -> None:
    definition = csv_table(tmp_path / "close.csv", "a,1\n")
    tables = Tables(spark, {"close": definition}, Place.of(tmp_path / "copies"))
    version = tables.versions(["close"])["close"]
    copy = tmp_path / "copies" / f"close@{version}"
    copy.rename(copy.with_name(f".{copy.name}.aside"))
    assert values(tables.frame("close", tables.versions(["close"])["close"])) == [("a", 1.0)]


@pytest.mark.parametrize("file", ["part-*.parquet", "_muntin"])
@pytest.mark.parametrize("harm", [Path.unlink, lambda path: path.write_bytes(path.read_bytes()[:-1])], ids=["missing", "cut"])
def test_a_harmed_copy_is_refused(spark: SparkSession, tmp_path: Path, file: str, harm: Callable[[Path], object]) -> None:
    tables = Tables(spark, {"close": csv_table(tmp_path / "close.csv", "a,1\n")}, Place.of(tmp_path / "copies"))
    version = tables.versions(["close"])["close"]
    (harmed,) = (tmp_path / f"copies/close@{version}").glob(file)
    harm(harmed)
    with pytest.raises(CheckpointError, match=f"there and unharmed\n.*{harmed.name}"):
        tables.frame("close", version)


def test_a_table_with_the_same_files_and_another_declaration_is_another_version(spark: SparkSession, tmp_path: Path) -> None:
    one = csv_table(tmp_path / "close.csv", "a,1\n")
    other = csv_table(tmp_path / "close.csv", "a,1\n", "symbol STRING, cp STRING")
    os.utime(tmp_path / "close.csv", ns=(1, 1))
    versions = [Tables(spark, {"close": definition}, None).versions(["close"])["close"] for definition in (one, other)]
    assert versions[0] != versions[1]


def test_a_header_of_a_table_of_strings_is_no_row(spark: SparkSession, tmp_path: Path) -> None:
    definition = csv_table(tmp_path / "close.csv", "Symbol, Name\na,Name\n", "symbol STRING, name STRING")
    tables = Tables(spark, {"close": definition}, None)
    assert values(tables.frame("close", tables.versions(["close"])["close"])) == [("a", "Name")]
    tables.release()


def test_a_bad_record_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    definition = csv_table(tmp_path / "close.csv", "symbol,cp\na,1\nb,x\n")
    with pytest.raises(SourceError) as refusal:
        Tables(spark, {"close": definition}, None).versions(["close"])
    assert str(refusal.value) == (
        "table close: every record can be read as it is declared\n  found: 1 of 2 cannot, 'b,x' for one\n"
        "  way out: correct the file, or declare the columns as the file has them"
    )


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"path": "/nowhere/close.csv"}, "table close: the path of a source exists"),
        ({"max_files_per_trigger": "1"}, "table close: an option is one that the format csv has"),
        ({"format": "avro"}, "table close: format is one of parquet, csv, json"),
        ({"source": "kafka"}, "table close: source is one of files"),
    ],
)
def test_a_table_that_cannot_be_read_is_refused(spark: SparkSession, tmp_path: Path, options: dict[str, str], complaint: str) -> None:
    definition = csv_table(tmp_path / "close.csv", "a,1\n", **options)
    with pytest.raises(SourceError, match=complaint):
        Tables(spark, {"close": definition}, None).versions(["close"])


def test_json_and_parquet_are_tables_too(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text('{"symbol": "a", "cp": 1.5}\n{"symbol": null}\n')
    spark.createDataFrame([("a", 1.5), (None, None)], "symbol STRING, cp DOUBLE").write.parquet(str(tmp_path / "p"))
    declared = "CREATE TABLE j (symbol STRING, cp DOUBLE) WITH (path = '{0}/a.json', format = 'json');"
    declared += "CREATE TABLE p (symbol STRING, cp DOUBLE) WITH (path = '{0}/p', format = 'parquet')"
    definitions = {table.name: table for table in check_pipeline(declared.format(tmp_path), AGGREGATES).tables}
    tables = Tables(spark, definitions, Place.of(tmp_path / "copies"))
    versions = tables.versions(["j", "p"])
    for name, version in versions.items():
        assert {tuple(row) for row in tables.frame(name, version).collect()} == {("a", 1.5), (None, None)}
    tables.release()


@pytest.mark.parametrize("with_copies", [False, True], ids=["in memory", "with copies"])
def test_a_dataframe_of_the_users_is_a_table(spark: SparkSession, tmp_path: Path, with_copies: bool) -> None:
    frame = spark.createDataFrame([("a", 1.0, [1])], "symbol STRING, `c.p` DOUBLE, tags ARRAY<INT>")
    definitions = {"../x": definition_of("../X", frame)}
    tables = Tables(spark, definitions, Place.of(tmp_path / "copies") if with_copies else None)
    tables.add("../X", frame)
    first = tables.versions(["../x"])
    assert tables.frame("../x", first["../x"]).columns == ["symbol", "c.p"]
    assert values(tables.frame("../x", first["../x"])) == [("a", 1.0)]
    tables.add("../X", spark.createDataFrame([("b", 2.0, [1])], frame.schema))
    second = tables.versions(["../x"])
    assert second != first
    assert values(tables.frame("../x", second["../x"])) == [("b", 2.0)]
    if with_copies:
        assert values(tables.frame("../x", first["../x"])) == [("a", 1.0)]
    tables.release()


def test_a_streaming_dataframe_is_no_table(spark: SparkSession) -> None:
    with pytest.raises(Refusal, match="a table is static"):
        definition_of("t", spark.readStream.format("rate").load())


def test_files_that_changed_while_they_were_read_are_read_once_they_stay(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "close.csv"
    tables = Tables(spark, {"close": csv_table(path, "a,1\n")}, Place.of(tmp_path / "copies"))
    before = tables.versions(["close"])
    path.write_text("a,20\n")
    with monkeypatch.context() as changing:
        changing.setattr(Tables, "_read", lambda *_: False)
        assert tables.versions(["close"]) == before
        assert "stay as they are while they are read" in str(tables.troubles["close"])
    after = tables.versions(["close"])
    assert values(tables.frame("close", after["close"])) == [("a", 20.0)]
    assert not tables.troubles
    tables.release()
