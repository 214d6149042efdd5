"""Delta tables of results: the rows and types of the files, commits that a replay finds, and no file left that no log names."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from datetime import date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

from muntin import schema
from muntin.errors import SinkError
from muntin.expression.tree import AggregateCall
from muntin.query.model import Output, Query
from muntin.schema import Type
from muntin.semantics import TimeWindow
from muntin.spark.place import Place
from muntin.spark.sinks.base import EntryId
from muntin.spark.sinks.deltatable import CHECKPOINT_INTERVAL, CommitId, ResultTable
from muntin.spark.sinks.directory import OutputDirectory
from muntin.spark.sinks.files import FileSink, Layout
from muntin.spark.sinks.spread import Written
from muntin.spark.sinks.tables import TableSink
from muntin.spark.sinks.tablestore import storage_options, table_uri
from muntin.timeline import instant_of
from storage import place_at
from test_sinks import ENTRIES, NOON, QUERIES, UTC_MICROS, Crash, query, results


def sink_on(directory: Path | Place, layout: Layout = Layout.PARTS, run: str = "run-1", queries: Sequence[Query] = QUERIES) -> TableSink:
    sink = TableSink(directory, layout)
    sink.open(run, queries)
    return sink


def dead(sink: TableSink) -> None:
    """The process of the sink has died: nothing holds the directory."""
    sink._owned.let_go()


def delta(place: Place | Path, name: str) -> DeltaTable:
    folder = Place.of(place) / name
    return DeltaTable(table_uri(folder), storage_options=storage_options(folder, {}))


def totals(place: Place | Path, name: str = "big") -> list[int]:
    return sorted(delta(place, name).to_pyarrow_table()["total"].to_pylist())


def data_files(directory: Path, name: str = "big") -> set[str]:
    folder = directory / name
    return {str(path.relative_to(folder)) for path in folder.rglob("*.parquet") if "_delta_log" not in path.parts}


def named(directory: Path, name: str = "big") -> set[str]:
    return set(pa.table(delta(directory, name).get_add_actions())["path"].to_pylist())


def spread(sink: TableSink, entry: EntryId, instances: int, scratch: Path, names: Sequence[str] = ("big",)) -> list[Written]:
    """What tasks write, a row of each query by each instance."""
    chunks = [[(name, results((instance, "IBM", instance))) for name in names] for instance in range(instances)]
    return [one for at, some in enumerate(chunks) for one in sink.writer("trades").write(entry, at, iter(some), scratch)]


# -- rows and types ----------------------------------------------------------------------------------------------------------------

VALUES: dict[str, tuple[Type, list[Any]]] = {
    "flag": (schema.BOOLEAN, [True, None]),
    "tiny": (schema.TINYINT, [-128, None]),
    "small": (schema.SMALLINT, [32767, None]),
    "whole": (schema.INT, [-(2**31), None]),
    "big": (schema.BIGINT, [2**63 - 1, None]),
    "single": (schema.FLOAT, [0.5, None]),
    "double": (schema.DOUBLE, [float("inf"), None]),
    "money": (schema.decimal(38, 6), [Decimal("-12.500000"), None]),
    "text": (schema.STRING, ["naïve 窓", None]),
    "day": (schema.DATE, [date(1, 1, 1), None]),
    "moment": (schema.TIMESTAMP, [NOON, None]),
    "local": (schema.TIMESTAMP_NTZ, [datetime(2004, 12, 1, 12), None]),
}


def every_type() -> tuple[Query, pa.Table]:
    outputs = tuple(Output(name, AggregateCall("max", (), type)) for name, (type, _) in VALUES.items())
    some = Query("all", "trades", TimeWindow(60, 60), outputs)
    bounds = results((1, "", 1), (2, "", 2)).select(["window_start", "window_end"])
    from muntin.windows.results import result_schema

    return some, pa.table([*bounds.columns, *(values for _, values in VALUES.values())], schema=result_schema(some))


@pytest.mark.parametrize("layout", Layout)
def test_every_type_of_result_is_in_the_table_as_it_is_in_the_files(tmp_path: Path, layout: Layout) -> None:
    some, table = every_type()
    with sink_on(tmp_path / "tables", layout, queries=[some]) as sink:
        sink.write(EntryId(0), [("all", table)])
    files = FileSink(tmp_path / "files", "parquet", Layout.WHOLE)
    files.open("run-1", [some])
    with files:
        files.write(EntryId(0), [("all", table)])
    assert delta(tmp_path / "tables", "all").to_pyarrow_table().equals(pq.read_table(tmp_path / "files" / "all.parquet"))


def test_readers_skip_files_by_the_bounds_of_windows(tmp_path: Path) -> None:
    with sink_on(tmp_path) as sink:
        for minute in range(3):
            sink.write(EntryId(minute), [("big", results((minute, "IBM", minute))), ("big", results((minute + 10, "SUN", minute)))])
    told = pa.table(delta(tmp_path, "big").get_add_actions(flatten=True)).sort_by("path")
    assert told["num_records"].to_pylist() == [2, 2, 2]
    assert told["min.window_end"].to_pylist() == [NOON + timedelta(minutes=minute) for minute in range(3)]
    assert told["max.window_end"].to_pylist() == [NOON + timedelta(minutes=minute + 10) for minute in range(3)]
    late = delta(tmp_path, "big").to_pyarrow_table(filters=[("window_end", ">", NOON + timedelta(minutes=11))])
    assert late["total"].to_pylist() == [2]


@pytest.mark.parametrize(
    ("bounds", "type", "least", "greatest", "nulls"),
    [
        ([-62_135_596_800_000_001, 0], UTC_MICROS, None, "1970-01-01T00:00:00.000000Z", 0),
        ([0, 253_402_300_800_000_000], UTC_MICROS, "1970-01-01T00:00:00.000000Z", None, 0),
        ([None, 5], pa.int64(), 5, 5, 1),
        ([None, None], UTC_MICROS, None, None, 2),
        ([0.5, 2.5], pa.float64(), 0.5, 2.5, 0),
        ([Decimal("0.5"), Decimal("2.5")], pa.decimal128(20, 1), None, None, 0),
    ],
)
def test_bounds_of_every_kind_are_told_or_left_out(
    tmp_path: Path, bounds: list[Any], type: pa.DataType, least: Any, greatest: Any, nulls: int
) -> None:
    column = pa.array(bounds, type)
    table = pa.table({"window_start": column, "window_end": column})
    with sink_on(tmp_path, queries=[]) as sink:
        sink.write(EntryId(0), [("q", table)])
    added = json.loads((tmp_path / "q" / "_delta_log" / f"{1:020d}.json").read_text().splitlines()[1])["add"]
    stats = json.loads(added["stats"])
    assert (stats["minValues"].get("window_end"), stats["maxValues"].get("window_end")) == (least, greatest)
    assert (stats["numRecords"], stats["nullCount"]["window_end"]) == (2, nulls)
    assert [instant_of(one) if isinstance(one, datetime) else one for one in found(tmp_path)] == bounds


def found(directory: Path) -> list[Any]:
    column = delta(directory, "q").to_pyarrow_table()["window_end"]
    return (column.cast(pa.int64()) if pa.types.is_timestamp(column.type) else column).to_pylist()


# -- entries -----------------------------------------------------------------------------------------------------------------------


def test_an_entry_is_one_commit_to_each_table_with_rows(home: str) -> None:
    place = place_at(home)
    sink = sink_on(place)
    for entry, chunks in ENTRIES:
        sink.write(entry, chunks)
    sink.write(EntryId(2), [("big", results())])
    sink.close()
    assert (totals(place), totals(place, "small")) == ([1, 2, 3], [10, 20, 40])
    assert (delta(place, "big").version(), delta(place, "small").version()) == (2, 3)


def test_files_of_the_driver_and_of_instances_come_with_one_commit(home: str, tmp_path: Path) -> None:
    place = place_at(home)
    sink = sink_on(place)
    written = spread(sink, EntryId(0), 2, tmp_path / "scratch")
    sink.commit(EntryId(0), [("big", results((5, "SUN", 5)))], written, "trades")
    sink.close()
    assert totals(place) == [0, 1, 5]
    assert delta(place, "big").version() == 1
    assert "small" not in place.folders()


def test_a_sink_holds_what_it_committed_and_nothing_later(home: str) -> None:
    sink = sink_on(place_at(home))
    sink.write(EntryId(4), [], "trades")
    again = TableSink(sink.directory)
    dead(sink)
    again.open("run-1", QUERIES)
    for held in (sink, again):
        assert [held.holds(entry, "trades") for entry in (EntryId(4), EntryId(4, 1), EntryId(5))] == [True, False, False]
        assert not held.holds(EntryId(0), "quotes")
    again.close()


def test_a_crash_between_the_commits_of_two_queries_loses_and_repeats_nothing(home: str, tmp_path: Path) -> None:
    """The second table's commit never comes; the replay has three instances instead of two."""
    place = place_at(home)
    sink = sink_on(place)
    append = ResultTable.append
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ResultTable, "append", lambda self, *rest: append(self, *rest) if self.folder.name == "big" else crash())
        written = spread(sink, EntryId(0), 2, tmp_path / "scratch", ["big", "small"])
        with pytest.raises(Crash):
            sink.commit(EntryId(0), [], written, "trades")
    assert totals(place) == [0, 1]
    dead(sink)
    with sink_on(place) as again:
        assert not again.holds(EntryId(0), "trades")
        again.commit(EntryId(0), [], spread(again, EntryId(0), 3, tmp_path / "scratch", ["big", "small"]), "trades")
    assert (totals(place), totals(place, "small")) == ([0, 1], [0, 1, 2])
    assert [len((place / name / "00000000").files()) for name in ("big", "small")] == [2, 3]


def crash(*_: object, **__: object) -> None:
    raise Crash


@pytest.mark.parametrize("moment", ["put", "append", "mark", "sweep"])
def test_a_crash_at_any_step_and_a_replay_leave_the_rows_of_an_undisturbed_run(tmp_path: Path, moment: str) -> None:
    for at in range(len(ENTRIES)):
        directory = tmp_path / str(at)
        sink = sink_on(directory)
        for entry, chunks in ENTRIES[:at]:
            sink.write(entry, chunks)
        owner = {"put": "muntin.spark.sinks.tables.put", "append": ResultTable, "mark": OutputDirectory}.get(moment)
        with pytest.MonkeyPatch.context() as patch:
            if moment == "sweep":
                patch.setattr("muntin.spark.sinks.tableleftovers.Leftovers.sweep", crash)
            elif isinstance(owner, str):
                patch.setattr(owner, crash)
            else:
                patch.setattr(owner, moment, crash)
            with pytest.raises(Crash):
                sink.write(*ENTRIES[at])
        dead(sink)
        with sink_on(directory) as again:
            for entry, chunks in ENTRIES:
                if not again.holds(entry):
                    again.write(entry, chunks)
        assert (totals(directory), totals(directory, "small")) == ([1, 2, 3], [10, 20, 40])
        assert [data_files(directory, name) for name in ("big", "small")] == [named(directory, name) for name in ("big", "small")]


def test_an_overtaken_job_that_wakes_up_in_its_commit_repeats_nothing(tmp_path: Path) -> None:
    """Both looked at the table before either wrote: the later commit of an application conflicts with the other."""
    first, second = (ResultTable(Place.of(tmp_path / "big"), {}) for _ in range(2))
    sink = sink_on(tmp_path)
    sink.write(EntryId(0), [("big", results((1, "IBM", 1)))])
    [file] = [one.data for one in spread(sink, EntryId(1), 1, tmp_path / "scratch")]
    commit = CommitId("muntin run-1 trades", 1 << 31)
    assert not first.has(commit)
    assert not second.has(commit)
    second.append([file], commit)
    with pytest.raises(SinkError, match=r"(?s)the log of a table can be read and written.*big: .*Concurrent transaction failed"):
        first.append([file], commit)
    assert totals(tmp_path) == [0, 1]


def test_logs_have_checkpoints_and_what_was_committed_before_them_is_still_known(tmp_path: Path) -> None:
    sink = sink_on(tmp_path)
    count = 2 * CHECKPOINT_INTERVAL + 3
    for batch in range(count):
        sink.write(EntryId(batch), [("big", results((batch, "IBM", batch)))], "trades")
    assert len(list((tmp_path / "big" / "_delta_log").glob("*.checkpoint.parquet"))) == 2
    dead(sink)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(OutputDirectory, "holds", lambda *_: False)
        with sink_on(tmp_path) as again:
            for batch in range(count):
                again.write(EntryId(batch), [("big", results((batch, "IBM", batch)))], "trades")
    assert totals(tmp_path) == list(range(count))


def test_compaction_and_vacuum_leave_the_rows_and_the_transaction_ids(tmp_path: Path) -> None:
    sink = sink_on(tmp_path)
    for batch in range(3):
        sink.write(EntryId(batch), [("big", results((batch, "IBM", batch)))], "trades")
    assert delta(tmp_path, "big").optimize.compact()["numFilesRemoved"] == 3
    sink.write(EntryId(3), [("big", results((3, "IBM", 3)))], "trades")
    delta(tmp_path, "big").vacuum(retention_hours=0, dry_run=False, enforce_retention_duration=False)
    dead(sink)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(OutputDirectory, "holds", lambda *_: False)
        with sink_on(tmp_path) as again:
            for batch in range(5):
                again.write(EntryId(batch), [("big", results((batch, "IBM", batch)))], "trades")
    assert totals(tmp_path) == list(range(5))


# -- leftovers ---------------------------------------------------------------------------------------------------------------------


def test_what_tasks_that_died_left_goes_with_the_next_entry(home: str, tmp_path: Path) -> None:
    place, scratch = place_at(home), tmp_path / "scratch"
    sink = sink_on(place)
    spread(sink, EntryId(0), 3, scratch)  # of an attempt that does not count
    sink.commit(EntryId(0), [], spread(sink, EntryId(0), 2, scratch), "trades")
    spread(sink, EntryId(0), 1, scratch)  # a copy of a task that came late
    assert len((place / "big" / "00000000").files()) == 6
    sink.commit(EntryId(1), [], spread(sink, EntryId(1), 2, scratch), "trades")
    assert len((place / "big" / "00000000").files()) == 2
    spread(sink, EntryId(1), 1, scratch)
    sink.close()
    assert len((place / "big" / "00000001").files()) == 2
    assert totals(place) == [0, 0, 1, 1]


def test_a_resumed_run_removes_what_no_log_names_and_keeps_former_versions_and_files_of_others(tmp_path: Path) -> None:
    scratch, directory = tmp_path / "scratch", tmp_path / "out"
    sink = sink_on(directory)
    sink.write(EntryId(0), [("big", results((0, "IBM", 0)))], "trades")
    sink.commit(EntryId(1), [], spread(sink, EntryId(1), 2, scratch, ["big", "small"]), "trades")
    spread(sink, EntryId(1), 1, scratch)
    spread(sink, EntryId(2), 2, scratch, ["big", "small"])
    (directory / "big" / "00000002" / "precious.parquet").touch()
    dead(sink)
    delta(directory, "big").optimize.compact()
    with sink_on(directory, queries=[query("small")]) as again:
        again.write(EntryId(2), [("small", results((2, "IBM", 2)))], "trades")
    assert totals(directory) == [0, 0, 1]
    assert delta(directory, "big").to_pyarrow_table().num_rows == 3
    before = DeltaTable(directory / "big", version=2).to_pyarrow_table()
    assert sorted(before["total"].to_pylist()) == [0, 0, 1]
    assert data_files(directory) - named(directory) == {*named_at(directory, 2), "00000002/precious.parquet"}
    assert data_files(directory, "small") == named(directory, "small")


def named_at(directory: Path, version: int) -> set[str]:
    return set(pa.table(DeltaTable(directory / "big", version=version).get_add_actions())["path"].to_pylist())


# -- whose tables ------------------------------------------------------------------------------------------------------------------


def test_tables_of_another_run_are_refused(tmp_path: Path) -> None:
    sink_on(tmp_path).close()
    with pytest.raises(SinkError, match=r"(?s)belongs to one run.*run is run-1, not run-2.*way out: choose an empty output directory"):
        sink_on(tmp_path, run="run-2")
    with pytest.raises(SinkError, match="layout is parts, not whole"):
        sink_on(tmp_path, Layout.WHOLE)
    files = FileSink(tmp_path, "parquet", Layout.PARTS)
    with pytest.raises(SinkError, match="files is delta, not parquet"):
        files.open("run-1", QUERIES)
    sink_on(tmp_path).close()


def test_a_second_job_on_the_same_directory_is_refused_while_the_first_runs(tmp_path: Path) -> None:
    first = sink_on(tmp_path)
    with pytest.raises(SinkError, match="one job writes to a directory at a time"):
        sink_on(tmp_path)
    first.close()
    sink_on(tmp_path).close()


@pytest.mark.parametrize("layout", Layout)
def test_a_table_of_somebody_else_s_is_not_touched(tmp_path: Path, layout: Layout) -> None:
    DeltaTable.create(tmp_path / "big", results().schema)
    with pytest.raises(SinkError, match="big is there already"):
        sink_on(tmp_path, layout)
    sink = sink_on(tmp_path, layout, queries=[query("small")])
    with pytest.raises(SinkError, match=r"(?s)a query's table was made by Muntin.*way out: rename the query"):
        sink.admit(query("big"))
    sink.close()
    assert delta(tmp_path, "big").version() == 0


@pytest.mark.parametrize("name", ["", "..", "../big", "a/b", "_entries", "_hidden", ".hidden"])
def test_no_query_s_name_leads_out_of_the_directory(tmp_path: Path, name: str) -> None:
    with pytest.raises(SinkError, match="can name a file"):
        sink_on(tmp_path / "out", queries=[query(name)])
    with sink_on(tmp_path / "out") as sink, pytest.raises(SinkError, match="can name a file"):
        sink.write(EntryId(0), [(name, results((1, "IBM", 1)))])
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


# -- columns -----------------------------------------------------------------------------------------------------------------------


def selecting(*columns: tuple[str, Type], name: str = "big") -> Query:
    return Query(name, "trades", TimeWindow(60, 60), tuple(Output(column, AggregateCall("sum", (), type)) for column, type in columns))


def test_a_query_with_new_columns_adds_them_to_its_table(tmp_path: Path) -> None:
    wide = [("symbol", schema.STRING), ("total", schema.BIGINT), ("top", schema.DOUBLE), ("at", schema.TIMESTAMP_NTZ)]
    sink = sink_on(tmp_path)
    sink.write(EntryId(0), [("big", results((0, "IBM", 0)))], "trades")
    sink.admit(selecting(*wide))
    assert delta(tmp_path, "big").to_pyarrow_table().column_names == results().column_names
    more = results((1, "IBM", 1)).append_column("top", pa.array([0.5])).append_column("at", pa.array([NOON.replace(tzinfo=None)]))
    sink.write(EntryId(1), [("big", more)], "trades")
    dead(sink)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(OutputDirectory, "holds", lambda *_: False)
        with sink_on(tmp_path, queries=[selecting(*wide)]) as again:
            again.write(EntryId(0), [("big", results((0, "IBM", 0)))], "trades")
            again.write(EntryId(2), [("big", results((2, "IBM", 2)))], "trades")  # an entry of the query as it was
    read = delta(tmp_path, "big").to_pyarrow_table().sort_by("total")
    assert read.column_names == [*results().column_names, "top", "at"]
    assert (read["total"].to_pylist(), read["top"].to_pylist()) == ([0, 1, 2], [None, 0.5, None])


@pytest.mark.parametrize(
    ("columns", "complaint"),
    [
        ([("symbol", schema.STRING), ("total", schema.DOUBLE)], "total was int64 and is double"),
        ([("symbol", schema.STRING)], "there is no total any more"),
        ([("symbol", schema.STRING), ("Total", schema.BIGINT)], "total is now Total"),
        ([("symbol", schema.STRING), ("total", schema.BIGINT), ("new", schema.DOUBLE)], ""),
        ([("total", schema.BIGINT), ("symbol", schema.STRING)], ""),
    ],
)
def test_a_query_whose_columns_are_not_those_of_its_table_is_refused(
    tmp_path: Path, columns: list[tuple[str, Type]], complaint: str
) -> None:
    sink = sink_on(tmp_path)
    sink.write(EntryId(0), [("big", results((0, "IBM", 0)))])
    if complaint:
        law = r"(?s)a table's columns stay as they are; new ones may come to them.*found: big: {}.*way out: give the query another name"
        with pytest.raises(SinkError, match=law.format(complaint)):
            sink.admit(selecting(*columns))
        sink.admit(selecting(*columns, name="other"))
        dead(sink)
        with pytest.raises(SinkError, match=complaint):
            sink_on(tmp_path, queries=[selecting(*columns)])
    else:
        sink.admit(selecting(*columns))
        sink.close()
    sink = sink_on(tmp_path)
    sink.write(EntryId(1), [("big", results((1, "IBM", 1)))])
    sink.close()
    assert totals(tmp_path) == [0, 1]


def test_columns_that_were_admitted_but_have_no_rows_yet_count_too(tmp_path: Path) -> None:
    base = [("symbol", schema.STRING), ("total", schema.BIGINT)]
    with sink_on(tmp_path) as sink:
        sink.write(EntryId(0), [("big", results((0, "IBM", 0)))])
        sink.admit(selecting(*base, ("new", schema.DOUBLE)))
        with pytest.raises(SinkError, match="new was double and is string"):
            sink.admit(selecting(*base, ("new", schema.STRING)))


def test_columns_are_kept_by_a_query_whose_table_a_batch_in_hand_may_be_making(tmp_path: Path) -> None:
    both = [("symbol", schema.STRING), ("total", schema.BIGINT)]
    with sink_on(tmp_path, queries=[selecting(*both)]) as sink:
        with pytest.raises(SinkError, match="there is no total any more"):
            sink.admit(selecting(*both[:1]))
        sink.write(EntryId(0), [("big", results((0, "IBM", 0)))])
    sink_on(tmp_path, queries=[selecting(*both)]).close()


@pytest.mark.parametrize("layout", Layout)
def test_columns_that_no_table_can_have_are_refused(tmp_path: Path, layout: Layout) -> None:
    with pytest.raises(SinkError, match=r"(?s)a column of a table has a type.*nothing of big is always NULL.*CAST\(NULL AS BIGINT\)"):
        sink_on(tmp_path, layout, queries=[selecting(("nothing", schema.NULL))])
    with pytest.raises(SinkError, match=r"(?s)the name of a table's column has no spaces.*sum\(x\) of big.*name it: sum\(x\) AS …"):
        sink_on(tmp_path, layout, queries=[selecting(("sum(x)", schema.BIGINT))])


# -- whole runs --------------------------------------------------------------------------------------------------------------------


def test_a_whole_run_replaces_the_rows_of_the_last_one_only_when_it_has_ended(home: str, tmp_path: Path) -> None:
    place, scratch = place_at(home), tmp_path / "scratch"
    with sink_on(place, Layout.WHOLE) as sink:
        sink.commit(EntryId(0), [("big", results((7, "IBM", 7)))], spread(sink, EntryId(0), 2, scratch), "trades")
        sink.write(EntryId(0), [("small", results())], "quotes")
        assert not (place / "big" / "_delta_log").files()
    assert (totals(place), totals(place, "small")) == ([0, 1, 7], [])
    failing = sink_on(place, Layout.WHOLE, run="run-2")
    failing.commit(EntryId(0), [("big", results((8, "IBM", 8)))], spread(failing, EntryId(0), 1, scratch), "trades")
    failing.abandon()
    assert totals(place) == [0, 1, 7]
    assert len((place / "big" / "00000000").files()) == 3
    died = sink_on(place, Layout.WHOLE, run="run-3")
    died.write(EntryId(0), [("big", results((8, "IBM", 8)))], "trades")
    dead(died)
    with sink_on(place, Layout.WHOLE, run="run-4") as last:
        last.write(EntryId(0), [("big", results((9, "IBM", 9)))], "trades")
    assert (totals(place), totals(place, "small")) == ([9], [])
    assert len((place / "big" / "00000000").files()) == 4
    assert json.loads(bytes((place / "_muntin.json").read()))["run"] == "run-4"


def test_a_whole_run_may_have_other_columns_than_the_last_one(tmp_path: Path) -> None:
    with sink_on(tmp_path, Layout.WHOLE) as sink:
        sink.write(EntryId(0), [("big", results((1, "IBM", 1)))])
    other = [selecting(("at", schema.TIMESTAMP_NTZ))]
    with sink_on(tmp_path, Layout.WHOLE, run="run-2", queries=other):
        pass
    read = delta(tmp_path, "big").to_pyarrow_table()
    assert (read.column_names, read.num_rows) == (["window_start", "window_end", "at"], 0)


def test_a_whole_run_that_dies_while_it_replaces_tables_names_no_run(tmp_path: Path) -> None:
    with sink_on(tmp_path, Layout.WHOLE):
        pass
    sink = sink_on(tmp_path, Layout.WHOLE, run="run-2")
    sink.write(*ENTRIES[0])
    replace_rows = ResultTable.replace
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ResultTable, "replace", lambda self, *rest: replace_rows(self, *rest) if self.folder.name == "big" else crash())
        with pytest.raises(Crash):
            sink.close()
    dead(sink)
    assert json.loads((tmp_path / "_muntin.json").read_text())["run"] == ""
    with sink_on(tmp_path, Layout.WHOLE, run="run-3") as again:
        again.write(*ENTRIES[0])
    assert (totals(tmp_path), totals(tmp_path, "small")) == ([1], [10])
    assert json.loads((tmp_path / "_muntin.json").read_text())["run"] == "run-3"


# -- stores and packages -----------------------------------------------------------------------------------------------------------


def test_a_uri_of_s3_tells_delta_rs_what_it_tells_pyarrow(endpoint: str, monkeypatch: pytest.MonkeyPatch) -> None:
    host = endpoint.replace(":", "%3A")
    place = Place.of(f"s3://muntin:sec%2Fret@state/a%20b?scheme=http&endpoint_override={host}&region=us-east-1") / "big"
    assert table_uri(place) == "s3://state/a%20b/big"
    assert storage_options(place, {"AWS_REGION": "eu-west-1", "timeout": "5s"}) == {
        "AWS_ACCESS_KEY_ID": "muntin",
        "AWS_SECRET_ACCESS_KEY": "sec/ret",
        "AWS_REGION": "eu-west-1",
        "AWS_ENDPOINT_URL": f"http://{endpoint}",
        "AWS_ALLOW_HTTP": "true",
        "timeout": "5s",
    }
    assert "sec" not in repr(place)
    assert "sec" not in str(place)


def test_a_directory_with_odd_letters_in_its_name_has_its_tables(tmp_path: Path) -> None:
    odd = tmp_path / "a b#c?ü"
    with sink_on(odd) as sink:
        sink.write(*ENTRIES[0])
    assert totals(odd) == [1]
    with pytest.raises(SinkError, match=r"the path of a table has neither % nor \\ in it"):
        TableSink(tmp_path / "a%20b")


def test_a_log_that_cannot_be_read_is_told(tmp_path: Path) -> None:
    with sink_on(tmp_path) as sink:
        sink.write(*ENTRIES[0])
    (tmp_path / "big" / "_delta_log" / f"{0:020d}.json").write_text("{")
    with pytest.raises(SinkError, match=r"(?s)the log of a table can be read and written.*big: .*storage_options"):
        sink_on(tmp_path)


def test_without_deltalake_there_is_no_table_sink(tmp_path: Path) -> None:
    program = "import sys; sys.modules['deltalake'] = None; import muntin; muntin.TableSink('out')"
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, cwd=tmp_path)
    assert found.returncode == 1
    assert "way out: pip install muntin[delta]" in found.stderr
