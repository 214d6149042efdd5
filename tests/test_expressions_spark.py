"""Spark is the judge of expressions: types, values and failures, on random expressions and on the cases that are easy to get wrong.

Each random example is eighty expressions, all columns of one select, so that a Spark job pays for many of them: ours
(`compile_column`), where ours failed, and the same as SQL text under ANSI mode. The judge's errors are caught by `try_to_binary`,
the one `try_` function that also catches what its argument raises.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from random import Random
from typing import Any

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructField, StructType

from muntin.errors import DataError
from muntin.expression.evaluate import Scope, compiled
from muntin.expression.tree import Expression
from muntin.schema import TIMESTAMP_NTZ, Type
from muntin.spark.columns import Compiled, compile_column, spark_type, type_of_spark
from random_expressions import COLUMNS, LEAVES, LITERALS, TARGETS, Sample, built, cast_sample, random_sample, rows

#: Optimizer rules that decide a condition without evaluating it, and so hide an error that evaluating it raises.
HIDING = ("BooleanSimplification", "NullPropagation", "SimplifyConditionals", "ConstantFolding", "SimplifyBinaryComparison", "OptimizeIn",
          "PushFoldableIntoBranches", "ReorderAssociativeOperator", "FoldablePropagation", "ConstantPropagation", "LikeSimplification",
          "SimplifyCasts", "ReplaceNullWithFalseInPredicate", "UnwrapCastInBinaryComparison")  # fmt: skip


@given(st.integers(0, 2**32))
@settings(max_examples=max(3, settings().max_examples // 16), phases=[Phase.explicit, Phase.generate])
def test_types_values_and_failures_of_random_expressions_are_sparks(spark: SparkSession, seed: int) -> None:
    random = Random(seed)
    agree_with_spark(spark, [random_sample(random, 1 + n % 3) for n in range(80)])


def test_every_cast_of_every_value_is_sparks(spark: SparkSession) -> None:
    made = [cast_sample(leaf, target) for leaf in LEAVES for target in TARGETS]
    agree_with_spark(spark, [sample for sample in made if sample is not None])


@pytest.mark.parametrize("symbol", ["+", "*", "/", "%", "<=", "coalesce", "greatest", "nullif"])
def test_operands_of_any_two_types_meet_as_in_spark(spark: SparkSession, symbol: str) -> None:
    templates = {"coalesce": "coalesce({}, {})", "greatest": "greatest({}, {})", "nullif": "nullif({}, {})"}
    build = built(symbol, templates.get(symbol, f"({{}} {symbol} {{}})"))
    made = [build(a, b) for a in LEAVES + LITERALS for b in LEAVES + LITERALS]
    samples = [sample for sample in made if sample is not None]
    frame = spark.createDataFrame([], spark_schema())
    found = frame.selectExpr(*(f"{sample.sql} AS c{n}" for n, sample in enumerate(samples))).schema
    wrong = {
        sample.sql: field.dataType
        for sample, field in zip(samples, found, strict=True)
        if sample.expression.type != type_of_spark(field.dataType)
    }
    assert len(samples) > 100
    assert wrong == {}


@dataclass(frozen=True)
class Verdict:
    """What came out for one expression on one row."""

    failed: bool
    value: Any = None


def ours(expression: Expression) -> Callable[[dict[str, Any]], Verdict]:
    evaluate = compiled(expression)

    def verdict(row: dict[str, Any]) -> Verdict:
        try:
            return Verdict(False, evaluate(Scope(columns=row)))
        except DataError:
            return Verdict(True)

    return verdict


def same(a: Any, b: Any) -> bool:
    if isinstance(a, float) and isinstance(b, float):
        return (math.isnan(a) and math.isnan(b)) or (a == b and math.copysign(1, a) == math.copysign(1, b))
    return type(a) is type(b) and a == b


def spark_schema() -> StructType:
    return StructType([StructField(name, spark_type(type_)) for name, type_ in COLUMNS.items()])


def agree_with_spark(spark: SparkSession, samples: list[Sample]) -> None:
    """Types, values and failures, three ways: in Python, as our Columns, and as Spark's own SQL."""
    data, count = rows(), len(samples)
    frame = spark.createDataFrame(
        [tuple(without_zone(row[name], type_) for name, type_ in COLUMNS.items()) for row in data], spark_schema()
    )
    columns = [compile_column(sample.expression, F.col) for sample in samples]
    found = answers(frame, [column.value for column in columns] + [failed(column) for column in columns])
    raising = [F.expr(f"try_to_binary(coalesce(string({sample.sql}), ''), 'utf-8') IS NULL") for sample in samples]
    judging_values = [F.when(~failed(column), F.expr(sample.sql)) for sample, column in zip(samples, columns, strict=True)]
    with judging(spark):
        judged = answers(frame, judging_values + raising)
    for n, sample in enumerate(samples):
        assert found[n].type == judged[n].type == sample.expression.type, sample
        verdict = ours(sample.expression)
        for row, *answer in zip(
            data, *(column.values for column in (found[n], judged[n], found[count + n], judged[count + n])), strict=True
        ):
            mine = verdict(row)
            assert [mine.failed, mine.failed] == answer[2:], (sample, row, mine, answer)
            assert same(mine.value, answer[0]), (sample, row, mine, answer)
            assert same(mine.value, answer[1]), (sample, row, mine, answer)


@dataclass(frozen=True)
class Answer:
    type: Type
    values: list[Any]


def answers(frame: DataFrame, columns: list[SparkColumn]) -> list[Answer]:
    """One answer per column, all from one Spark job over one partition."""
    selected = frame.coalesce(1).select(*(column.alias(f"c{n}") for n, column in enumerate(columns)))
    table = selected.toArrow()
    types = [type_of_spark(field.dataType) for field in selected.schema]
    return [Answer(type_, list(map(with_zone, table.column(n).to_pylist()))) for n, type_ in enumerate(types)]


def failed(column: Compiled) -> SparkColumn:
    return F.lit(False) if column.failed is None else column.failed


@contextmanager
def judging(spark: SparkSession) -> Iterator[None]:
    """Spark as a judge: nothing is decided or hoisted without being evaluated where it stands."""
    rules = ",".join(f"org.apache.spark.sql.catalyst.optimizer.{rule}" for rule in HIDING)
    spark.conf.set("spark.sql.optimizer.excludedRules", rules)
    spark.conf.set("spark.sql.subexpressionElimination.enabled", "false")
    try:
        yield
    finally:
        spark.conf.unset("spark.sql.optimizer.excludedRules")
        spark.conf.unset("spark.sql.subexpressionElimination.enabled")


def without_zone(value: Any, type_: Type) -> Any:
    return value.replace(tzinfo=None) if type_ == TIMESTAMP_NTZ and value is not None else value


def with_zone(value: Any) -> Any:
    return value.replace(tzinfo=UTC) if isinstance(value, datetime) else value
