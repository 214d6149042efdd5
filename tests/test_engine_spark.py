"""Random SQL queries through the real engine on real Spark, many to a run: equal to the reference and to Spark's own window()."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest

from muntin import Engine, Sharing, Slicing, reference
from muntin.aggregates import AGGREGATES
from muntin.query.check import check_query
from muntin.query.model import Query
from muntin.query.text import parse_query
from muntin.semantics import TimeWindow
from muntin.spark.sinks.memory import MemorySink
from muntin.timeline import SECOND
from opaque import FAILING, STEADY

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

START = datetime(2004, 12, 1, 12, 0, tzinfo=UTC)
SCHEMA = "ts timestamp, seg string, lane int, n bigint, x double, money decimal(12,2), flag boolean, day date, y double"
QUERIES_PER_RUN = 40

#: Select items, and what bounds the error of those that Spark adds up in no fixed order: Σ|x| for sums, Σx² for variances and, by
#: their squares, standard deviations. All others are exact, sums of the dyadic x among them.
EXACT = [
    "count(*)", "count(x)", "sum(lane)", "sum(n)", "sum(x)", "sum(money)", "avg(lane)", "avg(x)", "avg(money)", "min(x)", "max(x)",
    "min(seg)", "max(seg)", "min(ts)", "max(day)", "min(flag)", "max(money)", "min(n)", "sum(x) / count(*)", "sum(lane) + 2 * count(n)",
    "max(x) - min(x)", "coalesce(sum(x), -1)", "sum(x * lane)", "sum(money * 2)", "avg(n % 7)", "sum(CASE WHEN flag THEN x END)",
    "max(upper(seg))", "round(avg(x), 2)", "max(y) - min(y)",
]  # fmt: skip
SUMS = {
    "sum(y)": "sum(abs(y))",
    "avg(y)": "sum(abs(y)) / count(y)",
    "sum(y * lane)": "sum(abs(y * lane))",
    "coalesce(sum(y), -1)": "sum(abs(y))",
    "sum(CASE WHEN flag THEN y END)": "sum(CASE WHEN flag THEN abs(y) END)",
}
VARIANCES = {
    "var_pop(x)": "sum(x * x)",
    "var_samp(lane)": "sum(lane * lane)",
    "var_pop(y)": "sum(y * y)",
    "var_samp(y)": "sum(y * y)",
}
DEVIATIONS = {
    "stddev(x)": "sum(x * x)",
    "stddev_pop(money)": "sum(CAST(money AS DOUBLE) * CAST(money AS DOUBLE))",
    "stddev(y)": "sum(y * y)",
}
BOUNDS = dict.fromkeys(EXACT, "0") | SUMS | VARIANCES | DEVIATIONS
PREDICATES = [
    "", "", "WHERE n > 0", "WHERE x IS NOT NULL AND lane < 2", "WHERE seg IN ('a', 'b') OR flag", "WHERE NOT flag",
    "WHERE money BETWEEN -500 AND 500.5", "WHERE seg LIKE 'a%' OR seg IS NULL", "WHERE lane <> 0 AND n / lane > 1",
]  # fmt: skip
#: Own functions, alone and among other conditions; some fail on some rows, and then their query stops and no other.
OPAQUE = [
    "WHERE odd(n)", "WHERE near(x, lane) OR NOT odd(n)", "WHERE lane < 2 AND NOT (near(x, lane) AND flag)", "WHERE letters(seg) >= 2",
    "WHERE class_of(n) IN (1, 3) OR letters(seg) IS NULL", "WHERE lane = 1 AND share(n, lane) > 5", "WHERE picky(x, lane)",
    "WHERE x > 500 AND NOT picky(x, lane)", "WHERE odd(share(n, lane)) OR flag", "WHERE near(x / lane, lane)",
]  # fmt: skip
GROUPINGS: list[tuple[str, ...]] = [(), (), ("seg",), ("lane",), ("seg", "lane"), ("flag",), ("upper(seg)",), ("date_trunc('MINUTE', ts)",)]
HAVINGS = ["", "", "", "HAVING count(*) > 1", "HAVING sum(x) > 0", "HAVING count(*) > 1 AND max(lane) = 2"]


def some_rows(chance: random.Random, count: int) -> list[tuple[Any, ...]]:
    def maybe(value: Any) -> Any:
        return None if chance.random() < 0.15 else value

    return [
        (
            START + timedelta(microseconds=chance.randrange(-200 * SECOND, 400 * SECOND, SECOND // 100)),
            maybe(chance.choice(["a", "ab", "ü", ""])),
            maybe(chance.randint(0, 3)),
            maybe(chance.choice([chance.randint(-20, 20), chance.randint(-(2**55), 2**55)])),
            maybe(chance.randint(-8000, 8000) / 8),
            maybe(Decimal(chance.randint(-(10**6), 10**6)).scaleb(-2)),
            maybe(chance.random() < 0.5),
            maybe(date(2004, 1, 1) + timedelta(days=chance.randint(-20_000, 2000))),
            maybe(chance.gauss(0, 1) * 10 ** chance.randint(-6, 6)),
        )
        for _ in range(count)
    ]


@dataclass(frozen=True)
class Asked:
    """A random query: its parts as SQL."""

    groups: tuple[str, ...]
    items: list[str]
    rest: str

    def sql(self, *more: str) -> str:
        selected = [
            *(f"{group} AS g{at}" for at, group in enumerate(self.groups)),
            *(f"{text} AS v{at}" for at, text in enumerate(self.items)),
        ]
        return f"SELECT {', '.join([*selected, *more])} FROM s {self.rest}"

    def with_bounds(self) -> str:
        """The query with a column more for each item: what bounds its error."""
        return self.sql(*(f"{BOUNDS[text]} AS b{at}" for at, text in enumerate(self.items)))


def some_query(chance: random.Random) -> Asked:
    groups = chance.choice(GROUPINGS)
    items = chance.sample(list(BOUNDS), chance.randint(1, 3))
    by = f"GROUP BY {', '.join(groups)}" if groups else ""
    length, slide = chance.choice([(60, 20), (50, 30), (10, 3.01), (7.5, 7.5), (30, 45), (100, 12.5), (33, 32.99), (90, 1)])
    window = f"[RANGE {length} seconds SLIDE {slide} seconds WATTR ts OFFSET {chance.choice([0, 0, 3, -1.5])} seconds]"
    return Asked(groups, items, f"{window} {chance.choice(PREDICATES + OPAQUE)} {by} {chance.choice(HAVINGS)}")


def same(ours: Any, truth: Any, item: str, bound: float) -> bool:
    """The contract: floating sums within 1e-12 × Σ|x| of each other, variances within 1e-12 × Σx², everything else equal."""
    if not isinstance(ours, float) or not isinstance(truth, float):
        return type(ours) is type(truth) and ours == truth
    if item in DEVIATIONS:
        ours, truth = ours**2, truth**2
    return abs(ours - truth) <= 1e-12 * bound


def check_same(asked: Asked, ours: Sequence[dict[str, Any]], truth: Sequence[dict[str, Any]], bounds: Sequence[dict[str, Any]]) -> None:
    assert len(ours) == len(truth), f"{asked.sql()}\n{len(ours)} rows, expected {len(truth)}"
    for mine, theirs, bound in zip(ours, truth, bounds, strict=True):
        assert list(mine) == list(theirs)
        items = {f"v{at}": (text, bound[f"b{at}"] or 0) for at, text in enumerate(asked.items)}
        wrong = {key: (mine[key], theirs[key]) for key in mine if not same(mine[key], theirs[key], *items.get(key, ("", 0)))}
        assert not wrong, f"{asked.sql()}\n{mine['window_end']}: {wrong}"


def spark_window(frame: DataFrame, query: Query, text: str) -> list[dict[str, Any]]:
    """The same query by Spark's window(): any window with SLIDE ≤ RANGE is one with the right start offset."""
    window: TimeWindow = query.window
    begin = (window.first_end - window.range) % window.slide
    call = f"window(ts, '{window.range} microseconds', '{window.slide} microseconds', '{begin} microseconds')"
    head, tail = text.split(" FROM s ")
    tail = tail[tail.index("]") + 1 :]
    where, _, by = tail.partition("GROUP BY")
    if by:
        by = f"GROUP BY {call}, {by}"
    else:
        where, having, condition = tail.partition("HAVING")
        by = f"GROUP BY {call} {having} {condition}"
    select = head.replace("SELECT ", "SELECT window.start AS window_start, window.end AS window_end, ")
    table = frame.sparkSession.sql(f"{select} FROM rows_of_test {where} {by}").toArrow()
    groups = [name for name in table.column_names if name.startswith("g")]
    return sorted(table.to_pylist(), key=row_key(groups))


def row_key(groups: list[str]) -> Any:
    def key(row: dict[str, Any]) -> Any:
        return row["window_end"], [reference.sort_key(row[name]) for name in groups]

    return key


@pytest.mark.parametrize("seed", range(7))
def test_random_queries_equal_the_reference_and_sparks_own_windows(spark: SparkSession, seed: int) -> None:
    chance = random.Random(seed)
    rows = some_rows(chance, 400)
    frame = spark.createDataFrame(rows, SCHEMA).repartition(3).cache()
    frame.createOrReplaceTempView("rows_of_test")
    engine = Engine(
        spark,
        sharing=[Sharing.SHARDS, Sharing.SLICES, Sharing.UNSHARED, Sharing.AUTOMATIC, Sharing.FRAGMENTS][seed % 5],
        slicing=list(Slicing)[seed % 2],
        functions=[*STEADY, *FAILING],
    )
    engine.stream("s", frame, time="ts")
    asked = {f"q{at}": some_query(chance) for at in range(QUERIES_PER_RUN if engine.sharing is not Sharing.UNSHARED else 8)}
    for name, query in asked.items():
        engine.add(query.sql(), name=name)
    sink = MemorySink()
    stopped = engine.run(sink).stopped
    results = sink.tables()
    arrived = [reference.Arrival(dict(zip(frame.columns, row, strict=True))) for row in rows]
    for name, query in asked.items():
        checked = check_query(parse_query(query.with_bounds(), name), engine.streams["s"], AGGREGATES, functions=engine.functions)
        bounds = reference.results(checked, arrived, AGGREGATES)
        truth = [{key: value for key, value in row.items() if not key.startswith("b")} for row in bounds]
        ours = results[name].to_pylist() if name in results else []
        assert (name in stopped) == (bounds.error is not None), f"{query.sql()}: {stopped.get(name)}, and {bounds.error}"
        check_same(query, ours, truth, bounds)
        opaque = any(f"{function.name}(" in query.rest for function in (*STEADY, *FAILING))
        if checked.window.slide <= checked.window.range and not opaque:
            check_same(query, ours, spark_window(frame, checked, query.sql()), bounds)
    frame.unpersist()
