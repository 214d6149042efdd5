"""Early and corrected results on Spark: files in, batch by batch, stopped and resumed, in the driver and on executors = the reference."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from muntin import Engine, FileSink, Layout, MemorySink
from muntin.spark import slicelog
from muntin.timeline import SECOND
from python_engine import PythonEngine
from test_crew import in_order
from test_laws import same
from test_windows_spark import CREATE, NOW, VALUES, Traffic, some_rows, traffic
from traffic import reading

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["traffic"]

EARLY, CORRECTED = "EMIT EVERY '2 seconds'", "LATE REEMIT FOR '9 seconds'"
BY_SEGMENT = f"SELECT seg_id, {VALUES} FROM traffic [{{}}] GROUP BY seg_id"
TEXTS = {
    "sliding": f"{BY_SEGMENT.format('RANGE 7 seconds SLIDE 3 seconds')} {EARLY} {CORRECTED}",
    "endless": f"{BY_SEGMENT.format('RANGE UNBOUNDED SLIDE 5 seconds')} {CORRECTED}",
    "landmark": f"SELECT {VALUES} FROM traffic [RANGE UNBOUNDED SLIDE 3 seconds LANDMARK 12 seconds] EMIT EMPTY {EARLY} {CORRECTED}",
    "miles": f"{BY_SEGMENT.format('RANGE 2.5 SLIDE 0.75 WATTR mile')} {EARLY} LATE REEMIT FOR 2",
    "arrivals": f"SELECT {VALUES} FROM traffic [RANGE 6 rows SLIDE 4 rows WATTR row_num] {EARLY}",
    "tuples": f"{BY_SEGMENT.format('RANGE 5 seconds RATTR ts SLIDE 1 row SATTR row_num')} {EARLY} {CORRECTED}",
    "ranks": f"SELECT {VALUES} FROM traffic [RANGE 4 seconds RATTR ts SLIDE 2 rows SATTR rank(ts)] {EARLY}",
    "plain": BY_SEGMENT.format("RANGE 7 seconds SLIDE 3 seconds"),
}


#: Those that executors assemble, and one that they do not.
SPREAD = ("sliding", "endless", "plain", "tuples")


@pytest.mark.parametrize(("assembly", "names"), [("driver", tuple(TEXTS)), ("executors", SPREAD)])
def test_streamed_stopped_and_resumed_early_and_corrected_results_are_those_of_the_reference(
    spark: SparkSession, traffic: Traffic, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, assembly: str, names: tuple[str, ...]
) -> None:
    monkeypatch.setattr(slicelog, "MOST_ENTRIES", 2)  # so that a snapshot is restored
    rows, memory = some_rows(40, disorder=9), MemorySink()
    for last, part in ((False, (rows[:9], rows[9:24])), (True, (rows[24:],))):
        for batch in part:
            traffic.add(*batch)
        engine = traffic.engine(
            spark, "slack = '1 second', slack_of = 'mile 1'", assembly=assembly, instances=2, **{name: TEXTS[name] for name in names}
        )
        sink = FileSink(tmp_path / "out", "jsonl", Layout.PARTS)
        job = engine.start(memory, sink, checkpoint=tmp_path / "checkpoint", trigger=NOW)
        job.wait(final=last)
    expected = PythonEngine(engine.streams["traffic"], engine.queries).run(traffic.batches)
    for query in engine.queries:
        ours, truth = memory.table(query.name).to_pylist(), expected.truth(query)
        assert same(in_order(ours), in_order(truth)), f"{query}\nours  {ours}\ntruth {truth}"
        assert any(row.get("final") is False for row in truth) == (query.emit_every is not None)
        assert any(row.get("revision", 0) > 0 for row in truth) == query.is_corrected
        lines = [json.loads(line) for part in (tmp_path / "out" / query.name).iterdir() for line in part.read_text().splitlines()]
        assert [set(line) for line in lines] == [set(row) for row in ours]
        life = job.jobs["traffic"].assembly.lives[query.name]
        assert (life.early, life.results) == (sum(row.get("final") is False for row in truth), len(truth))


def test_rows_that_came_last_have_early_results_while_the_source_is_silent(spark: SparkSession, tmp_path: Path) -> None:
    directory = tmp_path / "live"
    directory.mkdir()
    rows: list[dict[str, Any]] = [reading(at * SECOND) for at in range(5)]
    (directory / "0.json").write_text("".join(json.dumps(row, default=str) + "\n" for row in rows))
    engine, memory = Engine(spark), MemorySink()
    engine.execute(CREATE.format(path=directory, format="json", options="slack = '1 hour'"))
    engine.add("SELECT count(*) AS n FROM traffic [RANGE 1 hour SLIDE 1 hour] EMIT EVERY '1 second'", name="q")
    job = engine.start(memory, checkpoint=tmp_path / "checkpoint")
    deadline = time.monotonic() + 60
    while not memory.table("q").num_rows and time.monotonic() < deadline:
        job.wait(0.2)
    entries = job.jobs["traffic"].totals.entries
    job.wait(2.5)
    assert job.jobs["traffic"].totals.entries == entries  # an idle stream makes no further entries
    job.stop()
    assert [(row["n"], row["final"]) for row in memory.table("q").to_pylist()] == [(5, False)]
