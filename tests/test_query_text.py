"""From text to statements: what is read, how complaints look, and that nothing but a `MuntinError` gets out."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muntin.aggregates import AGGREGATES
from muntin.errors import MuntinError, QueryError, Refusal
from muntin.query.check import check_pipeline, check_query
from muntin.query.dialect import Muntin
from muntin.query.text import CreateQuery, CreateStream, CreateTable, DropQuery, parse, parse_query
from queries_over_trades import CREATE_TRADES, FROM_TRADES, TRADES, Refused, refusals

PIPELINE = f"""-- one day of trades
{CREATE_TRADES};
CREATE TABLE close (symbol STRING, cp DOUBLE) WITH (path = 'close.csv', format = 'csv');
/* the big ones; of any symbol */
CREATE QUERY big-trades AS SELECT count(*) {FROM_TRADES} WHERE vol > 50000;;
DROP QUERY `big-trades`; -- done
"""
NAME = "a query's name is a letter or _, then up to 99 letters, digits, _ or -"


def test_a_pipeline_is_read_statement_by_statement() -> None:
    statements = parse(PIPELINE)
    assert [type(statement) for statement in statements] == [CreateStream, CreateTable, CreateQuery, DropQuery]
    assert [statement.name for statement in statements] == ["trades", "close", "big-trades", "big-trades"]
    assert statements[0].source == CREATE_TRADES
    assert statements[2].source == f"CREATE QUERY big-trades AS SELECT count(*) {FROM_TRADES} WHERE vol > 50000"


def test_a_text_without_statements_is_empty() -> None:
    assert parse("") == parse(" ;; -- nothing\n") == ()


@pytest.mark.parametrize("case", refusals("refused_texts"), ids=str)
def test_a_text_that_cannot_be_read_is_refused_with_its_place(case: Refused) -> None:
    case.check(parse)


def test_a_bare_select_takes_the_name_it_is_given() -> None:
    assert parse_query(f"SELECT count(*) {FROM_TRADES};", name="n").name == "n"
    assert parse_query(f"CREATE QUERY m AS SELECT count(*) {FROM_TRADES}").name == "m"


@pytest.mark.parametrize("name", ["a", "_", "Big-trades_2", "a" * 100])
def test_a_name_becomes_a_file_name_and_is_plain(name: str) -> None:
    assert parse(f"CREATE QUERY {name} AS SELECT 1")[0].name == name
    for longer in (f"{name}.", f"{name}/x", name.ljust(101, "a")):
        with pytest.raises(QueryError, match="a query's name is a letter or _"):
            parse_query("SELECT 1", name=longer)


@pytest.mark.parametrize(
    ("sql", "name", "complaint"),
    [
        ("SELECT 1", None, "a query has a name"),
        ("SELECT 1", "a b", NAME),
        ("SELECT 1", "", NAME),
        ("CREATE QUERY a AS SELECT 1", "b", "a query has one name\n  found: CREATE QUERY a and name='b'"),
        ("", "a", "one query is added at a time\n  found: 0 statements"),
        ("SELECT 1; SELECT 2", "a", "one query is added at a time\n  found: 2 statements"),
        ("DROP QUERY a", "a", "one query is added at a time\n  found: DropQuery"),
    ],
)
def test_one_query_with_one_name_is_added_at_a_time(sql: str, name: str | None, complaint: str) -> None:
    with pytest.raises(QueryError) as refusal:
        parse_query(sql, name)
    assert str(refusal.value).startswith(complaint)


def test_a_node_is_written_in_the_users_words_without_comments() -> None:
    statement = parse_query("SELECT sum( price  *\n /* big */ vol ), 5L, 'a  b' -- end\n, `x y` FROM t", name="q")
    assert [statement.written(node) for node in statement.query.expressions] == ["sum( price * vol )", "5L", "'a  b'", "`x y`"]


def test_a_compiled_sqlglot_is_refused_by_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    def parser(_: Muntin) -> None:
        raise TypeError("interpreted classes cannot inherit from compiled")

    monkeypatch.setattr(Muntin, "parser", parser)
    with pytest.raises(Refusal, match=r"(?s)extends sqlglot's parser.*cannot inherit from compiled.*remove sqlglotc"):
        parse_query("SELECT count(*) FROM s [RANGE 1 minute]", "q")


def test_half_a_surrogate_pair_is_refused() -> None:
    with pytest.raises(QueryError) as refusal:
        parse_query("SELECT '\ud800' || max(s) FROM s [RANGE 1 hour SLIDE 1 hour]", name="q")
    assert str(refusal.value) == (
        "a text is Unicode\n  found: '\\ud800' at character 9\n  way out: write the character itself, or the whole pair"
    )


def test_nesting_without_end_is_refused() -> None:
    with pytest.raises(QueryError, match="expressions are not nested without end"):
        parse_query("SELECT " + "(" * 5_000 + "1" + ")" * 5_000, name="q")


SEEDS = [
    PIPELINE,
    f"SELECT symbol, sum(price * vol) AS value {FROM_TRADES} WHERE vol > 50000 AND symbol IS NOT NULL GROUP BY symbol HAVING value > 1.5",
    "SELECT window.start, max(price) FILTER (WHERE vol BETWEEN 1 AND 2) FROM trades GROUP BY window(ts, '12 minutes'), 1",
    "SELECT CASE symbol WHEN 'a' THEN -1 ELSE CAST(max(vol) AS INT) END FROM TUMBLE(trades, ts, INTERVAL 5 MINUTES) t GROUP BY symbol",
    "SELECT symbol, count(*) FROM trades [RANGE 5 minutes RATTR ts SLIDE 5 rows SATTR rank(ts) PATTR symbol] LATE REEMIT FOR 1 hour",
    "SELECT max(fee) FROM trades [RANGE UNBOUNDED SLIDE 0.5 LANDMARK 2 OFFSET -1.5 WATTR price] EMIT EMPTY EMIT EVERY '10 seconds'",
    "SELECT sum(vol) FROM trades [RANGE 1000 rows SLIDE 10 rows WATTR row_num ALIGN STARTS] LATE CONSISTENT",
    "SELECT avg(DISTINCT x) OVER (PARTITION BY y) FROM TABLE(HOP(TABLE trades, DESCRIPTOR(ts), '5 s', '7 s')) JOIN b USING (c) LIMIT 5",
    "SELECT x -> y, {fn abs(1)}, @a, :b, ?, interval 1 day + ts, (a, b), d[1], t.*, x::int FROM values (1) LATERAL VIEW explode(x) t AS y",
]
SIGNS = [*"()[]{},;.:='\"`\\-+*/%<>!~#$@?²∞\x00\n", "::", "<=>", "||", "--", "/*", "*/", "1e3", "5L", "9" * 50, "DATE '", "NOT NULL"]
WORDS = sorted({word for seed in SEEDS for word in seed.split(" ")})


@st.composite
def mutated(draw: st.DrawFn) -> str:
    words = draw(st.sampled_from(SEEDS)).split(" ")
    for _ in range(draw(st.integers(1, 4))):
        position = draw(st.integers(0, len(words)))
        other = draw(st.sampled_from(WORDS) | st.sampled_from(SIGNS) | st.text(max_size=3))
        words[position : position + draw(st.integers(0, 2))] = [other]
    return " ".join(words)


@given(mutated())
def test_any_text_is_read_or_refused_and_nothing_else_happens(text: str) -> None:
    for read in (
        lambda: check_pipeline(text, AGGREGATES),
        lambda: check_query(parse_query(text, name="q"), TRADES, AGGREGATES),
    ):
        try:
            read()
        except MuntinError as refusal:
            str(refusal)
