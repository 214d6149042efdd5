"""Expressions evaluated in Python: numbers, logic, texts, times and casts, at their boundaries, and how they fail.

What Spark says of the same: `test_expressions_spark`.
"""

from __future__ import annotations

import math
import re
from datetime import UTC, date, datetime
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muntin.errors import DataError, TypeMismatch
from muntin.expression.evaluate import Scope, compiled, evaluate
from muntin.expression.functions import call, cast
from muntin.expression.numeric import float_text, nearest_float32
from muntin.expression.text_functions import like_expression
from muntin.expression.tree import AggregateCall, Bound, Column, Expression, GroupKey, Literal, WindowBound
from muntin.schema import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    INT,
    NULL,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    TINYINT,
    Type,
    adjusted_decimal,
    decimal,
)
from muntin.timeline import BEGINNING, SECOND

VOL, PRICE, AMOUNT, TS = Column("vol", BIGINT), Column("price", DOUBLE), Column("amount", decimal(10, 2)), Column("ts", TIMESTAMP)


def lit(value: Any, type_: Type = INT) -> Literal:
    return Literal(value, type_)


def value(expression: Expression, **columns: Any) -> Any:
    return evaluate(expression, Scope(columns=columns))


@pytest.mark.parametrize(("vol", "expected"), [(2**63 - 2, 2**63 - 1), (2**63 - 1, None), (None, None)])
def test_a_sum_fails_just_beyond_its_type(vol: int | None, expected: int | None) -> None:
    total = call("+", VOL, lit(1))
    if vol == 2**63 - 1:
        with pytest.raises(
            DataError, match=r"a result fits its type, bigint\n  found: 9223372036854775807 \+ 1\n  way out: cast an operand"
        ):
            value(total, vol=vol)
    else:
        assert value(total, vol=vol) == expected


def test_division_by_zero_fails_for_every_type_and_not_beside_null() -> None:
    for zero, type_ in ((0, BIGINT), (0.0, DOUBLE), (-0.0, DOUBLE), (Decimal("0.00"), decimal(10, 2))):
        for symbol in "/%":
            ratio = call(symbol, Column("x", type_), Column("y", type_))
            with pytest.raises(DataError, match="nothing is divided by zero"):
                value(ratio, x=type(zero)(1), y=zero)
            assert value(ratio, x=None, y=zero) is None


@given(st.decimals(allow_nan=False, allow_infinity=False, places=2, min_value=-99999999, max_value=99999999), st.integers(-(10**9), 10**9))
def test_decimal_arithmetic_is_exact(amount: Decimal, n: int) -> None:
    for symbol, exact in (("+", Fraction(amount) + n), ("-", Fraction(amount) - n), ("*", Fraction(amount) * n)):
        result = value(call(symbol, AMOUNT, Column("n", INT)), amount=amount, n=n)
        assert Fraction(result) == exact
        assert result.as_tuple().exponent == -2


@given(st.integers(1, 10**20), st.integers(1, 10**10))
def test_a_decimal_quotient_is_rounded_half_up_to_its_scale(a: int, b: int) -> None:
    types = decimal(20, 0), decimal(10, 0)
    ratio = call("/", Column("a", types[0]), Column("b", types[1]))
    assert ratio.type == adjusted_decimal(31, 11)
    scaled = Fraction(a % 10**20, b % 10**10 or 1) * 10**11
    assert int(value(ratio, a=Decimal(a % 10**20), b=Decimal(b % 10**10 or 1)).scaleb(11)) == math.floor(scaled + Fraction(1, 2))


def test_nan_is_the_greatest_and_equals_itself_and_zero_has_no_sign() -> None:
    x, y = Column("x", DOUBLE), Column("y", DOUBLE)
    assert value(call("=", x, y), x=math.nan, y=math.nan) is True
    assert value(call(">", x, y), x=math.nan, y=math.inf) is True
    assert value(call("<", x, y), x=math.nan, y=math.nan) is False
    assert value(call("=", x, y), x=-0.0, y=0.0) is True
    assert value(call("in", x, lit(0.0, DOUBLE), lit(math.nan, DOUBLE)), x=math.nan) is True
    assert math.isnan(value(call("greatest", x, y), x=1.0, y=math.nan))


def test_strings_are_ordered_by_code_points() -> None:
    s = Column("s", STRING)
    assert value(call("<", s, lit("\U0001f600", STRING)), s="\uffff") is True


THREE = [True, False, None]


@pytest.mark.parametrize("a", THREE)
@pytest.mark.parametrize("b", THREE)
def test_logic_has_three_values(a: bool | None, b: bool | None) -> None:
    p, q = Column("p", BOOLEAN), Column("q", BOOLEAN)
    conjunction = False if False in (a, b) else None if None in (a, b) else True
    disjunction = True if True in (a, b) else None if None in (a, b) else False
    assert value(call("and", p, q), p=a, q=b) is conjunction
    assert value(call("or", p, q), p=a, q=b) is disjunction
    assert value(call("not", p), p=a) is (None if a is None else not a)
    assert value(call("<=>", p, q), p=a, q=b) is (a is b)


def test_what_is_not_needed_is_not_evaluated() -> None:
    fails = call("=", call("/", lit(1), lit(0)), lit(1.0, DOUBLE))
    p = Column("p", BOOLEAN)
    assert value(call("and", p, fails), p=False) is False
    assert value(call("or", p, fails), p=True) is True
    assert value(call("if", p, lit(1), call("/", lit(1), lit(0))), p=True) == 1.0
    assert value(call("coalesce", VOL, call("/", lit(1), lit(0))), vol=3) == 3.0
    assert value(call("in", VOL, lit(3), cast(lit("x", STRING), BIGINT)), vol=3) is True
    assert value(call("+", VOL, cast(lit("x", STRING), BIGINT)), vol=None) is None
    for needed in (call("and", p, fails), call("or", p, fails), call("if", p, lit(1), call("/", lit(1), lit(0)))):
        with pytest.raises(DataError, match="nothing is divided by zero"):
            value(needed, p=None)


def test_a_list_with_null_never_says_no() -> None:
    listed = call("in", VOL, lit(1), lit(None, NULL))
    assert [value(listed, vol=vol) for vol in (1, 2, None)] == [True, None, None]


@pytest.mark.parametrize(
    ("text", "pattern", "matches"),
    [
        ("50%", "50\\%", True),
        ("500", "50\\%", False),
        ("a\nb", "a_b", True),
        ("é😀", "__", True),
        ("", "%", True),
        ("ab", "a", False),
        ("A", "a", False),
    ],
)
def test_like_matches_the_whole_text(text: str, pattern: str, matches: bool) -> None:
    assert value(call("like", Column("s", STRING), lit(pattern, STRING)), s=text) is matches
    assert value(call("ilike", Column("s", STRING), lit(pattern.upper(), STRING)), s=text) is (matches or text == "A")


def test_like_takes_another_escape() -> None:
    assert value(call("like", Column("s", STRING), lit("5!%\\_", STRING), lit("!", STRING)), s="5%\\x") is True
    with pytest.raises(TypeMismatch, match="an escape is one character"):
        like_expression("a", "")


@given(st.text("ab%_", max_size=6), st.text("ab", max_size=5))
def test_like_agrees_with_its_definition(pattern: str, text: str) -> None:
    def matches(p: str, t: str) -> bool:
        if not p:
            return not t
        if p[0] == "%":
            return any(matches(p[1:], t[n:]) for n in range(len(t) + 1))
        return bool(t) and p[0] in ("_", t[0]) and matches(p[1:], t[1:])

    assert value(call("like", Column("s", STRING), lit(pattern, STRING)), s=text) is matches(pattern, text)


@pytest.mark.parametrize(
    ("start", "length", "expected"), [(1, 2, "ab"), (0, 2, "ab"), (2, 9, "bcde"), (-2, 9, "de"), (-7, 3, "a"), (6, 1, ""), (2, -1, "")]
)
def test_substrings_count_from_one_or_from_the_end(start: int, length: int, expected: str) -> None:
    assert value(call("substring", Column("s", STRING), lit(start), lit(length)), s="abcde") == expected


@pytest.mark.parametrize(
    ("number", "places", "expected"), [(2.345, 2, 2.35), (2.5, 0, 3.0), (-2.5, 0, -3.0), (1249.0, -2, 1200.0), (1e300, -400, 0.0)]
)
def test_rounding_is_half_away_from_zero_by_the_written_digits(number: float, places: int, expected: float) -> None:
    assert value(call("round", PRICE, lit(places)), price=number) == expected


@pytest.mark.parametrize(
    ("unit", "expected"),
    [
        ("year", datetime(2026, 1, 1)), ("QUARTER", datetime(2026, 4, 1)), ("mon", datetime(2026, 5, 1)), ("week", datetime(2026, 5, 4)),
        ("dd", datetime(2026, 5, 10)), ("hour", datetime(2026, 5, 10, 11)), ("second", datetime(2026, 5, 10, 11, 12, 13)),
    ],
)  # fmt: skip
def test_date_trunc_cuts_to_the_unit(unit: str, expected: datetime) -> None:
    moment = datetime(2026, 5, 10, 11, 12, 13, 141516, tzinfo=UTC)
    assert value(call("date_trunc", lit(unit, STRING), TS), ts=moment) == expected.replace(tzinfo=UTC)


def test_times_before_1970_round_towards_the_past() -> None:
    moment = datetime(1969, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC)
    assert [value(call(name, TS), ts=moment) for name in ("unix_seconds", "unix_millis", "unix_micros")] == [-1, -1, -1]
    assert value(cast(TS, BIGINT), ts=moment) == -1
    assert value(call("dayofweek", TS), ts=moment) == 4


def test_a_time_without_zone_is_read_as_utc() -> None:
    local = Column("t", TIMESTAMP_NTZ)
    assert value(cast(local, TIMESTAMP), t=datetime(2026, 1, 1)) == datetime(2026, 1, 1, tzinfo=UTC)
    assert value(call("<", local, TS), t=datetime(2026, 1, 1), ts=datetime(2026, 1, 2, tzinfo=UTC)) is True


@pytest.mark.parametrize(("text", "type_", "expected"), [
    (" -7 ", BIGINT, -7), ("1e3", DOUBLE, 1000.0), ("1d", DOUBLE, 1.0), ("inf", DOUBLE, math.inf),
    ("1.005", decimal(5, 2), Decimal("1.01")),
    ("TRUE", BOOLEAN, True), ("no", BOOLEAN, False), ("2026-2-3", DATE, date(2026, 2, 3)),
])  # fmt: skip
def test_texts_are_read_as_spark_reads_them(text: str, type_: Type, expected: object) -> None:
    assert value(cast(Column("s", STRING), type_), s=text) == expected


@pytest.mark.parametrize(("text", "type_"), [
    ("1.0", BIGINT), ("", BIGINT), ("1_0", DOUBLE), ("128", TINYINT), ("1000", decimal(5, 2)), ("maybe", BOOLEAN), ("12:00", TIMESTAMP),
])  # fmt: skip
def test_texts_that_do_not_read_as_the_type_fail(text: str, type_: Type) -> None:
    with pytest.raises(DataError, match=r"found: .*" + re.escape(repr(text))):
        value(cast(Column("s", STRING), type_), s=text)


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_the_text_of_a_double_reads_back(number: float) -> None:
    text = float_text(number, DOUBLE)
    assert float(text) == number
    assert "." in text


@given(st.integers(-(2**70), 2**70) | st.fractions())
def test_the_nearest_float_is_nearer_than_its_neighbours(number: int | Fraction) -> None:
    nearest = nearest_float32(number)
    distance = abs(Fraction(nearest) - number)
    step = Fraction(2) ** (max(math.frexp(nearest)[1], -125) - 24)
    assert distance <= step / 2


def test_select_lists_stand_on_aggregates_groups_and_bounds() -> None:
    total, count = AggregateCall("sum", (VOL,), BIGINT), AggregateCall("count", (), BIGINT)
    scope = Scope(groups=["X", None], aggregates={total: 10, count: 4}, start=0, end=60 * SECOND)
    assert evaluate(call("/", total, count), scope) == 2.5
    assert evaluate(GroupKey(0, STRING), scope) == "X"
    assert evaluate(call("is_null", GroupKey(1, STRING)), scope) is True
    assert evaluate(WindowBound(Bound.END), scope) == datetime(1970, 1, 1, 0, 1, tzinfo=UTC)
    again = compiled(call("unix_seconds", WindowBound(Bound.END)))
    assert [again(scope), again(Scope(end=SECOND))] == [60, 1]


def test_an_unbounded_start_is_no_value() -> None:
    with pytest.raises(DataError, match="a window bound used as a value lies in the years 1 to 9999\n  found: window_start -∞"):
        evaluate(WindowBound(Bound.START), Scope(start=BEGINNING))
