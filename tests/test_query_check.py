"""From statements to checked queries: types and names as Spark has them, and a refusal for each rule that is broken."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal

import pytest

from muntin.aggregates import AGGREGATES
from muntin.errors import QueryError
from muntin.expression import functions
from muntin.expression.tree import AggregateCall, Bound, Column, Expression, GroupKey, Literal, WindowBound
from muntin.query.check import check_pipeline
from muntin.query.model import GroupColumn, Output, Query, StreamDefinition, TableDefinition
from muntin.schema import BIGINT, BOOLEAN, DATE, DOUBLE, INT, NULL, OTHER, STRING, TIMESTAMP, TIMESTAMP_NTZ, Type, decimal
from muntin.timeline import DAY, SECOND, Duration
from queries_over_trades import CREATE_TRADES, FROM_TRADES, TRADES, Refused, checked, refusals

SYMBOL, PRICE, VOL, FLAG = Column("symbol", STRING), Column("price", DOUBLE), Column("vol", BIGINT), Column("flag", BOOLEAN)
COUNT = AggregateCall("count", (), BIGINT)


def selected(items: str, rest: str = "") -> Query:
    return checked(f"SELECT {items} {FROM_TRADES} {rest}")


def test_the_query_of_the_design_is_checked() -> None:
    sql = f"SELECT symbol, sum(price * vol) AS value {FROM_TRADES} WHERE vol > 50000 GROUP BY symbol"
    query = checked(sql)
    assert (query.name, query.stream, query.text) == ("q", "trades", sql)
    assert query.group_by == (GroupColumn("symbol", SYMBOL),)
    assert query.where == functions.call(">", VOL, Literal(50000, INT))
    value = AggregateCall("sum", (functions.call("*", PRICE, VOL),), DOUBLE)
    assert query.outputs == (Output("symbol", GroupKey(0, STRING)), Output("value", value))
    assert query.aggregate_calls == (value,)


LITERALS: dict[str, tuple[object, Type]] = {
    "1": (1, INT),
    "-2147483648": (-(2**31), INT),
    "2147483648": (2**31, BIGINT),
    "- 9223372036854775808": (-(2**63), BIGINT),
    "9223372036854775808": (Decimal(2**63), decimal(19, 0)),
    "1.5": (Decimal("1.5"), decimal(2, 1)),
    "-.05": (Decimal("-0.05"), decimal(2, 2)),
    "1.": (Decimal(1), decimal(1, 0)),
    "1e3": (1000.0, DOUBLE),
    "5L": (5, BIGINT),
    "-5L": (-5, BIGINT),
    "1.5D": (1.5, DOUBLE),
    "1e2BD": (Decimal(100), decimal(3, 0)),
    "'it''s'": ("it's", STRING),
    "'a' 'b'": ("ab", STRING),
    "r'\\d'": ("\\d", STRING),
    '"q"': ("q", STRING),
    "TRUE": (True, BOOLEAN),
    "NULL": (None, NULL),
    "DATE '2026-01-31'": (date(2026, 1, 31), DATE),
    "TIMESTAMP '2026-01-31 09:30:00+01:00'": (datetime(2026, 1, 31, 8, 30, tzinfo=UTC), TIMESTAMP),
    "TIMESTAMP_NTZ '2026-01-31'": (datetime(2026, 1, 31, tzinfo=UTC), TIMESTAMP_NTZ),
}


@pytest.mark.parametrize("text", LITERALS)
def test_literals_have_sparks_types(text: str) -> None:
    value, type_ = LITERALS[text]
    (output, _) = selected(f"{text} AS x, count(*)").outputs
    assert output.expression == Literal(value, type_)
    assert type(getattr(output.expression, "value", None)) is type(value)


def both(left: Expression, right: Expression) -> Expression:
    return functions.call("and", left, right)


CONDITIONS = {
    "flag": FLAG,
    "symbol IS NOT NULL": functions.call("not", functions.call("is_null", SYMBOL)),
    "symbol IS NOT DISTINCT FROM 'a'": functions.call("<=>", SYMBOL, Literal("a", STRING)),
    "flag IS NOT TRUE": functions.call("not", functions.call("<=>", FLAG, Literal(True, BOOLEAN))),
    "symbol NOT LIKE 'a%'": functions.call("not", functions.call("like", SYMBOL, Literal("a%", STRING))),
    "vol NOT IN (1, 2)": functions.call("not", functions.call("in", VOL, Literal(1, INT), Literal(2, INT))),
    "vol BETWEEN 1 AND 2 AND flag": both(functions.call("between", VOL, Literal(1, INT), Literal(2, INT)), FLAG),
    "NOT vol = 1": functions.call("not", functions.call("=", VOL, Literal(1, INT))),
    "flag AND flag AND NOT flag": both(both(FLAG, FLAG), functions.call("not", FLAG)),
    "symbol || 'x' != 'ax'": functions.call("<>", functions.call("||", SYMBOL, Literal("x", STRING)), Literal("ax", STRING)),
    "T.VOL % 2 == trades.`vol`": functions.call("=", functions.call("%", VOL, Literal(2, INT)), VOL),
    "CASE symbol WHEN 'a' THEN flag ELSE NOT flag END": functions.call(
        "case", functions.call("=", SYMBOL, Literal("a", STRING)), FLAG, functions.call("not", FLAG)
    ),
    "if(flag, Upper(symbol), nvl(symbol, '-')) > 'M'": functions.call(
        ">",
        functions.call("if", FLAG, functions.call("upper", SYMBOL), functions.call("coalesce", SYMBOL, Literal("-", STRING))),
        Literal("M", STRING),
    ),
    "CAST(price AS BIGINT) = -vol": functions.call("=", functions.cast(PRICE, BIGINT), functions.call("negative", VOL)),
    "date_trunc('hour', ts) < ts": functions.call(
        "<", functions.call("date_trunc", Literal("hour", STRING), Column("ts", TIMESTAMP)), Column("ts", TIMESTAMP)
    ),
}


@pytest.mark.parametrize("text", CONDITIONS)
def test_conditions_become_typed_trees(text: str) -> None:
    assert checked(f"SELECT count(*) FROM trades T [RANGE 1 h SLIDE 1 h] WHERE {text}").where == CONDITIONS[text]


def test_a_list_of_hundreds_of_conditions_is_not_nested_as_deep() -> None:
    assert selected("count(*)", "WHERE " + " OR ".join(f"vol = {i}" for i in range(600))).where is not None
    with pytest.raises(QueryError, match="expressions are nested at most 100 deep"):
        selected("count(*)", "WHERE " + " + ".join(["vol"] * 600) + " > 1")


def test_aggregates_go_by_their_own_names() -> None:
    query = selected("count(*), COUNT(vol) c, mean(price) AS m, avg(price)")
    calls = [COUNT, AggregateCall("count", (VOL,), BIGINT), AggregateCall("avg", (PRICE,), DOUBLE)]
    assert query.outputs == tuple(Output(*item) for item in zip(["count(*)", "c", "m", "avg(price)"], [*calls, calls[2]], strict=True))
    assert query.aggregate_calls == tuple(calls)


def test_filter_becomes_case() -> None:
    query = selected("sum(vol) FILTER (WHERE flag) AS s, count(*) FILTER (WHERE flag) AS n, weighted_avg(price, vol) FILTER (WHERE flag) w")
    assert [call.args for call in query.aggregate_calls] == [
        (functions.call("case", FLAG, VOL),),
        (functions.call("case", FLAG, Literal(1, INT)),),
        (functions.call("case", FLAG, PRICE), functions.call("case", FLAG, VOL)),
    ]


UPPER = functions.call("upper", SYMBOL)
GROUPINGS = {
    ("symbol, count(*)", "GROUP BY symbol"): [("symbol", SYMBOL)],
    ("upper(symbol) AS u, count(*)", "GROUP BY upper(symbol)"): [("u", UPPER)],
    ("upper(symbol) AS u, count(*)", "GROUP BY u"): [("u", UPPER)],
    ("upper(symbol) AS u, count(*)", "GROUP BY 1"): [("u", UPPER)],
    ("upper(symbol) AS vol, count(*)", "GROUP BY upper(symbol)"): [("vol", UPPER)],
    ("count(*)", "GROUP BY Symbol, trades.symbol, vol  +  1"): [
        ("Symbol", SYMBOL), ("vol + 1", functions.call("+", VOL, Literal(1, INT)))
    ],
    ("window_start, count(*)", "GROUP BY window_start, 1, symbol, window_end"): [("symbol", SYMBOL)],
}  # fmt: skip


@pytest.mark.parametrize(("items", "group_by"), GROUPINGS)
def test_group_by_takes_columns_expressions_names_and_numbers(items: str, group_by: str) -> None:
    assert selected(items, group_by).group_by == tuple(GroupColumn(*column) for column in GROUPINGS[items, group_by])


def test_select_lists_stand_on_group_keys() -> None:
    query = selected("upper(symbol) || '!', vol + count(*)", "GROUP BY vol, upper(symbol) HAVING upper(symbol) > 'M'")
    key = GroupKey(1, STRING)
    assert [output.name for output in query.outputs] == ["upper(symbol) || '!'", "vol + count(*)"]
    assert query.outputs[0].expression == functions.call("||", key, Literal("!", STRING))
    assert query.outputs[1].expression == functions.call("+", GroupKey(0, BIGINT), COUNT)
    assert query.having == functions.call(">", key, Literal("M", STRING))


def test_having_may_name_a_select_item_but_a_group_column_comes_first() -> None:
    total = AggregateCall("sum", (VOL,), BIGINT)
    assert selected("sum(vol) AS vol", "HAVING vol > 1").having == functions.call(">", total, Literal(1, INT))
    assert selected("sum(vol) AS vol", "GROUP BY vol HAVING vol > 1").having == functions.call(">", GroupKey(0, BIGINT), Literal(1, INT))


def test_a_query_may_show_its_groups_only() -> None:
    assert selected("symbol", "GROUP BY symbol").outputs == (Output("symbol", GroupKey(0, STRING)),)
    assert selected("window_end", "GROUP BY window_end").outputs == ()


def test_bounds_that_results_carry_anyway_are_dropped() -> None:
    start, end = WindowBound(Bound.START), WindowBound(Bound.END)
    query = selected("window_start, window.end AS Window_End, window.start, trades.window_end AS w, count(*)")
    assert query.outputs == (Output("start", start), Output("w", end), Output("count(*)", COUNT))


def test_emit_empty_is_for_queries_without_groups() -> None:
    assert checked("SELECT count(*) FROM trades GROUP BY window(ts, '1 h') EMIT EMPTY").emit_empty
    assert not selected("count(*)").emit_empty


def test_positions_count_from_the_beginning_of_the_querys_own_text() -> None:
    (query,) = check_pipeline(f"{CREATE_TRADES};\nCREATE QUERY q AS SELECT count(*) {FROM_TRADES} WHERE vol > 1", AGGREGATES).queries
    assert query.where is not None
    assert query.where.at is not None
    assert query.text[query.where.at.start : query.where.at.end] == "vol > 1"


@pytest.mark.parametrize("case", refusals("refused_queries"), ids=str)
def test_a_query_that_breaks_a_rule_is_refused_with_its_place(case: Refused) -> None:
    case.check(checked)


@pytest.mark.parametrize("case", refusals("refused_pipelines"), ids=str)
def test_a_pipeline_that_breaks_a_rule_is_refused_with_its_place(case: Refused) -> None:
    case.check(lambda text: check_pipeline(text, AGGREGATES))


def test_streams_and_tables_pass_options_on_as_written() -> None:
    pipeline = check_pipeline(
        """CREATE STREAM s (Ts TIMESTAMP_NTZ, a MAP<STRING, INT>, b VARCHAR(5), c LONG, d NUMERIC(5))
        WITH (SOURCE = 'kafka', kafka.bootstrap.servers = 'h:9092', 'Key' = 'it''s', n = -5, time = ts, slack = '5 s', max_ahead = '1 h');
        CREATE TABLE t (a BINARY) WITH (path = 'Close.csv'); CREATE TABLE u (b BYTE)""",
        AGGREGATES,
    )
    (stream,) = pipeline.streams
    assert [(field.name, field.type) for field in stream.schema.fields] == [
        ("Ts", TIMESTAMP_NTZ), ("a", OTHER), ("b", STRING), ("c", BIGINT), ("d", decimal(5, 0))
    ]  # fmt: skip
    options = {"source": "kafka", "kafka.bootstrap.servers": "h:9092", "key": "it's", "n": "-5"}
    assert stream == StreamDefinition("s", stream.schema, "Ts", Duration(5 * SECOND), Duration(3600 * SECOND), options)
    assert pipeline.tables == (
        TableDefinition("t", pipeline.tables[0].schema, {"path": "Close.csv"}), TableDefinition("u", pipeline.tables[1].schema, {})
    )  # fmt: skip
    assert (TRADES.slack, TRADES.max_ahead) == (Duration(5 * SECOND), Duration(DAY))


def test_a_pipeline_may_drop_what_it_created() -> None:
    query = f"SELECT count(*) {FROM_TRADES}"
    text = f"{CREATE_TRADES}; CREATE QUERY a AS {query}; CREATE QUERY b AS {query}; DROP QUERY A; CREATE QUERY A AS {query}"
    assert [query.name for query in check_pipeline(text, AGGREGATES).queries] == ["b", "A"]
