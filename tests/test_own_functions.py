"""Users' own scalar functions: declared, checked, and evaluated in Python."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pytest

from muntin import reference
from muntin.aggregates import AGGREGATES
from muntin.errors import DataError, Refusal
from muntin.expression import functions
from muntin.expression.evaluate import Scope, evaluate
from muntin.expression.own import OwnFunction
from muntin.expression.tree import AggregateCall, Column, GroupKey, Literal, OwnCall, columns_of, walk
from muntin.query.check import changed, check_query
from muntin.query.model import Query
from muntin.query.own_functions import functions_by_name, python_function, spark_function
from muntin.query.registry import Registry
from muntin.query.text import parse_query
from muntin.schema import BIGINT, BOOLEAN, DOUBLE, INT, STRING, decimal
from queries_over_trades import FROM_TRADES, TRADES, Refused, refusals

IS_ODD = python_function("is_odd", lambda vol: vol % 2 == 1, args="BIGINT", returns="BOOLEAN")
SCALED = python_function("Scaled", lambda price, by: price / by, args="DOUBLE, DECIMAL(10, 2)", returns="double")
BUCKET = spark_function("bucket", lambda vol: vol.cast("string"), args="BIGINT", returns="STRING")
NEAR = spark_function("near", lambda a, b: abs(a - b) < 1, args="DOUBLE, DOUBLE", returns="BOOLEAN", python=lambda a, b: abs(a - b) < 1)
OWN = functions_by_name([IS_ODD, SCALED, BUCKET, NEAR], AGGREGATES)
VOL, PRICE = Column("vol", BIGINT), Column("price", DOUBLE)


def checked(sql: str) -> Query:
    return check_query(parse_query(sql, name="q"), TRADES, AGGREGATES, functions=OWN)


@pytest.mark.parametrize("case", refusals("refused_own_functions"), ids=str)
def test_a_call_that_breaks_a_rule_is_refused_with_its_place(case: Refused) -> None:
    case.check(checked)


def test_own_functions_stand_wherever_rows_are() -> None:
    query = checked(f"""SELECT bucket(vol) AS b, sum(scaled(price, 2)) FILTER (WHERE is_odd(vol)) AS s {FROM_TRADES}
        WHERE Is_Odd(vol) AND near(price, 3) GROUP BY bucket(vol)""")
    odd, near = OwnCall(IS_ODD, (VOL,), BOOLEAN), OwnCall(NEAR, (PRICE, Literal(3.0, DOUBLE)), BOOLEAN)
    assert query.where == functions.call("and", odd, near)
    assert query.group_by[0].expression == OwnCall(BUCKET, (VOL,), STRING)
    assert query.outputs[0].expression == GroupKey(0, STRING)
    scaled = OwnCall(SCALED, (PRICE, Literal(Decimal("2.00"), decimal(10, 2))), DOUBLE)
    assert query.aggregate_calls[0].args == (functions.call("case", odd, scaled),)


def test_own_functions_with_a_python_meaning_stand_over_aggregates_too() -> None:
    query = checked(f"SELECT near(avg(price), 1) AS n {FROM_TRADES} GROUP BY vol HAVING is_odd(vol) AND is_odd(max(vol))")
    average = AggregateCall("avg", (PRICE,), DOUBLE)
    assert query.outputs[0].expression == OwnCall(NEAR, (average, Literal(1.0, DOUBLE)), BOOLEAN)
    top = AggregateCall("max", (VOL,), BIGINT)
    assert query.having == functions.call("and", OwnCall(IS_ODD, (GroupKey(0, BIGINT),), BOOLEAN), OwnCall(IS_ODD, (top,), BOOLEAN))


def test_arguments_are_cast_as_those_of_built_in_functions_are() -> None:
    assert checked(f"SELECT count(*) {FROM_TRADES} WHERE scaled('2', 3) > 1 AND scaled(vol, 2) > 1 AND is_odd('3')").where is not None
    (call,) = [node for node in walk(functions.own_call(IS_ODD, Column("n", INT))) if isinstance(node, OwnCall)]
    assert call.args == (functions.cast(Column("n", INT), BIGINT),)
    assert str(call) == "is_odd(cast(n))"
    assert columns_of(call) == {"n"}


def test_changes_of_the_registry_know_own_functions() -> None:
    statement = parse_query(f"SELECT count(*) {FROM_TRADES} WHERE is_odd(vol)", name="q")
    assert len(changed(Registry(), statement, {"trades": TRADES}, {}, AGGREGATES, OWN).queries) == 1


def test_the_reference_evaluates_them() -> None:
    query = checked(f"SELECT count(*) AS n, is_odd(count(*)) AS odd {FROM_TRADES} WHERE is_odd(vol) AND near(price, 1)")
    start = datetime(2026, 1, 1, 0, 1, tzinfo=UTC)
    rows = [{"ts": start, "vol": vol, "price": price} for vol, price in [(1, 1.5), (2, 1.5), (3, 9.0), (None, 1.0), (5, None), (7, 1.0)]]
    found = reference.results(query, [reference.Arrival(row) for row in rows], AGGREGATES)
    assert {(row["n"], row["odd"]) for row in found} == {(2, False)}


def value_of(function: OwnFunction, *values: object) -> Any:
    args = [Literal(value, type_) for value, type_ in zip(values, function.arguments, strict=True)]
    return evaluate(functions.own_call(function, *args), Scope())


def test_null_is_not_handed_to_a_function() -> None:
    assert value_of(IS_ODD, None) is None
    assert value_of(NEAR, 1.0, None) is None


def test_an_exception_and_a_wrong_type_are_errors_of_data() -> None:
    with pytest.raises(DataError) as error:
        value_of(SCALED, 1.0, Decimal(0))
    assert str(error.value) == (
        "Scaled gives a value of its type for every row\n"
        "  found: Scaled(1.0, Decimal('0.00')): TypeError: unsupported operand type(s) for /: 'float' and 'decimal.Decimal'\n"
        "  way out: let Scaled return None where it has no value, or test its arguments first, with CASE"
    )
    with pytest.raises(DataError, match=r"2\.5 is no bigint"):
        value_of(python_function("f", lambda _: 2.5, args="INT", returns="BIGINT"), 1)


def raised(error: BaseException) -> Any:
    raise error


class Mute(Exception):
    def __str__(self) -> str:
        raise ValueError("no words")


@pytest.mark.parametrize(
    ("result", "told"),
    [
        (lambda _: "\ud800", r"f(1): '\ud800' is no string: it has no UTF-8"),
        (lambda _: raised(SystemExit(3)), "f(1): SystemExit: 3"),
        (lambda _: raised(GeneratorExit()), "f(1): GeneratorExit: "),
        (lambda _: raised(ValueError("\ud800")), r"f(1): ValueError: \ud800"),
        (lambda _: raised(Mute()), "f(1): Mute"),
    ],
)
def test_whatever_a_function_raises_or_returns_is_its_failure(result: Callable[[int], Any], told: str) -> None:
    with pytest.raises(DataError) as error:
        value_of(python_function("f", result, args="INT", returns="STRING"), 1)
    assert error.value.values == told


def test_an_interrupt_is_ctrl_c_in_the_main_thread_and_a_failure_in_others() -> None:
    interrupting = python_function("f", lambda _: raised(KeyboardInterrupt()), args="INT", returns="INT")
    with pytest.raises(KeyboardInterrupt):
        value_of(interrupting, 1)
    with ThreadPoolExecutor(1) as pool, pytest.raises(DataError, match="KeyboardInterrupt"):
        pool.submit(value_of, interrupting, 1).result()


def test_a_function_without_a_python_meaning_is_not_evaluated() -> None:
    with pytest.raises(Refusal, match="bucket has a meaning in Spark only"):
        value_of(BUCKET, 1)


EAST = timezone(timedelta(hours=1))
RESULTS: dict[str, tuple[object, object]] = {
    "TINYINT": (127, 127),
    "BIGINT": (np.int64(5), 5),
    "FLOAT": (0.1, float(np.float32(0.1))),
    "DOUBLE": (3, 3.0),
    "DECIMAL(5,2)": (Decimal("1.005"), Decimal("1.01")),
    "BOOLEAN": (np.bool_(True), True),
    "STRING": ("x", "x"),
    "DATE": (date(2026, 1, 1), date(2026, 1, 1)),
    "TIMESTAMP": (datetime(2026, 1, 1, 1, tzinfo=EAST), datetime(2026, 1, 1, tzinfo=UTC)),
    "TIMESTAMP_NTZ": (datetime(2026, 1, 1), datetime(2026, 1, 1, tzinfo=UTC)),
}
MISFITS = {
    "TINYINT": 128,
    "BIGINT": True,
    "DECIMAL(5,2)": Decimal(1000),
    "BOOLEAN": 1,
    "STRING": 5,
    "DATE": datetime(2026, 1, 1),
    "DOUBLE": "1",
    "TIMESTAMP": pd.NaT,
}


@pytest.mark.parametrize("type_", RESULTS)
def test_results_are_values_of_the_declared_type(type_: str) -> None:
    given, expected = RESULTS[type_]
    found = value_of(python_function("f", lambda _: given, args="INT", returns=type_), 1)
    assert (found, type(found)) == (expected, type(expected))


@pytest.mark.parametrize("type_", MISFITS)
def test_results_that_do_not_fit_are_errors_of_data(type_: str) -> None:
    with pytest.raises(DataError, match="f gives a value of its type for every row"):
        value_of(python_function("f", lambda _: MISFITS[type_], args="INT", returns=type_), 1)


BAD_DECLARATIONS: dict[str, Callable[[], object]] = {
    "an own function hides no built-in one\n  found: Upper": lambda: python_function("Upper", len, args="STRING", returns="INT"),
    "an own function hides no built-in one\n  found: window": lambda: python_function("window", len, args="STRING", returns="INT"),
    "a function's name is a letter or _, then": lambda: python_function("a-b", len, args="STRING", returns="INT"),
    "a function's name is no word of the SQL\n  found: select": lambda: python_function("select", len, args="STRING", returns="INT"),
    "f takes one argument or more": lambda: python_function("f", len, args=" ", returns="INT"),
    "f: a type is one of Spark's": lambda: python_function("f", len, args="STRING, UUID", returns="INT"),
    "f: CAST is to a scalar type": lambda: python_function("f", len, args="STRING", returns="ARRAY<INT>"),
    "f: DECIMAL(p, s) has 1 to 38 digits": lambda: python_function("f", len, args="DECIMAL(50, 2), INT", returns="INT"),
    "found: SUM, and there is an aggregate of that name": lambda: functions_by_name(
        [python_function("SUM", len, args="STRING", returns="INT")], AGGREGATES
    ),
    "found: Is_Odd, and there is a function of that name": lambda: functions_by_name(
        [IS_ODD, python_function("Is_Odd", len, args="STRING", returns="INT")], AGGREGATES
    ),
}


@pytest.mark.parametrize("complaint", BAD_DECLARATIONS)
def test_a_declaration_that_breaks_a_rule_is_refused(complaint: str) -> None:
    with pytest.raises(Refusal) as refusal:
        BAD_DECLARATIONS[complaint]()
    assert complaint in str(refusal.value)


def test_functions_with_the_same_code_are_equal_and_print_without_it() -> None:
    assert spark_function("f", abs, args="INT", returns="INT") == spark_function("f", abs, args="INT", returns="INT")
    assert spark_function("f", abs, args="INT", returns="INT") != spark_function("f", len, args="INT", returns="INT")
    assert "lambda" not in repr(functions.own_call(IS_ODD, VOL))
    assert str(SCALED) == "Scaled(double, decimal(10,2)) -> double"
