"""Sinks: the text of every value, whole files or none, and what a crash at any moment leaves to a replay."""

from __future__ import annotations

import csv
import io
import json
import math
import os
import resource
from collections.abc import Iterator
from contextlib import nullcontext, suppress
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from muntin import schema
from muntin.errors import SinkError
from muntin.expression.tree import AggregateCall, GroupKey
from muntin.query.model import Output, Query
from muntin.schema import Type
from muntin.semantics import TimeWindow
from muntin.spark.place import Place
from muntin.spark.sinks.base import EntryId, Sink
from muntin.spark.sinks.callback import CallbackSink
from muntin.spark.sinks.console import ConsoleSink
from muntin.spark.sinks.directory import KEPT_MARKERS
from muntin.spark.sinks.files import FileSink, Layout
from muntin.spark.sinks.memory import MemorySink
from muntin.spark.sinks.tables import TableSink
from muntin.spark.sinks.text import csv_header, csv_lines, json_lines
from muntin.spark.sinks.writers import WRITERS, Format

NOON = datetime(2004, 12, 1, 12, tzinfo=UTC)
UTC_MICROS = pa.timestamp("us", "UTC")


def query(name: str, key: Type = schema.STRING, value: Type = schema.BIGINT) -> Query:
    outputs = (Output("symbol", GroupKey(0, key)), Output("total", AggregateCall("sum", (), value)))
    return Query(name, "trades", TimeWindow(60, 60), outputs)


QUERIES = [query("big"), query("small")]


def results(*rows: tuple[int, str | None, int | None]) -> pa.Table:
    """Rows (minute the window ends at after noon, symbol, total)."""
    ends = [NOON + timedelta(minutes=minute) for minute, _, _ in rows]
    starts = [end - timedelta(minutes=1) for end in ends]
    return pa.table(
        {
            "window_start": pa.array(starts, UTC_MICROS),
            "window_end": pa.array(ends, UTC_MICROS),
            "symbol": pa.array([symbol for _, symbol, _ in rows], pa.string()),
            "total": pa.array([total for _, _, total in rows], pa.int64()),
        }
    )


def json_text(table: pa.Table) -> str:
    return b"".join(map(bytes, json_lines(table))).decode()


def csv_text(table: pa.Table) -> str:
    return (csv_header(table.schema) + b"".join(map(bytes, csv_lines(table)))).decode()


# -- text --------------------------------------------------------------------------------------------------------------------------


def test_a_line_of_json_is_as_the_design_says() -> None:
    assert json_text(results((1, "IBM", 5), (2, None, None))) == (
        '{"window_start": "2004-12-01T12:00:00.000000Z", "window_end": "2004-12-01T12:01:00.000000Z", "symbol": "IBM", "total": 5}\n'
        '{"window_start": "2004-12-01T12:01:00.000000Z", "window_end": "2004-12-01T12:02:00.000000Z", "symbol": null, "total": null}\n'
    )


@pytest.mark.parametrize(
    ("values", "type", "texts"),
    [
        ([1, -1, None], pa.int64(), ["1", "-1", "null"]),
        ([True, False, None], pa.bool_(), ["true", "false", "null"]),
        ([1.0, -0.0, 0.1, 1e20, 2.5e-7], pa.float64(), ["1.0", "-0.0", "0.1", "1e+20", "2.5e-7"]),
        ([math.nan, math.inf, -math.inf, None], pa.float64(), ['"NaN"', '"Infinity"', '"-Infinity"', "null"]),
        ([0.1, 16777216.0], pa.float32(), ["0.1", "16777216.0"]),
        ([Decimal("0.00000001"), Decimal("-12.50"), Decimal(0)], pa.decimal128(20, 8), ['"0.00000001"', '"-12.50000000"', '"0.00000000"']),
        ([NOON, None], UTC_MICROS, ['"2004-12-01T12:00:00.000000Z"', "null"]),
        ([datetime(1969, 12, 31, 23, 59, 59, 999999, UTC)], UTC_MICROS, ['"1969-12-31T23:59:59.999999Z"']),
        ([NOON.replace(tzinfo=None)], pa.timestamp("us"), ['"2004-12-01T12:00:00.000000Z"']),
        ([NOON], pa.timestamp("ms", "America/New_York"), ['"2004-12-01T12:00:00.000000Z"']),
        ([date(2004, 2, 29), date(1, 1, 1)], pa.date32(), ['"2004-02-29"', '"0001-01-01"']),
        ([-62_135_596_800_000_001, -62_135_596_800_000_000, None], UTC_MICROS,
         ['"0000-12-31T23:59:59.999999Z"', '"0001-01-01T00:00:00.000000Z"', "null"]),
        ([253_402_300_799_999_999, 253_402_300_800_000_000, None], UTC_MICROS,
         ['"9999-12-31T23:59:59.999999Z"', '"+10000-01-01T00:00:00.000000Z"', "null"]),
        ([-(2**63), -62_167_219_200_000_001, 2**63 - 1], pa.timestamp("us"),
         ['"-290308-12-21T19:59:05.224192Z"', '"-0001-12-31T23:59:59.999999Z"', '"+294247-01-10T04:00:54.775807Z"']),
        ([-(2**31), -719_529, -719_528, 2_932_896, 2_932_897, 2**31 - 1, None], pa.date32(),
         ['"-5877641-06-23"', '"-0001-12-31"', '"0000-01-01"', '"9999-12-31"', '"+10000-01-01"', '"+5881580-07-11"', "null"]),
        (['a"b', "\\", "\n\x01"], pa.string(), ['"a\\"b"', '"\\\\"', '"\\n\\u0001"']),
        (["naïve 窓", "", "\u2028"], pa.string(), ['"naïve 窓"', '""', '"\u2028"']),
        ([[1.5, None], [], None], pa.list_(pa.float64()), ["[1.5, null]", "[]", "null"]),
        ([{"a": "ä", "b": date(2004, 2, 29)}], pa.struct({"a": pa.string(), "b": pa.date32()}), ['{"a": "ä", "b": "2004-02-29"}']),
        ([[NOON]], pa.list_(UTC_MICROS), ['["2004-12-01T12:00:00.000000Z"]']),
        ([None, None], pa.null(), ["null", "null"]),
    ],
)  # fmt: skip
def test_every_type_has_its_spelling_in_json(values: list[Any], type: pa.DataType, texts: list[str]) -> None:
    assert json_text(pa.table({"x": pa.array(values, type)})) == "".join(f'{{"x": {text}}}\n' for text in texts)


def test_csv_quotes_only_what_needs_it_and_tells_null_from_an_empty_string() -> None:
    table = pa.table(
        {
            "window_start": pa.array([NOON] * 5, UTC_MICROS),
            'odd, "name"': ["plain", 'a "quote", a comma', "two\nlines", "", None],
            "x": [1.0, math.nan, -math.inf, 0.5, None],
            "list": [[1, 2], [], None, None, None],
        }
    )
    assert csv_text(table).splitlines() == [
        'window_start,"odd, ""name""",x,list',
        '2004-12-01T12:00:00.000000Z,plain,1.0,"[1, 2]"',
        '2004-12-01T12:00:00.000000Z,"a ""quote"", a comma",NaN,[]',
        '2004-12-01T12:00:00.000000Z,"two',
        'lines",-Infinity,',
        '2004-12-01T12:00:00.000000Z,"",0.5,',
        "2004-12-01T12:00:00.000000Z,,,",
    ]


VALUES = st.fixed_dictionaries(
    {
        "f": st.none() | st.floats(allow_nan=False, allow_infinity=False),
        "s": st.none() | st.text(alphabet=st.characters(exclude_categories=["Cs"])),
        "i": st.none() | st.integers(-(2**63), 2**63 - 1),
    }
)


@given(st.lists(VALUES, max_size=20))
def test_what_is_read_back_is_what_was_written(rows: list[dict[str, Any]]) -> None:
    table = pa.Table.from_pylist(rows, schema=pa.schema({"f": pa.float64(), "s": pa.string(), "i": pa.int64()}))
    assert [json.loads(line) for line in json_text(table).split("\n")[:-1]] == rows
    read = list(csv.reader(io.StringIO(csv_text(table), newline="")))[1:]
    for row, (f, s, i) in zip(rows, read, strict=True):
        assert (float(f) if f else None, s, int(i) if i else None) == (row["f"], row["s"] or "", row["i"])


def test_long_tables_sliced_and_dictionary_columns_come_out_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("muntin.spark.sinks.text.ROWS_AT_A_TIME", 7)
    table = pa.table({"n": list(range(100)), "s": pa.array([f"s{n % 3}" for n in range(100)]).dictionary_encode()}).slice(3, 95)
    lines = [json.loads(line) for line in json_text(pa.concat_tables([table, table])).splitlines()]
    assert lines == [{"n": n, "s": f"s{n % 3}"} for _ in range(2) for n in range(3, 98)]


# -- files -------------------------------------------------------------------------------------------------------------------------


def file_sink(directory: Path | Place, format: str = "jsonl", layout: Layout = Layout.PARTS, run: str = "run-1") -> FileSink:
    sink = FileSink(directory, format, layout)
    sink.open(run, QUERIES)
    return sink


def totals(path: Path) -> list[int]:
    return [json.loads(line)["total"] for line in path.read_text().splitlines()]


def files(directory: Path) -> dict[str, str]:
    """Every file that a reader of the directory sees."""
    found = (path for path in directory.rglob("*") if path.is_file() and not path.relative_to(directory).parts[0].startswith("_"))
    return {str(path.relative_to(directory)): path.read_text() for path in found}


def test_a_whole_run_leaves_one_file_per_query_also_for_those_without_results(tmp_path: Path) -> None:
    with file_sink(tmp_path / "out", layout=Layout.WHOLE) as sink:
        sink.write(EntryId(0), [("big", results((1, "IBM", 1))), ("small", results()), ("big", results((2, "IBM", 2)))])
        sink.write(EntryId(0, 1), [("big", results((3, "IBM", 3)))])
        assert files(tmp_path / "out") == {}
    assert totals(tmp_path / "out" / "big.jsonl") == [1, 2, 3]
    assert (tmp_path / "out" / "small.jsonl").read_text() == ""
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["_muntin.json", "big.jsonl", "small.jsonl"]


@pytest.mark.parametrize("format", Format)
def test_every_format_says_the_same(tmp_path: Path, format: Format) -> None:
    with file_sink(tmp_path, format.value, Layout.WHOLE) as sink:
        sink.write(EntryId(0), [("big", results((1, "IBM", 1), (1, "SUN", 2))), ("big", results((2, None, None)))])
    if format is Format.PARQUET:
        assert pq.read_table(tmp_path / "big.parquet").equals(results((1, "IBM", 1), (1, "SUN", 2), (2, None, None)))
        assert pq.read_table(tmp_path / "small.parquet").schema == results().schema
    else:
        lines = {Format.JSONL: json_text, Format.CSV: csv_text}[format]
        assert (tmp_path / f"big.{format.value}").read_text() == lines(results((1, "IBM", 1), (1, "SUN", 2), (2, None, None)))
        assert (tmp_path / f"small.{format.value}").read_text() == lines(results())


def test_a_whole_run_replaces_the_files_of_the_last_one_only_when_it_has_ended(tmp_path: Path) -> None:
    with file_sink(tmp_path, layout=Layout.WHOLE) as sink:
        sink.write(EntryId(0), [("big", results((1, "IBM", 1)))])
    before = files(tmp_path)
    failing = file_sink(tmp_path, layout=Layout.WHOLE, run="run-2")
    with suppress(ZeroDivisionError), failing:
        failing.write(EntryId(0), [("big", results((1, "IBM", 2)))])
        raise ZeroDivisionError
    assert files(tmp_path) == before
    with file_sink(tmp_path, layout=Layout.WHOLE, run="run-3"):
        pass
    assert files(tmp_path) == {"big.jsonl": "", "small.jsonl": ""}
    assert json.loads((tmp_path / "_muntin.json").read_text())["run"] == "run-3"


def test_parts_are_named_by_their_entry_and_sort_in_its_order(tmp_path: Path) -> None:
    sink = file_sink(tmp_path)
    sink.write(EntryId(11), [("big", results((1, "IBM", 1))), ("small", results((1, "IBM", 9)))])
    sink.write(EntryId(11, 1), [("big", results((2, "IBM", 2)))])
    sink.write(EntryId(12), [("big", results())])
    sink.write(EntryId(13), [("big", results((3, "IBM", 3))), ("small", results()), ("big", results((4, "IBM", 4)))])
    sink.close()
    parts = sorted(name for name in files(tmp_path) if name.startswith("big"))
    assert parts == ["big/00000011.jsonl", "big/00000011_001.jsonl", "big/00000013.jsonl"]
    assert [total for part in parts for total in totals(tmp_path / part)] == [1, 2, 3, 4]
    assert totals(tmp_path / "small" / "00000011.jsonl") == [9]


def test_a_sink_holds_what_it_wrote_and_nothing_later(tmp_path: Path) -> None:
    sink = file_sink(tmp_path)
    sink.write(EntryId(4), [])
    for held in (sink, file_sink_again(sink)):
        assert [held.holds(entry) for entry in (EntryId(3), EntryId(4), EntryId(4, 1), EntryId(5))] == [True, True, False, False]


def file_sink_again(sink: FileSink) -> FileSink:
    """The sink of a process that starts after the one of `sink` has died."""
    sink._owned.let_go()
    return file_sink(sink.directory)


def test_streams_number_their_entries_each_for_itself(tmp_path: Path) -> None:
    sink = file_sink(tmp_path)
    sink.write(EntryId(4), [("big", results((1, "IBM", 1)))], stream="trades")
    assert sink.holds(EntryId(4), stream="trades")
    assert not sink.holds(EntryId(0), stream="quotes")
    sink.write(EntryId(0), [("small", results((1, "IBM", 2)))], stream="quotes")
    again = file_sink_again(sink)
    assert again.holds(EntryId(4), stream="trades")
    assert not again.holds(EntryId(1), stream="quotes")


def test_markers_do_not_pile_up(tmp_path: Path) -> None:
    sink = file_sink(tmp_path)
    for batch in range(30):
        sink.write(EntryId(batch), [])
    assert sorted(path.name for path in (tmp_path / "_entries").iterdir()) == [
        str(EntryId(batch)) for batch in range(30 - KEPT_MARKERS, 30)
    ]
    assert all(file_sink_again(sink).holds(EntryId(batch)) for batch in range(0))
    assert file_sink_again(sink).holds(EntryId(0))


ENTRIES = [
    (EntryId(0), [("big", results((1, "IBM", 1))), ("small", results((1, "IBM", 10)))]),
    (EntryId(1), [("big", results((2, "IBM", 2))), ("small", results((2, "IBM", 20))), ("big", results((3, "SUN", 3)))]),
    (EntryId(1, 1), [("small", results((4, "IBM", 40)))]),
]

STEPS = 8  # five files and three markers of ENTRIES are renamed into their places


class Crash(BaseException):
    """The process dies: nothing that catches Exception sees it."""


@pytest.mark.parametrize("format", ["jsonl", "csv"])
@pytest.mark.parametrize("step", range(9))
def test_a_crash_between_any_two_steps_and_a_replay_leave_the_files_of_an_undisturbed_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: int, format: str
) -> None:
    undisturbed = file_sink(tmp_path / "undisturbed", format)
    for entry, chunks in ENTRIES:
        undisturbed.write(entry, chunks)
    sink = file_sink(tmp_path / "out", format)
    with monkeypatch.context() as patched:
        die_after(patched, step)
        with pytest.raises(Crash) if step < STEPS else nullcontext():
            for entry, chunks in ENTRIES:
                sink.write(entry, chunks)
    for name, text in files(tmp_path / "out").items():
        assert text == files(tmp_path / "undisturbed")[name]
    again = FileSink(tmp_path / "out", format, Layout.PARTS)
    sink._owned.let_go()
    again.open("run-1", QUERIES)
    for entry, chunks in ENTRIES:
        if not again.holds(entry):
            again.write(entry, chunks)
    assert files(tmp_path / "out") == files(tmp_path / "undisturbed")
    assert again.holds(EntryId(1, 1))


def die_after(monkeypatch: pytest.MonkeyPatch, steps: int) -> None:
    """Let `steps` renames happen, then die before the next one."""
    left = iter(range(steps))
    rename = os.replace

    def dying(*args: Any, **options: Any) -> None:
        if next(left, None) is None:
            raise Crash
        rename(*args, **options)

    monkeypatch.setattr(os, "replace", dying)


def test_a_whole_run_that_dies_while_it_publishes_does_not_claim_the_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with file_sink(tmp_path, layout=Layout.WHOLE):
        pass
    sink = file_sink(tmp_path, layout=Layout.WHOLE, run="run-2")
    sink.write(*ENTRIES[0])
    with monkeypatch.context() as patched:
        die_after(patched, 1)
        with pytest.raises(Crash):
            sink.close()
    assert not (tmp_path / "_muntin.json").exists()
    assert [totals(tmp_path / name) for name in ("big.jsonl", "small.jsonl")] == [[1], []]
    sink._owned.let_go()
    with file_sink(tmp_path, layout=Layout.WHOLE, run="run-3") as again:
        again.write(*ENTRIES[0])
    assert [totals(tmp_path / name) for name in ("big.jsonl", "small.jsonl")] == [[1], [10]]
    assert json.loads((tmp_path / "_muntin.json").read_text())["run"] == "run-3"


def test_a_crash_while_results_come_leaves_no_half_file(tmp_path: Path) -> None:
    def broken() -> Iterator[tuple[str, pa.Table]]:
        yield "big", results((1, "IBM", 1))
        raise Crash

    sink = file_sink(tmp_path)
    with pytest.raises(Crash):
        sink.write(EntryId(0), broken())
    assert files(tmp_path) == {}
    again = file_sink_again(sink)
    again.write(EntryId(0), [("small", results((1, "IBM", 1)))])
    assert list(files(tmp_path)) == ["small/00000000.jsonl"]


def test_results_are_streamed_to_disk_not_gathered(tmp_path: Path) -> None:
    seen = []

    def chunks() -> Iterator[tuple[str, pa.Table]]:
        for minute in range(3):
            seen.append(sum(path.stat().st_size for path in (tmp_path / "_aside").rglob("*.jsonl")))
            yield "big", results((minute, "IBM", minute))

    file_sink(tmp_path).write(EntryId(0), chunks())
    assert seen[0] < seen[1] < seen[2]


def test_parts_of_another_run_are_refused(tmp_path: Path) -> None:
    file_sink(tmp_path).close()
    with pytest.raises(SinkError, match=r"(?s)belongs to one run.*run is run-1, not run-2.*way out: choose an empty output directory"):
        file_sink(tmp_path, run="run-2")
    with pytest.raises(SinkError, match="files is jsonl, not csv"):
        file_sink(tmp_path, "csv")
    with pytest.raises(SinkError, match="layout is parts, not whole"):
        file_sink(tmp_path, layout=Layout.WHOLE)
    file_sink(tmp_path).close()


@pytest.mark.parametrize("layout", Layout)
@pytest.mark.parametrize("content", [b"", b"{", b"\xff\xfe", b"[]", b'"run-1"'])
def test_a_harmed_owner_file_is_refused(tmp_path: Path, layout: Layout, content: bytes) -> None:
    file_sink(tmp_path, layout=layout).close()
    (tmp_path / "_muntin.json").write_bytes(content)
    with pytest.raises(SinkError, match=r"(?s)_muntin.json says whose an output directory is.*found: .*way out: choose an empty output"):
        file_sink(tmp_path, layout=layout)


def test_a_directory_with_something_else_in_the_way_is_refused(tmp_path: Path) -> None:
    (tmp_path / "big").mkdir()
    (tmp_path / "big" / "precious.txt").touch()
    with pytest.raises(SinkError, match="big is there already"):
        file_sink(tmp_path)
    (tmp_path / "file").touch()
    with pytest.raises(SinkError, match="can be made and locked"):
        file_sink(tmp_path / "file")


def test_a_second_job_on_the_same_directory_is_refused_while_the_first_runs(tmp_path: Path) -> None:
    first = file_sink(tmp_path)
    with pytest.raises(SinkError, match="one job writes to a directory at a time"):
        file_sink(tmp_path)
    first.close()
    file_sink(tmp_path).close()


@pytest.mark.parametrize("name", ["", "..", "../big", "a/b", "/etc", "a\\b", "_entries", "_aside", "_muntin.json", ".hidden", "nul\0"])
def test_no_query_s_name_leads_out_of_the_directory(tmp_path: Path, name: str) -> None:
    sink = FileSink(tmp_path / "out", "jsonl", Layout.PARTS)
    with pytest.raises(SinkError, match="can name a file"):
        sink.open("run-1", [query(name)])
    sink.open("run-1", QUERIES)
    with pytest.raises(SinkError, match="can name a file"):
        sink.write(EntryId(0), [(name, results((1, "IBM", 1)))])
    assert files(tmp_path / "out") == {}
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_names_that_differ_in_case_only_are_refused(tmp_path: Path) -> None:
    with pytest.raises(SinkError, match="names of queries differ in more than case"):
        FileSink(tmp_path, "jsonl", Layout.WHOLE).open("run-1", [query("Big"), query("big")])


def test_an_unknown_format_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SinkError, match="choose one of jsonl, csv, parquet"):
        FileSink(tmp_path, "xml", Layout.WHOLE)


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="counts the open files as Linux shows them")
def test_more_queries_than_open_files_are_no_trouble(tmp_path: Path) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    in_use = max(int(path.name) for path in Path("/proc/self/fd").iterdir())
    resource.setrlimit(resource.RLIMIT_NOFILE, (in_use + 40, hard))
    try:
        for format in Format:
            names = [f"q{number}" for number in range(150)]
            sink = FileSink(tmp_path / format.value, format, Layout.PARTS)
            sink.open("run-1", [query(name) for name in names])
            sink.write(EntryId(0), ((name, results((minute, "IBM", minute))) for minute in range(2) for name in names))
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert pq.read_table(tmp_path / "parquet" / "q149" / "00000000.parquet").num_rows == 2
    assert len(files(tmp_path / "jsonl")) == 150


# -- the others --------------------------------------------------------------------------------------------------------------------


def test_memory_keeps_the_tables_of_every_query() -> None:
    sink = MemorySink()
    sink.open("run-1", QUERIES)
    sink.write(EntryId(0), [("big", results((1, "IBM", 1))), ("big", results((2, "IBM", 2)))])
    sink.write(EntryId(1), [("big", results((3, "IBM", 3)))])
    assert sink.table("big").equals(results((1, "IBM", 1), (2, "IBM", 2), (3, "IBM", 3)))
    assert sink.table("small").schema == results().schema
    assert list(sink.tables()) == ["big", "small"]
    assert (sink.holds(EntryId(1)), sink.holds(EntryId(2))) == (True, False)
    with pytest.raises(SinkError, match="ask for one of: big, small"):
        sink.table("other")
    sink.open("run-2", QUERIES)
    assert sink.table("big").num_rows == 0
    assert not sink.holds(EntryId(0))


def test_memory_shows_whole_entries_only() -> None:
    sink = MemorySink()
    sink.open("run-1", QUERIES)

    def broken() -> Iterator[tuple[str, pa.Table]]:
        yield "big", results((1, "IBM", 1))
        raise Crash

    with pytest.raises(Crash):
        sink.write(EntryId(0), broken())
    assert sink.table("big").num_rows == 0
    assert not sink.holds(EntryId(0))


def test_a_callback_gets_an_interrupted_entry_again_from_its_first_chunk() -> None:
    calls: list[tuple[EntryId, str, int]] = []
    fail = iter([False, True, False, False])

    def take(entry: EntryId, name: str, table: pa.Table) -> None:
        if next(fail):
            raise ZeroDivisionError
        calls.append((entry, name, table.num_rows))

    sink = CallbackSink(take)
    sink.open("run-1", QUERIES)
    chunks = [("big", results((1, "IBM", 1))), ("small", results())]
    with pytest.raises(ZeroDivisionError):
        sink.write(EntryId(0), chunks)
    assert not sink.holds(EntryId(0))
    sink.write(EntryId(0), chunks)
    assert sink.holds(EntryId(0))
    assert calls == [(EntryId(0), "big", 1), (EntryId(0), "big", 1), (EntryId(0), "small", 0)]
    assert "At least once" in sink.promise


def console(*, terminal: bool) -> Console:
    return Console(file=io.StringIO(), force_terminal=terminal, width=90, height=30, color_system=None, legacy_windows=False)


def printed(console: Console) -> str:
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


@pytest.mark.parametrize("terminal", [True, False])
def test_the_console_shows_the_newest_window_of_each_query(terminal: bool) -> None:
    screen = console(terminal=terminal)
    sink = ConsoleSink(screen, rows=2)
    with sink:
        sink.open("run-1", QUERIES)
        newest = [("big", results((1, "OLD", 1), (2, "IBM", 2))), ("big", results((2, None, 3), (2, "third", 4))), ("small", results())]
        sink.write(EntryId(0), newest)
    text = printed(screen)
    assert "big  2004-12-01 12:01:00 to 2004-12-01 12:02:00  2 of 3" in text
    assert "NULL" in text
    assert "OLD" not in text
    assert "third" not in text
    assert "small" not in text


def test_the_console_says_how_many_queries_it_does_not_show() -> None:
    screen = console(terminal=False)
    with ConsoleSink(screen, queries=2) as sink:
        sink.open("run-1", [])
        sink.write(EntryId(0), [(f"q{number}", results((1, "[bold]IBM", number))) for number in range(5)])
    assert "and 3 more" in printed(screen)
    assert "[bold]IBM" in printed(screen)  # a value is not markup


@pytest.mark.parametrize("kind", [FileSink, TableSink, MemorySink, CallbackSink, ConsoleSink])
def test_every_sink_says_what_it_promises(kind: type[Sink]) -> None:
    assert kind.promise.endswith(".")


def test_entries_sort_as_they_happen() -> None:
    entries = [EntryId(9), EntryId(9, 1), EntryId(9, 2), EntryId(10)]
    assert sorted({*entries}) == entries
    assert [EntryId.parse(str(entry)) for entry in entries] == entries
    assert EntryId(9).next_timer().next_timer() == EntryId(9, 2)
    assert EntryId(9, 2).next_batch() == EntryId(10)
    for text in ("9", "x", "00000009.1", "00000009.000", ""):
        with pytest.raises(ValueError, match=r"invalid literal|not the number of an entry"):
            EntryId.parse(text)


def test_parquet_holds_whole_numbers_and_times_as_differences_and_everything_is_read_back(tmp_path: Path) -> None:
    table = pa.table(
        {
            "window_end": pa.array([1, 2, None], type=pa.timestamp("us", tz="UTC")),
            "a.b": [1, None, 2**62],
            "day": pa.array([date(2024, 2, 29)] * 3),
            "sum(x * y)": [1.5, None, 2.5],
            "name": ["a", None, "a"],
        }
    )
    writer = WRITERS[Format.PARQUET](tmp_path / "some.parquet", table.schema)
    writer.write(table)
    writer.finish()
    group = pq.read_metadata(tmp_path / "some.parquet").row_group(0)
    held = {group.column(at).path_in_schema: "DELTA_BINARY_PACKED" in group.column(at).encodings for at in range(group.num_columns)}
    assert held == {"window_end": True, "a.b": True, "day": True, "sum(x * y)": False, "name": False}
    assert pq.read_table(tmp_path / "some.parquet").equals(table)
