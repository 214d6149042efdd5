"""The allow-list: types of calls, implicit casts, shorthands, and what is refused. What Spark says: `test_expressions_spark`."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pytest

from muntin.errors import Span, TypeMismatch
from muntin.expression.functions import ALIASES, FUNCTIONS, REWRITES, call, cast
from muntin.expression.tree import Call, Column, Expression, Literal
from muntin.schema import (
    BIGINT,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    NULL,
    OTHER,
    STRING,
    TIMESTAMP,
    Type,
    decimal,
)

VOL, PRICE, AMOUNT, TS = Column("vol", BIGINT), Column("price", DOUBLE), Column("amount", decimal(10, 2)), Column("ts", TIMESTAMP)


def lit(value: Any, type_: Type = INT) -> Literal:
    return Literal(value, type_)


@pytest.mark.parametrize(
    ("operator", "left", "right", "type_"),
    [
        ("+", VOL, lit(1), BIGINT),
        ("/", VOL, lit(2), DOUBLE),
        ("*", PRICE, VOL, DOUBLE),
        ("+", Column("f", FLOAT), lit(1), DOUBLE),
        ("+", Column("f", FLOAT), Column("g", FLOAT), FLOAT),
        ("+", AMOUNT, lit(2), decimal(11, 2)),
        ("+", AMOUNT, Column("n", INT), decimal(13, 2)),
        ("*", Column("w", decimal(38, 18)), lit(100), decimal(38, 14)),
        ("*", Column("w", decimal(38, 18)), Column("n", INT), decimal(38, 7)),
        ("/", AMOUNT, AMOUNT, decimal(23, 13)),
        ("%", AMOUNT, lit(7), decimal(3, 2)),
        ("+", Column("s", STRING), lit(1), BIGINT),
        ("+", lit(None, NULL), lit(None, NULL), DOUBLE),
        ("coalesce", AMOUNT, lit(2), decimal(12, 2)),
        ("greatest", VOL, PRICE, DOUBLE),
    ],
)
def test_results_have_the_types_of_sparks_ansi_mode(operator: str, left: Expression, right: Expression, type_: Type) -> None:
    assert call(operator, left, right).type == type_


def test_a_literal_meets_a_column_as_a_constant_of_the_columns_type() -> None:
    assert call(">", VOL, lit(50_000)).args == (VOL, Literal(50_000, BIGINT))
    assert call("<", PRICE, Literal(Decimal("0.5"), decimal(1, 1))).args == (PRICE, Literal(0.5, DOUBLE))
    moment = datetime(2026, 2, 28, tzinfo=UTC)
    assert call(">=", TS, Literal("2026-02-28", STRING)).args == (TS, Literal(moment, TIMESTAMP))


def test_a_column_is_cast_by_a_call() -> None:
    assert call("+", VOL, PRICE).args == (Call("cast", (VOL,), DOUBLE), PRICE)
    assert cast(VOL, STRING, Span(3, 8)) == Call("cast", (VOL,), STRING)


def test_an_explicit_cast_of_a_literal_is_carried_out_unless_it_gives_an_integer_or_fails() -> None:
    assert cast(lit("2026-02-28", STRING), DATE) == Literal(date(2026, 2, 28), DATE)
    assert cast(lit(2), BIGINT) == Call("cast", (lit(2),), BIGINT)  # else it would meet decimals with one digit
    assert cast(lit("soon", STRING), DATE) == Call("cast", (lit("soon", STRING),), DATE)


def test_shorthands_become_what_they_stand_for() -> None:
    low, high = lit(1, BIGINT), lit(9, BIGINT)
    assert call("between", VOL, low, high) == call("and", call(">=", VOL, low), call("<=", VOL, high))
    assert call("nullif", VOL, low) == call("case", call("=", VOL, low), lit(None, BIGINT), VOL)
    assert call("if", call(">", VOL, low), VOL, low) == call("case", call(">", VOL, low), VOL, low)
    assert call("to_date", TS) == cast(TS, DATE)
    assert call("||", Column("s", STRING), VOL) == call("concat", Column("s", STRING), VOL)
    assert call("UCASE", Column("s", STRING)) == call("upper", Column("s", STRING))


def test_every_alias_stands_for_a_function_and_hides_none() -> None:
    assert set(ALIASES.values()) <= set(FUNCTIONS) | set(REWRITES)
    assert not (set(ALIASES) | set(REWRITES)) & set(FUNCTIONS)


@pytest.mark.parametrize(
    ("function", "args", "law"),
    [
        ("reflect", (VOL,), "a function is one of the allow-list"),
        ("abs", (VOL, VOL), "abs takes 1 argument"),
        ("+", (TS, lit(1)), "+ takes two numbers"),
        ("and", (VOL, VOL), "AND takes conditions"),
        ("=", (TS, VOL), "= takes two values of one type, or of types with a common one"),
        ("round", (PRICE, VOL), "round takes a number and a literal number of places"),
        ("like", (Column("s", STRING), Column("p", STRING)), "LIKE takes a literal pattern and escape character"),
        ("like", (Column("s", STRING), lit("a\\b", STRING)), "an escape character in a LIKE pattern stands before %, _ or itself"),
        ("date_trunc", (lit("fortnight", STRING), TS), "date_trunc takes a literal unit of time"),
        ("is_null", (Column("tags", OTHER),), "is_null takes scalar values"),
        ("/", (Column("s", STRING), VOL), "/ takes two numbers"),
    ],
)
def test_what_is_not_in_the_list_is_refused_with_the_law(function: str, args: tuple[Expression, ...], law: str) -> None:
    with pytest.raises(TypeMismatch) as refused:
        call(function, *args)
    assert refused.value.law == law
    assert refused.value.values
    assert refused.value.way_out


def test_a_cast_that_spark_does_not_have_is_refused() -> None:
    with pytest.raises(TypeMismatch, match=re.escape("CAST(date AS bigint)")):
        cast(Column("d", DATE), BIGINT)
