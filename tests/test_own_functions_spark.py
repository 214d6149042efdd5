"""Users' own functions in Spark: the values and failures of Python, row by row."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from muntin.errors import DataError, Refusal
from muntin.expression import functions
from muntin.expression.tree import Column, Expression, Literal
from muntin.query.model import Join
from muntin.query.own_functions import python_function, spark_function
from muntin.reference import value
from muntin.schema import BIGINT, BOOLEAN, DATE, DOUBLE, INT, STRING, TIMESTAMP, TIMESTAMP_NTZ, Type, decimal
from muntin.spark.columns import compile_column
from muntin.spark.joining import joined
from muntin.spark.own_columns import check_spark_function
from muntin.spark.rows import resolve

MONEY = decimal(10, 2)
TYPES = {"n": BIGINT, "x": DOUBLE, "s": STRING, "m": MONEY, "t": TIMESTAMP, "z": TIMESTAMP_NTZ, "d": DATE, "b": BOOLEAN}
COLUMNS = {name: Column(name, type_) for name, type_ in TYPES.items()}
SCHEMA = ", ".join(f"{name} {type_}" for name, type_ in TYPES.items())
ROWS: list[tuple[Any, ...]] = [
    (1, 2.0, "a", Decimal("1.10"), datetime(2026, 1, 1, 12, tzinfo=UTC), datetime(2026, 1, 1), date(2026, 1, 1), True),
    (0, 0.0, "", Decimal("0.00"), datetime(1900, 1, 1, tzinfo=UTC), datetime(1, 1, 2), date(1, 1, 1), False),
    (-(2**63), float("nan"), "ü", Decimal("-9.99"), datetime(9999, 12, 31, tzinfo=UTC), None, None, None),
    (None, None, None, None, None, None, None, None),
    (2**62, float("inf"), "b", None, None, datetime(2026, 7, 1, 1, 2, 3, 4), date(2026, 1, 1), True),
]


# Lambdas, since a function of a test's module goes to a worker by name, and the worker does not know the module.
REPEATED = python_function("repeated", lambda s, n: None if n == 0 else s * min(n, 9), args="STRING, BIGINT", returns="STRING")
NEXT_DAY = python_function("next_day", lambda t: t.replace(day=t.day + 1), args="TIMESTAMP", returns="TIMESTAMP")
HALVED = spark_function("halved", lambda x: F.try_divide(x, F.lit(2.0)), args="DOUBLE", returns="DOUBLE", python=lambda x: x / 2)
OWN: list[Expression] = [
    functions.own_call(python_function("odd", lambda n: n % 2 == 1, args="BIGINT", returns="BOOLEAN"), COLUMNS["n"]),
    functions.own_call(python_function("doubled", lambda n: n * 2, args="BIGINT", returns="BIGINT"), COLUMNS["n"]),
    functions.own_call(python_function("inverse", lambda x: 1 / x, args="DOUBLE", returns="DOUBLE"), COLUMNS["x"]),
    functions.own_call(python_function("single", lambda x: x, args="DOUBLE", returns="FLOAT"), COLUMNS["x"]),
    functions.own_call(REPEATED, COLUMNS["s"], COLUMNS["n"]),
    functions.own_call(python_function("cents", lambda m: m / 3, args="DECIMAL(10,2)", returns="DECIMAL(5,3)"), COLUMNS["m"]),
    functions.own_call(NEXT_DAY, COLUMNS["t"]),
    functions.own_call(python_function("same", lambda z: z, args="TIMESTAMP_NTZ", returns="TIMESTAMP_NTZ"), COLUMNS["z"]),
    functions.own_call(python_function("z_day", lambda z: z.date(), args="TIMESTAMP_NTZ", returns="DATE"), COLUMNS["z"]),
    functions.own_call(python_function("day2", lambda d: d.day, args="DATE", returns="TINYINT"), COLUMNS["d"]),
    functions.own_call(python_function("wrong", lambda b: "x" if b else b, args="BOOLEAN", returns="BOOLEAN"), COLUMNS["b"]),
    functions.own_call(HALVED, COLUMNS["x"]),
    functions.own_call(HALVED, functions.call("/", COLUMNS["x"], COLUMNS["n"])),
    functions.own_call(
        python_function("g", lambda x, y: x > y, args="DOUBLE, DOUBLE", returns="BOOLEAN"),
        functions.call("coalesce", functions.call("/", COLUMNS["x"], COLUMNS["n"]), Literal(1, INT)),
        COLUMNS["x"],
    ),
]
GUARDED = functions.call("and", functions.call("<>", COLUMNS["x"], Literal(0, INT)), functions.call(">", OWN[2], Literal(0, INT)))


def in_python(expression: Expression, row: tuple[Any, ...]) -> tuple[Any, bool]:
    try:
        return value(expression, dict(zip(TYPES, row, strict=True))), False
    except DataError:
        return None, True


def comparable(found: Any) -> str:
    return repr(found.replace(tzinfo=None)) if isinstance(found, datetime) else repr(found)


@pytest.mark.parametrize("expression", [*OWN, GUARDED], ids=str)
def test_values_and_failures_in_spark_are_those_of_python(spark: SparkSession, expression: Expression) -> None:
    rows = [(*row[:4], row[4], *row[5:]) for row in ROWS]
    frame = spark.createDataFrame([(at, *row) for at, row in enumerate(rows)], f"at INT, {SCHEMA}")
    compiled = compile_column(expression, resolve)
    failed = F.lit(False) if compiled.failed is None else compiled.failed
    table = frame.select("at", compiled.value.alias("value"), failed.alias("failed")).orderBy("at").toArrow()
    ours = list(zip(map(comparable, table["value"].to_pylist()), table["failed"].to_pylist(), strict=True))
    theirs = [in_python(expression, row) for row in ROWS]
    assert ours == [(comparable(found), fails) for found, fails in theirs]


@pytest.mark.parametrize(
    "body",
    [
        lambda n: "\ud800" if n else "x",
        lambda n: sys.exit(3) if n else "x",
        lambda n: signal.default_int_handler(2, None) if n else "x",  # raises KeyboardInterrupt
    ],
)
def test_what_a_function_raises_or_returns_fails_on_its_row_and_no_batch(spark: SparkSession, body: Callable[[int], str]) -> None:
    compiled = compile_column(functions.own_call(python_function("f", body, args="BIGINT", returns="STRING"), COLUMNS["n"]), resolve)
    frame = spark.createDataFrame([(0,), (1,), (None,)], "n BIGINT").coalesce(1)
    assert compiled.failed is not None
    assert [tuple(row) for row in frame.select(compiled.value, compiled.failed).collect()] == [("x", False), (None, True), (None, False)]


@pytest.mark.parametrize("type_", [DATE, TIMESTAMP, TIMESTAMP_NTZ], ids=str)
def test_a_function_fails_on_a_time_that_python_has_not(spark: SparkSession, type_: Type) -> None:
    year = python_function("year_of", lambda t: t.year, args=str(type_), returns="INT")
    compiled = compile_column(functions.own_call(year, Column("t", type_)), resolve)
    assert compiled.failed is not None
    days = [2_932_896, 2_932_897, 100_000_000, None]
    frame = spark.createDataFrame([(day,) for day in days], "day INT").coalesce(1)
    frame = frame.select(F.date_from_unix_date("day").cast(str(type_)).alias("t"))
    found = [tuple(row) for row in frame.select(compiled.value, compiled.failed).collect()]
    assert found == [(9999, False), (None, True), (None, True), (None, False)]


def test_an_own_function_may_filter_group_and_be_aggregated(spark: SparkSession) -> None:
    frame = spark.range(1000).select(F.col("id").alias("n"))
    called = compile_column(OWN[0], resolve)
    assert called.failed is not None
    found = (
        frame.where(called.value).groupBy(called.value.alias("k")).agg(F.sum(F.when(called.value, F.col("n"))), F.count_if(called.failed))
    )
    assert [tuple(row) for row in found.collect()] == [(True, 250000, 0)]


def test_an_own_function_may_be_one_side_of_a_join(spark: SparkSession) -> None:
    frame = spark.range(10).select(F.col("id").alias("n"))
    table = spark.createDataFrame([(True, "odd"), (False, "even"), (None, "none")], "b BOOLEAN, s STRING")
    found = joined(frame, [Join("t", "t", ((OWN[0], Column("t.b", BOOLEAN)),))], lambda _: table)
    assert {(row["n"], row["t.s"]) for row in found.collect()} == {(n, "odd" if n % 2 else "even") for n in range(10)}


def test_a_spark_function_is_null_where_an_argument_is(spark: SparkSession) -> None:
    always = spark_function("always", lambda _: F.lit(True), args="DOUBLE", returns="BOOLEAN")
    frame = spark.createDataFrame([(1.0,), (None,)], "x DOUBLE")
    compiled = compile_column(functions.own_call(always, COLUMNS["x"]), resolve)
    assert [row[0] for row in frame.select(compiled.value).collect()] == [True, None]
    assert compiled.failed is None


def test_a_spark_function_that_is_not_what_it_declares_is_refused(spark: SparkSession) -> None:
    check_spark_function(spark, HALVED)
    with pytest.raises(Refusal) as refusal:
        check_spark_function(spark, spark_function("f", F.length, args="STRING", returns="BIGINT"))
    assert str(refusal.value) == (
        "f builds a Column of the type it declares\n  found: declared BIGINT, and the Column is INT\n"
        "  way out: declare returns='INT', or cast the Column"
    )
    with pytest.raises(Refusal, match="f builds a Column of the columns it is given"):
        check_spark_function(spark, spark_function("f", lambda a: F.col("elsewhere"), args="STRING", returns="STRING"))
