"""The laws with static tables: shared = unshared = reference, and the reference's inner join is SQLite's."""

from __future__ import annotations

import sqlite3
from collections import Counter
from dataclasses import replace
from decimal import Decimal
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cases import cut, dyadic, moment
from join_cases import LANES, PIPELINE, SEGS, SOURCES, TABLES, TUPLE_WINDOWS, Source, checked, some_text
from muntin import reference
from muntin.aggregates import AGGREGATES
from muntin.plan.divide import Sharing
from muntin.plan.shared import shared_plan
from muntin.query.model import Query
from muntin.timeline import Duration
from python_engine import Batch, PythonEngine
from test_laws import run, same

Rows = list[dict[str, Any]]
(STREAM_S,) = PIPELINE.streams
KEYS = {"names": ["id", "seg", "rate"], "lanes": ["id", "lane", "seg"]}


def numbered(rows: Rows) -> Rows:
    return [{"id": at, **row} for at, row in enumerate(rows)]


stream_rows = st.lists(
    st.fixed_dictionaries(
        {
            "ts": st.integers(0, 60).map(moment),
            "seg": st.sampled_from(SEGS),
            "lane": st.sampled_from(LANES),
            "n": st.none() | st.integers(-5, 5),
            "x": st.none() | dyadic,
        }
    ),
    max_size=15,
).map(numbered)
cents = st.integers(-500, 500).map(lambda number: Decimal(number).scaleb(-2))
tables = st.fixed_dictionaries(
    {
        "names": st.lists(
            st.fixed_dictionaries({"seg": st.sampled_from(SEGS), "rate": st.sampled_from(LANES), "kind": st.sampled_from(SEGS)}), max_size=6
        ).map(numbered),
        "lanes": st.lists(
            st.fixed_dictionaries({"lane": st.sampled_from(LANES), "seg": st.sampled_from(SEGS), "m": st.none() | cents}), max_size=6
        ).map(numbered),
    }
)


@st.composite
def queries(draw: st.DrawFn, name: str) -> Query:
    return checked(some_text(lambda some: draw(st.sampled_from(some)), "microseconds"), name)


query_sets = st.integers(1, 6).flatmap(lambda count: st.tuples(*(queries(f"q{at}") for at in range(count))))


@settings(max_examples=400)
@given(
    some_queries=query_sets,
    some_rows=stream_rows,
    some_tables=tables,
    places=st.lists(st.integers(0, 100), max_size=3),
    sharing=st.sampled_from(Sharing),
    slack=st.none() | st.integers(0, 20),
    restart_after=st.none() | st.integers(0, 2),
)
def test_queries_with_and_without_joins_give_together_what_the_reference_gives(
    some_queries: tuple[Query, ...],
    some_rows: Rows,
    some_tables: dict[str, Rows],
    places: list[int],
    sharing: Sharing,
    slack: int | None,
    restart_after: int | None,
) -> None:
    batches = cut(some_rows, places)
    ours = run(
        shared_plan(some_queries, AGGREGATES, sharing=sharing), batches, slack=slack, restart_after=restart_after, tables=some_tables
    )
    arrived, _ = reference.arrivals(batches, time="ts", slack=10**9 if slack is None else slack)
    for query in some_queries:
        ours.check(query, reference.results(query, arrived, AGGREGATES, tables=some_tables))


@st.composite
def queries_by_tuple(draw: st.DrawFn) -> Query:
    window = draw(st.sampled_from(TUPLE_WINDOWS)).format(unit="microseconds")
    return checked(some_text(lambda some: draw(st.sampled_from(some)), "microseconds", window), "q")


@settings(max_examples=150)
@given(
    some_queries=st.lists(queries_by_tuple(), min_size=1, max_size=3),
    some_rows=stream_rows,
    some_tables=tables,
    places=st.lists(st.integers(0, 100), max_size=3),
    slack=st.integers(0, 20),
    restart_after=st.none() | st.integers(0, 2),
)
def test_a_tuple_ends_windows_whatever_joins_make_of_it(
    some_queries: list[Query], some_rows: Rows, some_tables: dict[str, Rows], places: list[int], slack: int, restart_after: int | None
) -> None:
    named = [replace(one, name=f"q{at}") for at, one in enumerate(some_queries)]
    engine = PythonEngine(replace(STREAM_S, slack=Duration(slack)), named, tables=some_tables)
    engine.run([Batch(batch) for batch in cut(some_rows, places)], restart_after=restart_after)
    for query in named:
        ours, truth = engine.results[query.name], engine.truth(query)
        assert same(ours, truth), f"{query}\nours  {ours}\ntruth {truth}"


@pytest.mark.parametrize("source", [source for source in SOURCES if source.tables], ids=lambda source: source.on)
@given(some_rows=stream_rows, some_tables=tables)
def test_the_inner_join_of_the_reference_is_sqlites(source: Source, some_rows: Rows, some_tables: dict[str, Rows]) -> None:
    """Duplicate keys multiply, keys that nothing meets and NULLs vanish."""
    query = checked(f"SELECT count(*) AS c FROM s T [RANGE 1 hour SLIDE 1 hour WATTR ts], {source.tables} WHERE {source.on}", "q")
    ours = [one.row for one in reference.joined(query, [reference.Arrival(row) for row in some_rows], some_tables)]
    found = [Met(row["id"], tuple(sorted((join.table, row[f"{join.name}.id"]) for join in query.joins))) for row in ours]
    assert Counter(found) == Counter(met_in_sqlite(source, some_rows, some_tables))


class Met(NamedTuple):
    """A row of the stream and the rows of tables that it meets, by their ids."""

    row: int
    others: tuple[tuple[str, int], ...]


def met_in_sqlite(source: Source, some_rows: Rows, some_tables: dict[str, Rows]) -> list[Met]:
    judge = sqlite3.connect(":memory:")
    for name, columns, rows in [("s", ["id", "seg", "lane"], some_rows), *((name, KEYS[name], some_tables[name]) for name in TABLES)]:
        judge.execute(f"CREATE TABLE {name} ({', '.join(columns)})")
        judge.executemany(f"INSERT INTO {name} VALUES (?, ?, ?)", [[row[column] for column in columns] for row in rows])
    names, aliases = zip(*(table.split() for table in source.tables.split(", ")), strict=True)
    ids = ", ".join(f"{alias}.id" for alias in ("T", *aliases))
    found = judge.execute(f"SELECT {ids} FROM s T, {source.tables} WHERE {source.on}").fetchall()
    judge.close()
    return [Met(row, tuple(sorted(zip(names, others, strict=True)))) for row, *others in found]
