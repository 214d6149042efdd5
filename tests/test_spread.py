"""Where windows are assembled, and how results that executors write become visible: once, whatever tasks and runs do."""

from __future__ import annotations

import pickle
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from muntin import schema
from muntin.disorder import Seen
from muntin.errors import Refusal
from muntin.expression.tree import AggregateCall, Column, GroupKey
from muntin.plan.family import BUCKETS, Family
from muntin.plan.placing import MANY_GROUPS, Placement, Placing
from muntin.query.model import GroupColumn, Output, Query
from muntin.semantics import Attribute, TimeWindow
from muntin.spark.crews import checked_instances
from muntin.spark.delivery import merged
from muntin.spark.facts import NO_ROWS, BatchFacts
from muntin.spark.place import Place
from muntin.spark.sinks.base import EntryId
from muntin.spark.sinks.files import FileSink, Layout
from muntin.spark.sinks.spread import Written
from storage import place_at

NO_SPARK: Any = None  # it is asked for its cores only where nothing else was
SYMBOL = Column("symbol", schema.STRING)
NOON = datetime(2004, 12, 1, 12, tzinfo=UTC)
TS = Attribute("ts")
ALL, BY_SYMBOL = Family((), (), TS), Family((), (SYMBOL,), TS)
QUERY = Query(
    "big",
    "trades",
    TimeWindow(60, 60),
    (Output("symbol", GroupKey(0, schema.STRING)), Output("total", AggregateCall("sum", (), schema.BIGINT))),
    group_by=(GroupColumn("symbol", SYMBOL),),
)


# -- where ----------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("groups", "spread"), [(MANY_GROUPS - 1, False), (MANY_GROUPS, True), (MANY_GROUPS + 1, True)])
def test_many_groups_are_assembled_on_the_executors(groups: int, spread: bool) -> None:
    placing = Placing("ts", Placement.AUTOMATIC, 4)
    placing.learn({BY_SYMBOL: groups})
    assert placing(BY_SYMBOL) is spread
    assert f"{groups:,} groups" in placing.reason(BY_SYMBOL)
    assert ("on the executors, by 4 instances" in placing.reason(BY_SYMBOL)) is spread


@pytest.mark.parametrize("placement", Placement)
def test_a_query_without_group_by_is_assembled_in_the_driver(placement: Placement) -> None:
    placing = Placing("ts", placement, 4)
    assert not placing(ALL)
    assert placing.reason(ALL) == "assembled in the driver: one group"


@pytest.mark.parametrize(
    ("family", "why"),
    [
        (Family((), (SYMBOL,), TS, by_tuple=True), "executors take no slide-by-tuple windows"),
        (Family((), (SYMBOL,), Attribute("price")), "executors take windows over ts, these are over price"),
    ],
)
def test_windows_that_executors_do_not_take_are_assembled_in_the_driver(family: Family, why: str) -> None:
    placing = Placing("ts", Placement.EXECUTORS, 4)
    assert not placing(family)
    assert placing.reason(family) == f"assembled in the driver: {why}"
    assert placing(BY_SYMBOL)


def test_facts_of_the_parts_of_a_batch_add_up() -> None:
    one = BatchFacts(3, dead=1, seen={"ts": {(): Seen(2, 5, 9)}}, missing={"price": 1})
    two = BatchFacts(4, markers=1, seen={"ts": {(): Seen(3, 2, 7, marker=4)}, "price": {("a",): Seen(1, 6, 6)}}, missing={"price": 2})
    seen = {"ts": {(): Seen(5, 2, 9, marker=4)}, "price": {("a",): Seen(1, 6, 6)}}
    assert one + two == BatchFacts(7, 1, 1, seen, {"price": 3})
    assert sum([one, two], NO_ROWS) == one + two


def test_a_decision_stands_while_the_job_runs() -> None:
    placing = Placing("ts", Placement.AUTOMATIC, 4)
    assert not placing(BY_SYMBOL)
    placing.learn({BY_SYMBOL: 10 * MANY_GROUPS})
    assert not placing(BY_SYMBOL)


def test_what_hinders_executors_is_said() -> None:
    placing = Placing("ts", Placement.AUTOMATIC, 4, "there is no checkpoint", {BY_SYMBOL: 10 * MANY_GROUPS})
    assert not placing(BY_SYMBOL)
    assert placing.reason(BY_SYMBOL) == "assembled in the driver: there is no checkpoint"


def test_a_placement_nobody_knows_is_refused() -> None:
    with pytest.raises(Refusal, match=r"(?s)driver or on the executors.*'moon'.*way out: choose one of driver, executors, automatic"):
        Placement.named("moon")


@pytest.mark.parametrize("asked", [-1, 0, BUCKETS + 1])
def test_as_many_instances_as_there_cannot_be_are_refused(asked: int) -> None:
    law = r"at least one instance, and by at most one for each of the 16,384 buckets"
    with pytest.raises(Refusal, match=rf"(?s){law}.*found: instances = {asked:,}\n.*way out: choose 1 to 16,384"):
        checked_instances(NO_SPARK, asked)


@pytest.mark.parametrize("asked", [1, 2, BUCKETS - 1, BUCKETS])
def test_a_number_of_instances_that_can_be_is_taken(asked: int) -> None:
    assert checked_instances(NO_SPARK, asked) == asked


# -- files ----------------------------------------------------------------------------------------------------------------------


def table(*rows: tuple[str | None, int]) -> pa.Table:
    times = pa.array([NOON] * len(rows), pa.timestamp("us", "UTC"))
    symbols, totals = pa.array([symbol for symbol, _ in rows], pa.string()), pa.array([total for _, total in rows])
    return pa.table({"window_start": times, "window_end": times, "symbol": symbols, "total": totals})


def opened(place: Place) -> FileSink:
    sink = FileSink(place, "jsonl", Layout.PARTS)
    sink.open("run", [QUERY])
    return sink


def task(sink: FileSink, entry: EntryId, instance: int, total: int, scratch: Path) -> list[Written]:
    """What one task writes, on an executor that got the writer pickled."""
    writer = pickle.loads(pickle.dumps(sink.writer("trades")))
    written: list[Written] = writer.write(entry, instance, iter([("big", table((f"s{instance}", total)))]), scratch)
    return written


def parts(place: Place) -> dict[str, str]:
    return {name: bytes((place / "big" / name).read()).decode() for name in (place / "big").files()}


def test_what_executors_write_is_seen_when_the_driver_commits(home: str, tmp_path: Path) -> None:
    place, entry = place_at(home), EntryId(3)
    with opened(place) as sink:
        written = [one for instance in range(2) for one in task(sink, entry, instance, 7, tmp_path)]
        late = task(sink, entry, 1, 8, tmp_path)
        assert late != written[1:]
        assert parts(place) == {}
        assert not sink.holds(entry, "trades")
        sink.commit(entry, [], written, "trades")
        assert sink.holds(entry, "trades")
        assert list(parts(place)) == ["00000003-00000.jsonl", "00000003-00001.jsonl"]
        assert all('"total": 7' in text for text in parts(place).values())
        assert (place / "_hidden" / "trades").folders() == []


def test_a_run_that_goes_on_with_fewer_instances_leaves_nothing_of_the_try_before(home: str, tmp_path: Path) -> None:
    place, entry = place_at(home), EntryId(3)
    sink = opened(place)
    sink.commit(EntryId(2), [], task(sink, EntryId(2), 2, 1, tmp_path), "trades")
    for instance in range(3):  # the driver dies between the last rename and the marker
        for one in task(sink, entry, instance, 5, tmp_path):
            place.move([(place / "_hidden" / "trades" / str(entry) / one.name, place / "big" / f"{entry}-{instance:05d}.jsonl")])
    sink.abandon()
    with opened(place) as again:
        assert again.holds(EntryId(2), "trades")
        assert not again.holds(entry, "trades")
        again.commit(entry, [], task(again, entry, 0, 6, tmp_path), "trades")
    assert list(parts(place)) == ["00000002-00002.jsonl", "00000003-00000.jsonl"]
    assert '"total": 6' in parts(place)["00000003-00000.jsonl"]


def test_results_of_instances_come_together_in_order() -> None:
    found = merged([table(("b", 1), ("d", 2)), table((None, 3), ("a", 4), ("c", 5))], QUERY)
    assert found["symbol"].to_pylist() == [None, "a", "b", "c", "d"]
    assert found["total"].to_pylist() == [3, 4, 1, 5, 2]
