"""What runs and tasks that died leave in an output directory is gone after a resume, and nothing else is."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from muntin import Engine, schema
from muntin.expression.tree import AggregateCall
from muntin.query.model import Output, Query
from muntin.semantics import TimeWindow
from muntin.spark.place import Place
from muntin.spark.sinks.base import EntryId
from muntin.spark.sinks.directory import OutputDirectory
from muntin.spark.sinks.files import FileSink, Layout
from muntin.spark.sinks.spread import Written
from muntin.windows.results import result_schema
from spreading import run_on
from storage import place_at

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def query(name: str, stream: str = "trades") -> Query:
    return Query(name, stream, TimeWindow(60, 60), (Output("total", AggregateCall("sum", (), schema.BIGINT)),))


def rows(total: int) -> pa.Table:
    return pa.Table.from_pylist([{"window_start": 0, "window_end": 60, "total": total}], schema=result_schema(query("any")))


class Crash(BaseException):
    """The process dies: nothing that catches Exception sees it."""


class Directory:
    """An output directory, and the runs that write to it one after another."""

    def __init__(self, place: Place, scratch: Path) -> None:
        self.place, self.scratch = place, scratch

    def opened(self, *queries: Query) -> FileSink:
        sink = FileSink(self.place, "jsonl", Layout.PARTS)
        sink.open("run", queries)
        return sink

    def written(self, sink: FileSink, entry: EntryId, names: Sequence[str], *, instances: int, stream: str = "trades") -> list[Written]:
        """What tasks write, one an instance."""
        writer = sink.writer(stream)
        assert writer is not None
        results = [(name, rows(1)) for name in names]
        return [one for instance in range(instances) for one in writer.write(entry, instance, iter(results), self.scratch)]

    def taken(self, sink: FileSink, entry: EntryId, names: Sequence[str], *, instances: int, stream: str = "trades") -> None:
        sink.commit(entry, [], self.written(sink, entry, names, instances=instances, stream=stream), stream)

    def dying(self, sink: FileSink, entry: EntryId, names: Sequence[str], *, instances: int, stream: str = "trades") -> None:
        """The driver dies when all files are in their places, before the marker."""
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(OutputDirectory, "mark", crash)
            with pytest.raises(Crash):
                self.taken(sink, entry, names, instances=instances, stream=stream)
        sink._owned.let_go()

    def parts(self, name: str) -> list[str]:
        return (self.place / name).files()


def crash(*_: object) -> None:
    raise Crash


@pytest.fixture
def output(home: str, tmp_path: Path) -> Directory:
    return Directory(place_at(home), tmp_path)


A, B, C = query("a", "trades"), query("b", "quotes"), query("c", "quotes")


# -- files of an entry that was not whole ----------------------------------------------------------------------------------------


def test_results_of_a_dropped_query_stay_when_another_stream_is_at_an_entry_of_the_same_number(output: Directory) -> None:
    sink = output.opened(A, B, C)
    output.taken(sink, EntryId(0), ["a"], instances=1)
    for batch in range(3):
        output.taken(sink, EntryId(batch), ["b", "c"], instances=1, stream="quotes")
    sink.close()
    with output.opened(A, C) as again:
        output.taken(again, EntryId(1), ["a"], instances=1)
        output.taken(again, EntryId(3), ["c"], instances=1, stream="quotes")
    assert output.parts("b") == [f"0000000{batch}-00000.jsonl" for batch in range(3)]


def test_a_query_that_was_dropped_after_the_crash_has_the_rows_of_the_entry_once(output: Directory) -> None:
    """The entry is pinned to the queries it had: the replay writes those of the dropped one again."""
    output.dying(output.opened(B, C), EntryId(4), ["b", "c"], instances=3, stream="quotes")
    assert len(output.parts("b")) == 3
    with output.opened(C) as again:
        output.taken(again, EntryId(4), ["b", "c"], instances=2, stream="quotes")
    assert output.parts("b") == output.parts("c") == ["00000004-00000.jsonl", "00000004-00001.jsonl"]


@pytest.mark.parametrize("name", ["q", "_q", "_", "_entries2"])
def test_rows_of_a_query_are_there_once_whatever_its_name(output: Directory, name: str) -> None:
    output.dying(output.opened(query(name)), EntryId(0), [name], instances=3)
    with output.opened(query(name)) as again:
        output.taken(again, EntryId(0), [name], instances=1)
    assert output.parts(name) == ["00000000-00000.jsonl"]


def test_windows_that_are_assembled_in_the_driver_after_a_crash_have_their_rows_once(output: Directory) -> None:
    output.dying(output.opened(A), EntryId(0, 1), ["a"], instances=2)
    with output.opened(A) as again:
        again.write(EntryId(0, 1), [("a", rows(1))], "trades")
    assert output.parts("a") == ["00000000_001.jsonl"]


# -- what tasks leave ------------------------------------------------------------------------------------------------------------


def left_in(place: Place) -> list[str]:
    """Everything that is on its way to the output directory, on the disk."""
    assert place.local is not None
    return sorted(str(path.relative_to(place.local)) for path in (place.local / "_hidden").rglob("*") if path.name != "trades")


def die_in_task(output: Directory, sink: FileSink, entry: EntryId) -> None:
    def dying() -> Iterator[tuple[str, pa.Table]]:
        yield "a", rows(1)
        raise Crash

    writer = sink.writer("trades")
    assert writer is not None
    with pytest.raises(Crash):
        writer.write(entry, 0, dying(), output.scratch)


@pytest.fixture
def disk(tmp_path: Path) -> Directory:
    return Directory(Place.of(tmp_path / "out"), tmp_path)


def test_what_a_task_that_died_was_writing_goes_with_its_entry(disk: Directory) -> None:
    with disk.opened(A) as sink:
        die_in_task(disk, sink, EntryId(3))
        die_in_task(disk, sink, EntryId(4))
        disk.taken(sink, EntryId(3), ["a"], instances=1)
        assert {name.partition("/")[2].partition("/")[2].split("/")[0] for name in left_in(disk.place)} == {"00000004"}
        disk.taken(sink, EntryId(4), ["a"], instances=1)
        assert left_in(disk.place) == []
    assert disk.parts("a") == ["00000003-00000.jsonl", "00000004-00000.jsonl"]


def test_a_resume_clears_what_tasks_of_the_run_before_left(disk: Directory) -> None:
    sink = disk.opened(A)
    die_in_task(disk, sink, EntryId(0))
    disk.written(sink, EntryId(1), ["a"], instances=2)
    (disk.scratch / "out" / "_hidden" / "trades" / ".0123456789abcdef").mkdir()  # as former versions left them
    sink.abandon()
    with disk.opened(A) as again:
        again.write(EntryId(0), [("a", rows(1))], "trades")
    assert not (disk.scratch / "out" / "_hidden").exists()


def test_a_copy_of_a_task_that_comes_late_fails_alone_and_its_files_go_with_the_next_entry(disk: Directory) -> None:
    with disk.opened(A) as sink:
        writer = sink.writer("trades")
        assert writer is not None

        def slow() -> Iterator[tuple[str, pa.Table]]:
            yield "a", rows(7)
            disk.taken(sink, EntryId(0), ["a"], instances=1)
            yield "a", rows(7)

        with pytest.raises(FileNotFoundError):
            writer.write(EntryId(0), 0, slow(), disk.scratch)
        disk.written(sink, EntryId(0), ["a"], instances=1)
        disk.taken(sink, EntryId(1), ["a"], instances=1)
        assert left_in(disk.place) == []
    assert [json.loads(bytes((disk.place / "a" / name).read()))["total"] for name in disk.parts("a")] == [1, 1]


def test_files_that_grow_on_a_machine_s_own_disk_replace_those_of_a_task_that_died(tmp_path: Path, home: str) -> None:
    output = Directory(place_at(home), tmp_path / "scratch")
    with output.opened(A) as sink:
        for _ in range(3):
            die_in_task(output, sink, EntryId(0))
        output.taken(sink, EntryId(0), ["a"], instances=1)
    assert not [path for path in (tmp_path / "scratch").rglob("*") if path.is_file()]


# -- a whole job -----------------------------------------------------------------------------------------------------------------

STREAM = """
CREATE STREAM {name} (ts TIMESTAMP, user STRING)
  WITH (source = 'files', format = 'json', path = '{path}', time = 'ts', max_files_per_trigger = '1');
"""
BY_USER = "CREATE QUERY {name} AS SELECT user, count(*) AS c FROM {stream} [RANGE 10 seconds SLIDE 10 seconds] GROUP BY user;\n"


def add_file(directory: Path, number: int) -> None:
    directory.mkdir(exist_ok=True)
    rows = [{"ts": f"2024-01-01T00:00:{10 * number + second:02d}Z", "user": f"u{user}"} for second in (0, 9) for user in range(9)]
    (directory / f"{number}.json").write_text("".join(json.dumps(row) + "\n" for row in rows))
    os.utime(directory / f"{number}.json", (1_700_000_000 + number,) * 2)


def run_queries(spark: SparkSession, directory: Path, *, instances: int, **queries: str) -> None:
    engine = Engine(spark, assembly="executors", instances=instances)
    streams = "".join(STREAM.format(name=name, path=directory / name) for name in ("a", "b"))
    engine.execute(streams + "".join(BY_USER.format(name=name, stream=stream) for name, stream in queries.items()))
    run_on(engine, directory)


def killed(*_: object) -> None:
    raise RuntimeError("killed here")


def counted(directory: Path, name: str) -> dict[str, int]:
    """How many rows there are, by the number of the batch."""
    parts = sorted((directory / "out" / name).glob("*.jsonl"))
    batches = {part.name.partition("-")[0] for part in parts}
    return {batch: sum(len(part.read_text().splitlines()) for part in parts if part.name.startswith(batch)) for batch in sorted(batches)}


def test_a_query_that_leaves_the_pipeline_keeps_its_results_and_repeats_none(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_file(tmp_path / "a", 0)
    for number in range(3):
        add_file(tmp_path / "b", number)
    run_queries(spark, tmp_path, instances=2, qa="a", qb="b", qb2="b")
    add_file(tmp_path / "b", 3)
    with monkeypatch.context() as patch:
        patch.setattr(OutputDirectory, "mark", killed)
        with pytest.raises(RuntimeError, match="killed here"):
            run_queries(spark, tmp_path, instances=3, qa="a", qb="b", qb2="b")
    add_file(tmp_path / "a", 1)
    add_file(tmp_path / "b", 4)
    run_queries(spark, tmp_path, instances=1, qa="a", qb2="b")
    assert counted(tmp_path, "qa") == {"00000001": 9}
    assert counted(tmp_path, "qb") == {"00000001": 9, "00000002": 9, "00000003": 9}
    assert counted(tmp_path, "qb2") == counted(tmp_path, "qb") | {"00000004": 9}
