"""Static tables in FROM: which joins a query has, whatever way it is written, and what the reference makes of them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest

from muntin import reference
from muntin.aggregates import AGGREGATES
from muntin.expression import functions
from muntin.expression.tree import AggregateCall, Column, GroupKey, Literal
from muntin.query.check import changed, check_pipeline
from muntin.query.model import Join, Query
from muntin.query.registry import Registry
from muntin.query.text import parse_query
from muntin.schema import BIGINT, DOUBLE, INT, STRING, decimal
from muntin.semantics import Alignment
from muntin.timeline import HOUR
from queries_over_trades import CREATE_TRADES, Refused, refusals

DECLARED = f"""{CREATE_TRADES};
CREATE STREAM quotes (ts TIMESTAMP, symbol STRING) WITH (time = 'ts');
CREATE STREAM odd (ts TIMESTAMP, symbol STRING, `Close.CP` DOUBLE) WITH (time = 'ts');
CREATE TABLE Close (symbol STRING, cp DOUBLE, day TIMESTAMP, asof BINARY) WITH (path = 'close.csv', format = 'csv');
CREATE TABLE index (name STRING, symbol STRING, weight DECIMAL(5,2), Code INT)"""
PIPELINE = check_pipeline(DECLARED, AGGREGATES)
STREAMS = {stream.name.lower(): stream for stream in PIPELINE.streams}
TABLES = {table.name.lower(): table for table in PIPELINE.tables}

SYMBOL, VOL, PRICE = Column("symbol", STRING), Column("vol", BIGINT), Column("price", DOUBLE)
CLOSE_SYMBOL, CP = Column("close.symbol", STRING), Column("close.cp", DOUBLE)
INDEX_SYMBOL, NAME = Column("index.symbol", STRING), Column("index.name", STRING)
CLOSE = Join("close", "close", ((SYMBOL, CLOSE_SYMBOL),))
INDEX = Join("index", "index", ((SYMBOL, INDEX_SYMBOL),))


def checked(sql: str) -> Query:
    return changed(Registry(), parse_query(sql, name="q"), STREAMS, TABLES, AGGREGATES).queries[0]


def over(source: str, select: str = "count(*)") -> Query:
    return checked(f"SELECT {select} FROM {source}")


@pytest.mark.parametrize("case", refusals("refused_joins"), ids=str)
def test_a_join_that_breaks_a_rule_is_refused_with_its_place(case: Refused) -> None:
    case.check(checked)


def test_query_4_of_the_paper_is_checked() -> None:
    query = checked("""
        SELECT T.symbol, sum(T.vol) AS v FROM trades T [RANGE 10 minutes SLIDE 1 minute WATTR T.ts], close C, index X
        WHERE T.symbol = C.symbol AND T.price > 1.1 * C.cp AND T.symbol = X.symbol AND X.name = 'S&P 500' GROUP BY T.symbol""")
    assert query.joins == (CLOSE, INDEX)
    more = functions.call(">", PRICE, functions.call("*", Literal(1.1, decimal(2, 1)), CP))
    assert query.where == functions.call("and", more, functions.call("=", NAME, Literal("S&P 500", STRING)))
    assert query.outputs[0].expression == GroupKey(0, STRING)
    assert query.stream == "trades"


WINDOW = "[RANGE 1 h SLIDE 1 h]"
SAME = (
    f"trades T {WINDOW}, close C, index X WHERE T.symbol = C.symbol AND T.symbol = X.symbol",
    f"trades {WINDOW}, close, index WHERE index.symbol = trades.symbol AND close.symbol = trades.symbol",
    f"trades {WINDOW} AS t, Close AS a, INDEX b WHERE (t.symbol = a.symbol) AND (b.symbol = t.symbol AND a.symbol = t.symbol)",
    f"index X, trades T {WINDOW}, close C WHERE T.symbol = X.symbol AND T.symbol = C.symbol",
    f"close C, index X, trades T {WINDOW} WHERE T.symbol = C.symbol AND T.symbol = X.symbol",
    f"trades T {WINDOW} JOIN close C ON T.symbol = C.symbol JOIN index X ON X.symbol = T.symbol",
    f"trades T {WINDOW} INNER JOIN index X ON X.symbol = T.symbol, close C WHERE C.symbol = T.symbol",
)


@pytest.mark.parametrize("source", SAME)
def test_the_same_joins_are_equal_however_they_are_written(source: str) -> None:
    query = over(source)
    assert query.joins == (CLOSE, INDEX)
    assert query.where is None


@pytest.mark.parametrize(
    "source",
    [
        "HOP(trades, ts, INTERVAL 30 MINUTES, INTERVAL 1 HOUR) T, close C WHERE T.symbol = C.symbol",
        "close C JOIN TUMBLE(trades, T.ts, INTERVAL 1 HOUR) T ON T.symbol = C.symbol",
        "close C JOIN TABLE(HOP(TABLE trades, DESCRIPTOR(ts), INTERVAL 1 HOUR, INTERVAL 1 HOUR)) ON trades.symbol = C.symbol",
        "trades T, close C WHERE T.symbol = C.symbol GROUP BY window(T.ts, '1 h')",
        "trades T JOIN close C ON T.symbol = C.symbol GROUP BY window(ts, '1 h', '1 h')",
    ],
)
def test_every_window_form_takes_joins(source: str) -> None:
    query = over(source)
    assert query.joins == (CLOSE,)
    assert (query.window.range, query.window.alignment) == (HOUR, Alignment.STARTS)


def test_names_without_a_qualifier_mean_the_one_that_has_them() -> None:
    query = over(f"trades T {WINDOW}, close C WHERE T.symbol = C.symbol AND cp < price GROUP BY cp HAVING cp > 1", "CP, sum(vol) AS s")
    assert query.where == functions.call("<", CP, PRICE)
    assert query.group_by[0].expression == CP
    assert query.group_by[0].name == "CP"
    assert query.having == functions.call(">", GroupKey(0, DOUBLE), Literal(1, INT))


def test_a_group_column_of_a_table_comes_before_a_select_item_of_its_name() -> None:
    query = over(f"trades T {WINDOW}, close C WHERE T.symbol = C.symbol GROUP BY C.cp HAVING cp > 1", "max(vol) AS cp")
    assert query.having == functions.call(">", GroupKey(0, DOUBLE), Literal(1, INT))


def test_tables_may_be_joined_with_each_other() -> None:
    query = over(f"trades T {WINDOW}, close C, index X WHERE X.symbol = T.symbol AND C.symbol = X.name")
    assert query.joins == (INDEX, Join("close", "close", ((NAME, CLOSE_SYMBOL),)))


def test_all_the_pairs_of_a_table_are_used_and_sorted() -> None:
    one = over(f"trades T {WINDOW}, index X WHERE T.symbol = X.symbol AND upper(T.symbol) = X.name")
    other = over(f"trades T {WINDOW}, index X WHERE X.name = upper(T.symbol) AND T.symbol = X.symbol AND X.symbol = T.symbol")
    assert one.joins == other.joins
    assert set(one.joins[0].on) == {(SYMBOL, INDEX_SYMBOL), (functions.call("upper", SYMBOL), NAME)}


def test_pairs_are_cast_as_equality_casts_them() -> None:
    query = over(f"trades T {WINDOW}, index X WHERE T.vol = X.code AND T.vol = X.weight")
    code, weight = Column("index.Code", INT), Column("index.weight", decimal(5, 2))
    equalities = [functions.call("=", VOL, code), functions.call("=", VOL, weight)]
    assert set(query.joins[0].on) == {call.args for call in equalities}


def test_an_equality_with_a_constant_stays_a_condition() -> None:
    query = over(f"trades T {WINDOW} JOIN close C ON T.symbol = C.symbol AND C.cp = 5.0 AND C.cp = C.cp")
    assert query.joins == (CLOSE,)
    five = functions.call("=", CP, Literal(Decimal("5.0"), decimal(2, 1)))
    assert query.where == functions.call("and", five, functions.call("=", CP, CP))


def test_a_table_may_be_joined_twice_whatever_its_aliases() -> None:
    one = over(f"trades T {WINDOW}, close A, close B WHERE T.symbol = A.symbol AND T.price = B.cp", "max(A.cp), max(B.cp)")
    other = over(f"trades T {WINDOW}, close Y, close X WHERE T.symbol = X.symbol AND T.price = Y.cp", "max(X.cp), max(Y.cp)")
    assert one.joins == other.joins
    assert [join.name for join in one.joins] == ["close", "close#2"]
    assert [output.expression for output in one.outputs] == [output.expression for output in other.outputs]


def test_a_tables_column_that_is_called_like_a_bound_is_the_column() -> None:
    pipeline = check_pipeline(
        f"""{CREATE_TRADES}; CREATE TABLE t (symbol STRING, window_end DOUBLE);
        CREATE QUERY q AS SELECT max(C.window_end) AS m FROM trades [RANGE 1 h SLIDE 1 h], t C WHERE trades.symbol = C.symbol""",
        AGGREGATES,
    )
    assert pipeline.queries[0].aggregate_calls == (AggregateCall("max", (Column("t.window_end", DOUBLE),), DOUBLE),)


START = datetime(2026, 1, 1, tzinfo=UTC)
ROWS = [
    {"ts": START + timedelta(minutes=at), "symbol": symbol, "price": price, "vol": vol}
    for at, symbol, price, vol in [(1, "a", 1.0, 1), (2, "b", 2.0, 10), (3, "a", 3.0, 100), (4, None, 4.0, 1000), (5, "c", 5.0, 10000)]
]
CLOSES = [{"symbol": symbol, "cp": cp} for symbol, cp in [("a", 1.0), ("a", 2.0), ("b", 3.0), (None, 4.0), ("d", 5.0)]]
INDEXES = [{"name": name, "symbol": symbol, "weight": None, "Code": code} for name, symbol, code in [("X", "a", 1), ("Y", "b", 10)]]


def answers(sql: str) -> list[dict[str, Any]]:
    arrivals = [reference.Arrival(row) for row in ROWS]
    found = reference.results(checked(sql), arrivals, AGGREGATES, tables={"close": CLOSES, "index": INDEXES})
    return [{name: value for name, value in row.items() if not name.startswith("window_")} for row in found]


def test_duplicate_keys_multiply_rows_and_null_matches_nothing() -> None:
    assert answers(f"SELECT sum(vol) AS v, count(*) AS n FROM trades T {WINDOW}, close C WHERE T.symbol = C.symbol") == [{"v": 212, "n": 5}]


def test_conditions_see_the_columns_of_joined_rows() -> None:
    source = f"trades T {WINDOW}, close C, index X WHERE T.symbol = C.symbol AND X.symbol = C.symbol"
    sql = f"SELECT name, sum(cp) AS s FROM {source} AND cp < price GROUP BY name"
    assert answers(sql) == [{"name": "X", "s": 3.0}]


def test_a_pair_that_fails_on_a_row_matches_nothing() -> None:
    sql = f"SELECT count(*) AS n FROM trades T {WINDOW}, index X WHERE CAST(T.symbol AS INT) = X.code"
    assert answers(sql) == []
    assert answers(f"SELECT count(*) AS n FROM trades T {WINDOW}, index X WHERE 10 / (T.vol - 10) = X.code - 1 EMIT EMPTY") == []


def test_a_window_without_a_match_is_empty() -> None:
    sql = f"SELECT count(*) AS n FROM trades T {WINDOW}, close C WHERE T.symbol = C.symbol AND C.cp > 9"
    assert answers(sql) == []
    assert answers(f"{sql} EMIT EMPTY") == [{"n": 0}]
