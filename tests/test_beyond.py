"""Times outside the years 1 to 9999, which Spark has and Python has not: compared they are right, computed with they stop one query."""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import muntin
from muntin.columnar import arrow_type
from muntin.errors import DataError
from muntin.expression.beyond import Beyond, array_of, values_of
from muntin.expression.evaluate import Scope, evaluate
from muntin.expression.functions import call, cast
from muntin.expression.tree import Column, Expression, Literal
from muntin.schema import DATE, STRING, TIMESTAMP, TIMESTAMP_NTZ, Type
from muntin.timeline import DAY, SECOND

LAST, AFTER = 253_402_300_799_999_999, 253_402_300_800_000_000
FIRST, BEFORE = -62_135_596_800_000_000, -62_135_596_800_000_001
T = Column("t", TIMESTAMP)
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("type_", "ticks", "beyond"),
    [
        (TIMESTAMP, [FIRST, 0, LAST, None], []),
        (TIMESTAMP, [BEFORE, FIRST, 0, LAST, AFTER, -(2**63), 2**63 - 1, None], [0, 4, 5, 6]),
        (TIMESTAMP_NTZ, [BEFORE, FIRST, LAST, AFTER, None], [0, 3]),
        (DATE, [BEFORE // DAY, FIRST // DAY, LAST // DAY, AFTER // DAY, -(2**31), 2**31 - 1, None], [0, 3, 4, 5]),
    ],
)
def test_every_time_of_spark_has_a_value_and_comes_back(type_: Type, ticks: list[int], beyond: list[int]) -> None:
    whole = pa.int32() if type_ == DATE else pa.int64()
    array = pa.array(ticks, whole).cast(arrow_type(type_))
    values = values_of(array)
    assert [at for at, value in enumerate(values) if isinstance(value, Beyond)] == beyond
    assert array_of(values, type_).equals(array)


@pytest.mark.parametrize("known", [datetime(1, 1, 1, tzinfo=UTC), NOON, datetime.max.replace(tzinfo=UTC), date.min, date.max])
def test_a_time_beyond_is_before_or_after_every_other(known: Any) -> None:
    before, after = Beyond(BEFORE), Beyond(AFTER)
    assert before < known < after
    assert after > known > before
    assert before <= known <= after
    assert before != known
    assert (known == after) is False
    assert Beyond(AFTER) == after < Beyond(AFTER + 1)


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        (call(">", T, Literal(NOON, TIMESTAMP)), True),
        (call("<=", T, Literal(NOON, TIMESTAMP)), False),
        (call("is_not_null", T), True),
        (call("<=>", T, Literal(None, TIMESTAMP)), False),
        (call("in", T, Literal(NOON, TIMESTAMP), T), True),
        (call("greatest", Literal(NOON, TIMESTAMP), T), Beyond(AFTER)),
        (call("coalesce", T, Literal(NOON, TIMESTAMP)), Beyond(AFTER)),
        (call("unix_micros", T), AFTER),
        (call("unix_seconds", T), AFTER // SECOND),
        (call("case", call("<", T, Literal(NOON, TIMESTAMP)), call("year", T)), None),
    ],
    ids=str,
)
def test_what_needs_no_field_of_a_time_is_right_beyond_the_years(expression: Expression, value: object) -> None:
    assert evaluate(expression, Scope(columns={"t": Beyond(AFTER)})) == value


@pytest.mark.parametrize("expression", [call("year", T), call("hour", T), cast(T, STRING), cast(T, DATE)], ids=str)
def test_what_needs_a_field_of_a_time_says_which_it_was_given(expression: Expression) -> None:
    with pytest.raises(DataError) as error:
        evaluate(expression, Scope(columns={"t": Beyond(AFTER)}))
    assert str(error.value) == (
        "a function is given times of the years 1 to 9999\n  found: t = +10000-01-01T00:00:00.000000Z\n"
        "  way out: leave such rows out (WHERE), or test the time first: CASE, FILTER"
    )


def test_one_row_beyond_the_years_stops_no_query_but_those_that_compute_with_it(spark: SparkSession) -> None:
    start = F.timestamp_seconds(F.lit(1_767_225_600) + F.col("id"))
    far = F.col("id") == 2
    frame = spark.range(4).select(
        start.alias("ts"),
        F.when(far, F.timestamp_seconds(F.lit(1_767_225_600_000))).otherwise(start).alias("t"),
        F.when(far, F.date_from_unix_date(F.lit(2**31 - 1))).otherwise(F.date_from_unix_date(F.lit(0))).alias("d"),
    )
    window = "FROM s [RANGE 1 minute SLIDE 1 minute]"
    right = {
        f"SELECT max(t) > TIMESTAMP '2030-01-01' AS v {window}": [True],
        f"SELECT unix_seconds(max(t)) AS v {window}": [1_767_225_600_000],
        f"SELECT count(*) + 1 AS v, max(t) AS t, max(d) AS d {window}": [5],
        f"SELECT count(*) AS v {window} HAVING max(t) IS NOT NULL AND max(d) > DATE '2030-01-01'": [4],
        f"SELECT count(*) AS v, t {window} GROUP BY t HAVING t > TIMESTAMP '2030-01-01'": [1],
        f"SELECT count(*) AS v, d {window} GROUP BY d HAVING d IS NOT NULL": [3, 1],
    }
    wrong = [f"SELECT year(max(t)) AS v {window}", f"SELECT d, CAST(d AS STRING) AS v {window} GROUP BY d"]
    engine = muntin.Engine(spark)
    engine.stream("s", frame, time="ts")
    for at, text in enumerate([*right, *wrong]):
        engine.add(text, name=f"q{at}")
    results = engine.run()
    assert list(results.stopped) == [f"q{len(right) + at}" for at in range(len(wrong))]
    assert [results[f"q{at}"]["v"].to_pylist() for at in range(len(right))] == list(right.values())
    assert "max(t) = +57971-02-25T00:00:00.000000Z" in results.stopped[f"q{len(right)}"]
    assert results["q2"]["t"].cast(pa.int64()).to_pylist() == [1_767_225_600_000 * SECOND]
