"""Expressions as Columns: where they fail, what cannot fail, exact literals, names, and where we differ from Spark on purpose."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as spark_types

from muntin.errors import DataError, Refusal
from muntin.expression.evaluate import Scope, evaluate
from muntin.expression.functions import call, cast
from muntin.expression.tree import AggregateCall, Column, Expression, Literal
from muntin.schema import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    NULL,
    OTHER,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    TINYINT,
    Type,
    decimal,
)
from muntin.spark.columns import compile_column, literal_column, spark_type, type_of_spark

MAX = 2**63 - 1
A, B = Column("a", BIGINT), Column("b", BIGINT)


def integer(value: int) -> Literal:
    return Literal(value, INT)


def on_rows(spark: SparkSession, expression: Expression, types: dict[str, Type], *rows: tuple[Any, ...]) -> list[Any]:
    """The value on each row, or "failed": from Spark, after checking that Python says the same."""
    compiled = compile_column(expression, lambda name: F.col(f"`{name}`"))
    schema = spark_types.StructType([spark_types.StructField(name, spark_type(type_)) for name, type_ in types.items()])
    frame = spark.createDataFrame(list(rows), schema).coalesce(1)
    failed = F.lit(False) if compiled.failed is None else compiled.failed
    table = frame.select(compiled.value.alias("value"), failed.alias("failed")).toArrow()
    found = ["failed" if row["failed"] else row["value"] for row in table.to_pylist()]
    assert [row["value"] for row in table.to_pylist() if row["failed"] is not False] == [None] * found.count("failed")
    assert list(map(str, found)) == [str(in_python(expression, dict(zip(types, row, strict=True)))) for row in rows]
    return found


def in_python(expression: Expression, row: dict[str, Any]) -> Any:
    try:
        return evaluate(expression, Scope(columns=row))
    except DataError:
        return "failed"


def test_an_overflowing_sum_fails_only_where_it_overflows(spark: SparkSession) -> None:
    rows = [(MAX - 2, 1), (MAX - 1, 1), (MAX, 1), (None, 1), (MAX, None)]
    assert on_rows(spark, call("+", A, B), {"a": BIGINT, "b": BIGINT}, *rows) == [MAX - 1, MAX, "failed", None, None]


def test_a_division_by_zero_fails_unless_an_operand_is_null(spark: SparkSession) -> None:
    rows = [(1, 1), (1, 0), (1, -1), (None, 0), (1, None)]
    assert on_rows(spark, call("/", A, B), {"a": BIGINT, "b": BIGINT}, *rows) == [1.0, "failed", -1.0, None, None]


def test_what_and_and_case_do_not_reach_does_not_fail(spark: SparkSession) -> None:
    ratio = call(">", call("/", A, B), integer(1))
    guarded = call("and", call("<>", B, integer(0)), ratio)
    rows = [(4, 2), (4, 0), (4, None), (None, 0)]
    assert on_rows(spark, guarded, {"a": BIGINT, "b": BIGINT}, *rows) == [True, False, None, False]
    chosen = call("case", call("=", B, integer(0)), Literal(None, NULL), call("/", A, B))
    assert on_rows(spark, chosen, {"a": BIGINT, "b": BIGINT}, *rows) == [2.0, None, None, None]


def test_a_failed_condition_is_not_taken_for_false(spark: SparkSession) -> None:
    ratio = call(">", call("/", A, B), integer(1))
    for expression in (call("or", ratio, call("is_null", A)), call("if", ratio, A, B), call("coalesce", call("/", A, B), B)):
        assert on_rows(spark, expression, {"a": BIGINT, "b": BIGINT}, (1, 0), (1, 0)) == ["failed", "failed"]


def test_an_item_of_a_list_behind_a_match_is_not_reached(spark: SparkSession) -> None:
    listed = call("in", A, B, call("+", A, Literal(1, BIGINT)))
    rows = [(MAX, MAX), (MAX, 0), (None, 0), (1, 2)]
    assert on_rows(spark, listed, {"a": BIGINT, "b": BIGINT}, *rows) == [True, "failed", None, False]


def test_expressions_that_cannot_fail_have_no_failed_column(spark: SparkSession) -> None:
    x, m = Column("x", DOUBLE), Column("m", decimal(10, 2))
    safe = [
        call("*", x, A), call("/", x, integer(2)), call("%", A, integer(60)), call("<", A, x), call("+", m, m), call("*", m, m),
        cast(A, DOUBLE), cast(A, decimal(19, 0)), cast(A, STRING), call("date_trunc", Literal("hour", STRING), Column("t", TIMESTAMP)),
        call("round", m, integer(1)), call("in", A, integer(1), integer(2)), call("coalesce", x, m),
    ]  # fmt: skip
    frame = spark.createDataFrame([], "a bigint, x double, m decimal(10,2), t timestamp")
    compiled = [compile_column(expression, F.col) for expression in safe]
    assert [one.failed for one in compiled] == [None] * len(safe)
    assert [type_of_spark(field.dataType) for field in frame.select(*(one.value for one in compiled)).schema] == [one.type for one in safe]


@pytest.mark.parametrize(("type_", "too_low", "too_high"), [(TINYINT, -129, 128), (INT, -(2**31) - 1, 2**31), (decimal(3, 0), -1000, 1000)])
def test_a_cast_to_a_narrower_type_fails_just_outside_it(spark: SparkSession, type_: Type, too_low: int, too_high: int) -> None:
    rows = [(too_low,), (too_low + 1,), (too_high - 1,), (too_high,)]
    found = on_rows(spark, cast(A, type_), {"a": BIGINT}, *rows)
    assert found == ["failed", too_low + 1, too_high - 1, "failed"]


def test_rounding_to_tens_fails_just_where_the_ten_above_does_not_fit(spark: SparkSession) -> None:
    t = Column("t", TINYINT)
    found = on_rows(spark, call("round", t, integer(-1)), {"t": TINYINT}, (124,), (125,), (127,), (-124,), (-125,), (-128,))
    assert found == [120, "failed", "failed", -120, "failed", "failed"]


def test_the_floor_of_a_double_fails_outside_bigint_and_is_zero_for_nan(spark: SparkSession) -> None:
    x = Column("x", DOUBLE)
    below = math.nextafter(2.0**63, 0)
    found = on_rows(spark, call("floor", x), {"x": DOUBLE}, (below,), (2.0**63,), (-(2.0**63),), (-math.inf,), (math.nan,), (-0.5,))
    assert found == [int(below), "failed", -(2**63), "failed", 0, -1]


def test_negation_of_wide_decimals_is_exact_where_spark_rounds(spark: SparkSession) -> None:
    digits = Decimal("12345678901234567890.123456789012345678")
    w = Column("w", decimal(38, 18))
    for function, expected in (("negative", [digits.copy_negate(), digits]), ("abs", [digits, digits])):
        assert on_rows(spark, call(function, w), {"w": decimal(38, 18)}, (digits,), (digits.copy_negate(),)) == expected
    assert spark.createDataFrame([(digits,)], "w decimal(38,18)").selectExpr("-w").first() != (digits.copy_negate(),)


def test_a_remainder_that_spark_would_abort_the_job_for_is_refused() -> None:
    with pytest.raises(Refusal, match="% takes decimals whose whole quotient has 39 digits at most"):
        call("%", Column("z", decimal(38, 0)), Column("y", decimal(38, 38)))


def test_times_are_read_by_one_grammar_and_what_depends_on_the_clock_or_zone_tables_fails(spark: SparkSession) -> None:
    readable = {
        "2026": "2026-01-01 00:00:00", "2026-2": "2026-02-01 00:00:00", " 2026-02-28\n": "2026-02-28 00:00:00",
        "2026-02-28 1:2": "2026-02-28 01:02:00", "2026-02-28T01:02:03.": "2026-02-28 01:02:03",
        "2026-02-28 01:02:03.1234567": "2026-02-28 01:02:03.123456", "2026-02-28 01:02:03Z": "2026-02-28 01:02:03",
        "2026-02-28 01:02:03 +01:30": "2026-02-27 23:32:03", "2026-02-28 01:02:03-8": "2026-02-28 09:02:03",
        "2026-02-28 01:02:03+0100": "2026-02-28 00:02:03", "0001-01-01": "0001-01-01 00:00:00",
    }  # fmt: skip
    refused = [
        "", "12:00", "T12:00", "2026-02-30", "2026-13-01", "202-01-01", "0000-01-01", "10000-01-01", "-2026-01-01", "2026-02-28 24:00",
        "2026-02-28 01:02Z", "2026-02-28 01:02:03 Europe/Paris", "2026-02-28 01:02:03+19:00", "2026-02-28 01:02:03+01:60",
        "0001-01-01 00:00:00+01:00", "9999-12-31 23:59:59-00:01", "2026-02-28\n01:02:03", "20260228", "now", "2026-02-28 01:02:03\nx",
    ]  # fmt: skip
    text = cast(cast(Column("s", STRING), TIMESTAMP), STRING)
    found = on_rows(spark, text, {"s": STRING}, *((written,) for written in [*readable, *refused]))
    assert found == [*readable.values(), *["failed"] * len(refused)]
    days = {"2026-02-28": "2026-02-28", "2026-02-28 whatever": "2026-02-28", "2026-02-28x": "failed", "0000-01-01": "failed"}
    as_day = cast(cast(Column("s", STRING), DATE), STRING)
    assert on_rows(spark, as_day, {"s": STRING}, *((written,) for written in days)) == list(days.values())


@pytest.mark.parametrize("type_", [BOOLEAN, TINYINT, BIGINT, FLOAT, DOUBLE, decimal(5, 1), decimal(38, 2)])
def test_texts_read_as_numbers_in_python_as_in_java(spark: SparkSession, type_: Type) -> None:
    texts = [
        "1", "+5", "-5", "5.", ".5", "1e2", "1E+3", "1e", "e1", "1_0", "", "  ", "٣", "\t7\n", "\x005\x01", "5\x7f", "\u00a05",
        "--1", "+", "1 2",
        "0x1F", "0x1p3", "1d", "1F", "1.5e3d", "inf", " Inf ", "+Infinity", "-infinity", "nan", "-nan", "-NaN", "1e400", "1e-400", "1e38",
        "-0",
        "128", "9223372036854775808", "-9223372036854775808", "1" * 39, "0e30", "0e40", "0.05", "9999.95", "16777217", "0.1", "1e-45",
        "true", "T", " yes ", "No", "off",
    ]  # fmt: skip
    found = on_rows(spark, cast(Column("s", STRING), type_), {"s": STRING}, *((text,) for text in texts))
    assert "failed" in found
    assert len(set(map(str, found))) > 2


def test_seconds_become_timestamps_in_the_years_1_to_9999_only(spark: SparkSession) -> None:
    first, last = -62_135_596_800, 253_402_300_799
    text = cast(cast(A, TIMESTAMP), STRING)
    found = on_rows(spark, text, {"a": BIGINT}, (first - 1,), (first,), (0,), (last,), (last + 1,), (MAX,))
    assert found == ["failed", "0001-01-01 00:00:00", "1970-01-01 00:00:00", "9999-12-31 23:59:59", "failed", "failed"]
    wide = cast(cast(Column("z", decimal(38, 0)), TIMESTAMP), STRING)
    assert on_rows(spark, wide, {"z": decimal(38, 0)}, (Decimal("9" * 38),), (Decimal(1),)) == ["failed", "1970-01-01 00:00:01"]


@pytest.mark.parametrize("name", ["exp", "ln", "log10", "sqrt", "pow"])
def test_functions_of_doubles_are_javas_but_for_the_last_bit(spark: SparkSession, name: str) -> None:
    points = [math.nan, math.inf, -math.inf, -2.0, -1.0, -0.0, 0.0, 0.5, 1.0, 2.0, 3.0, 710.0, 1e300]
    args = [Column("x", DOUBLE), Column("y", DOUBLE)][: 2 if name == "pow" else 1]
    rows = [(x, y) for x in points for y in points] if name == "pow" else [(x, x) for x in points]
    expression = call(name, *args)
    frame = spark.createDataFrame(rows, "x double, y double").coalesce(1)
    found = frame.select(compile_column(expression, F.col).value.alias("v")).toArrow().column("v").to_pylist()
    for (x, y), java in zip(rows, found, strict=True):
        ours: Any = evaluate(expression, Scope(columns={"x": x, "y": y}))
        assert (ours is None) == (java is None), (x, y, ours, java)
        assert java is None or repr(ours) == repr(java) or math.isclose(ours, java, rel_tol=4e-16), (x, y, ours, java)


def test_a_long_list_still_finds_nan_and_negative_zero(spark: SparkSession) -> None:
    items = [Literal(float(n), DOUBLE) for n in range(12)] + [Literal(math.nan, DOUBLE)]
    listed = call("in", Column("x", DOUBLE), *items)
    assert on_rows(spark, listed, {"x": DOUBLE}, (-0.0,), (math.nan,), (11.0,), (12.0,), (None,)) == [True, True, True, False, None]


def test_literals_are_exact_and_of_exactly_their_type(spark: SparkSession) -> None:
    literals = [
        Literal(Decimal("9" * 38), decimal(38, 0)), Literal(Decimal("0." + "1" * 38), decimal(38, 38)), Literal(Decimal(2), decimal(7, 3)),
        Literal(datetime(1, 1, 1, 0, 0, 0, 1, tzinfo=UTC), TIMESTAMP),
        Literal(datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=UTC), TIMESTAMP),
        Literal(datetime(1500, 2, 28, 1, 2, 3, tzinfo=UTC), TIMESTAMP_NTZ), Literal(date(1, 1, 1), DATE), Literal(date(9999, 12, 31), DATE),
        Literal(2**63 - 1, BIGINT), Literal(-(2**63), BIGINT), Literal(5, TINYINT), Literal(5e-324, DOUBLE),
        Literal(0.10000000149011612, FLOAT),
        Literal("a'b\\c\"`%\x00é😀", STRING), Literal(True, BOOLEAN), Literal(None, NULL), Literal(None, decimal(5, 2)),
    ]  # fmt: skip
    selected = spark.range(1).select(*(literal_column(literal).alias(f"c{n}") for n, literal in enumerate(literals)))
    assert [type_of_spark(field.dataType) for field in selected.schema] == [literal.type for literal in literals]
    found = list(selected.toArrow().to_pylist()[0].values())
    aware = [value.replace(tzinfo=UTC) if isinstance(value, datetime) else value for value in found]
    assert aware == [literal.value for literal in literals]


def test_names_with_dots_and_backticks_go_through_resolve(spark: SparkSession) -> None:
    frame = spark.createDataFrame([(1,)], "`a.b``c` bigint")
    value = compile_column(call("+", Column("a.b`c", BIGINT), A), lambda name: frame["`a.b``c`"] if name == "a.b`c" else F.lit(1)).value
    assert frame.select(value).first() == (2,)


def test_long_chains_of_fallible_parts_stay_small_enough_to_run(spark: SparkSession) -> None:
    total: Expression = A
    for _ in range(40):
        total = call("+", total, B)
    rows = [(MAX - 80, 2), (MAX - 79, 2), (MAX - 78, None), (None, 2)]
    assert on_rows(spark, total, {"a": BIGINT, "b": BIGINT}, *rows) == [MAX, "failed", None, None]
    condition = call(">", call("/", A, B), integer(1))
    for n in range(24):
        condition = call("and", condition, call(">", call("/", call("+", A, Literal(n, BIGINT)), B), integer(1)))
    found = on_rows(spark, condition, {"a": BIGINT, "b": BIGINT}, (4, 2), (4, 0), (4, None), (MAX, 1))
    assert found == [True, "failed", None, "failed"]


def test_constants_are_not_gathered_across_an_overflow(spark: SparkSession) -> None:
    i, j, low = Column("i", INT), Column("j", INT), -(2**31)
    types = {"i": INT, "j": INT}
    total = call("+", call("+", i, integer(2**31 - 1)), integer(1))
    assert on_rows(spark, total, types, (-5, 0), (-1, 0), (0, 0)) == [2**31 - 5, 2**31 - 1, "failed"]
    both = call("+", call("+", i, integer(1)), call("+", j, integer(2)))
    assert on_rows(spark, both, types, (low, -1), (low, -3), (low, -4)) == [low + 2, low, "failed"]
    product = call("*", call("*", i, integer(2**16)), integer(2**16))
    assert on_rows(spark, product, types, (0, 0), (1, 0)) == [0, "failed"]


def test_spark_types_and_ours_correspond() -> None:
    for type_ in (BOOLEAN, TINYINT, INT, BIGINT, FLOAT, DOUBLE, decimal(12, 3), STRING, DATE, TIMESTAMP, TIMESTAMP_NTZ, NULL):
        assert type_of_spark(spark_type(type_)) == type_
    others = [spark_types.ArrayType(spark_types.LongType()), spark_types.BinaryType(), spark_types.StringType("UTF8_LCASE")]
    assert [type_of_spark(other) for other in others] == [OTHER] * 3


def test_an_aggregate_has_no_column() -> None:
    with pytest.raises(Refusal, match="an expression over rows stands on columns only"):
        compile_column(AggregateCall("count", (), BIGINT), F.col)


@pytest.mark.parametrize("connective", ["and", "or"])
def test_five_hundred_conditions_are_as_shallow_as_a_few(spark: SparkSession, connective: str) -> None:
    """A chain of 400 overflows Spark's stack. What fails behind a condition that has decided does not count."""
    conditions: list[Expression] = [call("<>" if connective == "and" else "=", A, Literal(at, BIGINT)) for at in range(1, 512)]
    conditions.append(call(">", call("/", Literal(1, BIGINT), A), integer(5)))
    while len(conditions) > 1:
        conditions = [call(connective, *conditions[at : at + 2]) for at in range(0, len(conditions), 2)]
    decided = connective == "or"
    assert on_rows(spark, conditions[0], {"a": BIGINT}, (7,), (0,), (None,), (5000,)) == [decided, "failed", None, False]
