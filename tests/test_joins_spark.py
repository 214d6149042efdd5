"""Random queries with and without joins, many to a run, on real Spark: shared = unshared = reference."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from pyspark.sql import SparkSession

from join_cases import LANES, SEGS, STREAM, TABLES, TUPLE_WINDOWS, some_text
from muntin import Engine, Sharing, reference
from muntin.aggregates import AGGREGATES
from test_laws import same

START = datetime(2026, 1, 1, tzinfo=UTC)


def some_rows(chance: random.Random, count: int) -> list[tuple[Any, ...]]:
    return [
        (
            at,
            START + timedelta(seconds=chance.randrange(120)),
            chance.choice(SEGS),
            chance.choice(LANES),
            chance.choice([None, chance.randint(-5, 5)]),
            chance.choice([None, chance.randint(-800, 800) / 8]),
        )
        for at in range(count)
    ]


def some_tables(chance: random.Random) -> dict[str, list[tuple[Any, ...]]]:
    """Some keys twice and more, some not at all."""
    names = [(at, chance.choice(SEGS[:3]), chance.choice(LANES), chance.choice(SEGS)) for at in range(6)]
    lanes = [(at, chance.choice(LANES[:3]), chance.choice(SEGS), Decimal(chance.randint(-500, 500)).scaleb(-2)) for at in range(6)]
    return {"names": names, "lanes": lanes}


def as_dictionaries(rows: list[tuple[Any, ...]], columns: str) -> list[dict[str, Any]]:
    names = [column.split()[0] for column in columns.split(", ")]
    return [dict(zip(names, row, strict=True)) for row in rows]


@pytest.mark.parametrize(("sharing", "count"), [(Sharing.AUTOMATIC, 24), (Sharing.UNSHARED, 6)], ids=["shared", "unshared"])
def test_random_queries_over_tables_equal_the_reference(spark: SparkSession, sharing: Sharing, count: int) -> None:
    """Both runs have the same first queries over the same rows."""
    chance = random.Random(17)
    rows, tables = some_rows(chance, 200), some_tables(chance)
    engine = Engine(spark, sharing=sharing)
    engine.stream("s", spark.createDataFrame(rows, STREAM).repartition(2), time="ts")
    for name, of_table in tables.items():
        engine.table(name, spark.createDataFrame(of_table, TABLES[name]))
    for at in range(count):
        engine.add(some_text(chance.choice, "seconds"), name=f"q{at}")
    results = engine.run()
    arrived = [reference.Arrival(row) for row in as_dictionaries(rows, STREAM)]
    declared = {name: as_dictionaries(of_table, TABLES[name]) for name, of_table in tables.items()}
    joining = 0
    for query in engine.queries:
        truth = reference.results(query, arrived, AGGREGATES, tables=declared)
        ours = results[query.name].to_pylist()
        assert same(ours, truth), f"{query.text}\nours  {ours}\ntruth {truth}"
        joining += bool(query.joins and truth)
    assert joining > count / 2


def test_a_tuple_ends_windows_whatever_joins_make_of_it_on_spark_too(spark: SparkSession) -> None:
    """Tuples without a match, and with several; the rows are numbered as they come."""
    chance = random.Random(28)
    rows, tables = some_rows(chance, 60), some_tables(chance)
    engine = Engine(spark)
    engine.stream("s", spark.createDataFrame(rows, STREAM).coalesce(1), time="ts")
    for name, of_table in tables.items():
        engine.table(name, spark.createDataFrame(of_table, TABLES[name]))
    for at, window in enumerate(TUPLE_WINDOWS):
        engine.add(some_text(chance.choice, "seconds", window.format(unit="seconds")), name=f"q{at}")
    assert sum(bool(query.joins) for query in engine.queries) >= 4
    results = engine.run()
    arrived = [reference.Arrival(row) for row in as_dictionaries(rows, STREAM)]
    declared = {name: as_dictionaries(of_table, TABLES[name]) for name, of_table in tables.items()}
    for query in engine.queries:
        truth = reference.results(query, arrived, AGGREGATES, tables=declared)
        ours = results[query.name].to_pylist()
        assert truth, query.text
        assert same(ours, truth), f"{query.text}\nours  {ours}\ntruth {truth}"
