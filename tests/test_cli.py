"""The command line as a user meets it: its own process, its files, its exit codes, its answer to signals."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from deltalake import DeltaTable

from fake_job import FakeJob, lock
from storage import address, place_at

MUNTIN = [sys.executable, "-m", "muntin.cli"]
PIPELINE = """
CREATE STREAM trades (ts TIMESTAMP, symbol STRING, price DECIMAL(10,2), vol BIGINT)
  WITH (source = 'files', path = '{path}', format = 'csv', header = 'true', time = 'ts', slack = '5 seconds');
CREATE QUERY big AS
  SELECT symbol, sum(price * vol) AS value, max(ts) AS last, avg(vol) AS mean FROM trades [RANGE 12 minutes SLIDE 5 minutes WATTR ts]
  WHERE vol > 10 GROUP BY symbol;
CREATE QUERY odd AS SELECT count(*), sum(vol) / count(*) AS ratio FROM trades [RANGE 10 seconds SLIDE 3.01 seconds];
"""
ROWS = [
    "ts,symbol,price,vol",
    "2024-01-01 00:01:00,b,1.50,20",
    "2024-01-01 00:02:00,a,2.00,100",
    "2024-01-01 00:02:01,,3.00,100",
    "2024-01-01 00:03:00,a,2.00,5",
    "2024-01-01 00:11:00,a,0.25,40",
]


@pytest.fixture
def pipeline(tmp_path: Path) -> Path:
    (tmp_path / "trades").mkdir()
    (tmp_path / "trades/1.csv").write_text("\n".join(ROWS) + "\n")
    path = tmp_path / "pipeline.sql"
    path.write_text(PIPELINE.format(path=tmp_path / "trades"))
    return path


def muntin(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*MUNTIN, *map(str, arguments)], capture_output=True, text=True, timeout=180, check=False)


def lines(path: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_once_leaves_one_file_per_query_in_order_of_window_end_and_group(pipeline: Path, tmp_path: Path) -> None:
    done = muntin("run", pipeline, "--once", "--out", tmp_path / "out", "--format", "jsonl")
    assert done.returncode == 0, done.stderr
    assert sorted(path.name for path in (tmp_path / "out").glob("*.jsonl")) == ["big.jsonl", "odd.jsonl"]
    big = lines(tmp_path / "out/big.jsonl")
    assert [(row["window_end"], row["symbol"]) for row in big] == [
        ("2024-01-01T00:05:00.000000Z", None),
        ("2024-01-01T00:05:00.000000Z", "a"),
        ("2024-01-01T00:05:00.000000Z", "b"),
        ("2024-01-01T00:10:00.000000Z", None),
        ("2024-01-01T00:10:00.000000Z", "a"),
        ("2024-01-01T00:10:00.000000Z", "b"),
        ("2024-01-01T00:15:00.000000Z", "a"),
        ("2024-01-01T00:20:00.000000Z", "a"),
    ]
    assert big[1] == {
        "window_start": "2023-12-31T23:53:00.000000Z",
        "window_end": "2024-01-01T00:05:00.000000Z",
        "symbol": "a",
        "value": "200.00",
        "last": "2024-01-01T00:02:00.000000Z",
        "mean": 100.0,
    }
    odd = lines(tmp_path / "out/odd.jsonl")
    assert list(odd[0]) == ["window_start", "window_end", "count(*)", "ratio"]
    assert sum(int(str(row["count(*)"])) for row in odd) in range(5 * 3, 5 * 4 + 1)


def test_results_become_delta_tables(pipeline: Path, tmp_path: Path) -> None:
    refused = muntin("run", pipeline, "--once", "--out", tmp_path / "out", "--format", "delta")
    assert refused.returncode == 2
    assert "way out: name it: count(*) AS …" in refused.stderr
    pipeline.write_text(pipeline.read_text().replace("count(*), sum", "count(*) AS n, sum"))
    for options in (["--out", tmp_path / "out"], ["--out", tmp_path / "parts", "--checkpoint", tmp_path / "state", "--final"]):
        done = muntin("run", pipeline, "--once", "--format", "delta", *options)
        assert done.returncode == 0, done.stderr
    whole, parts = (DeltaTable(tmp_path / name / "big").to_pyarrow_table() for name in ("out", "parts"))
    order = [("window_end", "ascending"), ("symbol", "ascending")]
    assert whole.sort_by(order).equals(parts.sort_by(order))
    assert whole.num_rows == 8


def test_a_bad_pipeline_is_refused_with_the_place_and_no_stack_trace(pipeline: Path, tmp_path: Path) -> None:
    pipeline.write_text(pipeline.read_text().replace("sum(price * vol)", "sum(prize * vol)"))
    done = muntin("run", pipeline, "--once", "--out", tmp_path / "out")
    assert done.returncode == 2
    assert "prize" in done.stderr
    assert "^^^^^" in done.stderr
    assert "price" in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "out").exists()


def test_explain_tells_what_is_shared(pipeline: Path) -> None:
    done = muntin("explain", pipeline)
    assert done.returncode == 0, done.stderr
    assert "partial columns, stored once each" in done.stdout
    assert "grouping 1: by symbol" in done.stdout
    assert "assembled in the driver: groups not counted yet, executors from 200,000 on" in done.stdout


def test_explain_tells_where_windows_would_be_assembled(pipeline: Path) -> None:
    done = muntin("explain", pipeline, "--assembly", "executors", "--instances", "3")
    assert done.returncode == 0, done.stderr
    assert "assembled on the executors, by 3 instances: asked for" in done.stdout
    assert "assembled in the driver: one group" in done.stdout


@pytest.mark.parametrize("command", ["run", "explain"])
def test_more_instances_than_there_can_be_are_refused(pipeline: Path, command: str) -> None:
    done = muntin(command, pipeline, "--assembly", "executors", "--instances", "20000")
    assert done.returncode == 2
    assert "at least one instance, and by at most one for each of the 16,384 buckets of groups" in " ".join(done.stderr.split())
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_stops_a_running_job_cleanly_and_it_can_be_resumed(pipeline: Path, tmp_path: Path, number: signal.Signals) -> None:
    arguments = ["run", str(pipeline), "--out", str(tmp_path / "out"), "--checkpoint", str(tmp_path / "checkpoint")]
    job = subprocess.Popen([*MUNTIN, *arguments], stderr=subprocess.PIPE, text=True, start_new_session=True)
    try:
        wait_for(tmp_path / "out/big/00000000.jsonl", job)
        os.kill(job.pid, number)
        _, complaint = job.communicate(timeout=60)
    finally:
        job.kill()
    assert job.returncode == 0, complaint
    assert "stopping after this batch" in complaint
    (tmp_path / "trades/2.csv").write_text("ts,symbol,price,vol\n2024-01-01 00:16:00,a,1.00,30\n")
    done = muntin(*arguments, "--once", "--final")
    assert done.returncode == 0, done.stderr
    parts = sorted((tmp_path / "out/big").glob("*.jsonl"))
    rows = [row for part in parts for row in lines(part)]
    assert [row["window_end"] for row in rows if row["symbol"] == "a"] == [
        f"2024-01-01T00:{minute:02d}:00.000000Z" for minute in (5, 10, 15, 20, 25)
    ]


WINDOW = "[RANGE 1 hour SLIDE 1 minute]"
SELECT = f"SELECT count(*) AS c FROM trades {WINDOW}"


def test_add_replace_and_drop_tell_from_when_on_they_are_in_effect(tmp_path: Path) -> None:
    with FakeJob(tmp_path) as job:
        for command, told in ((("add", SELECT), "added"), (("replace", SELECT + " "), "replaced")):
            done = muntin(*command, "--checkpoint", tmp_path, "--name", "c")
            assert (done.returncode, done.stderr) == (0, "")
            assert done.stdout == f"{told} c: in effect from batch 12 on (version {job.engine.version})\n"
        assert job.engine.texts == {"c": SELECT}
        done = muntin("drop", "c", "--checkpoint", tmp_path)
        assert (done.returncode, done.stdout) == (0, "dropped c: in effect from batch 12 on (version 3)\n")
        assert job.engine.texts == {}


def test_a_file_of_statements_is_applied_in_order_up_to_the_first_that_is_refused(tmp_path: Path) -> None:
    changes = tmp_path / "my changes.sql"
    changes.write_text(
        f"-- new\nCREATE QUERY a AS {SELECT};\nDROP QUERY old; CREATE QUERY b AS\n{SELECT} WHERE bad;\nCREATE QUERY d AS {SELECT}"
    )
    with FakeJob(tmp_path) as job:
        job.engine.texts["old"] = SELECT
        done = muntin("add", changes, "--checkpoint", tmp_path)
        assert list(job.engine.texts) == ["a"]
    assert done.returncode == 2
    assert [line.split(":")[0] for line in done.stdout.splitlines()] == ["added a", "dropped old"]
    assert "muntin: bad is refused" in done.stderr
    assert "line 4:" in done.stderr


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        (f"CREATE QUERY a AS {SELECT}; CREATE QUERY b AS SELECT FROM WHERE", "a statement is SQL as Muntin reads it"),
        (f"CREATE QUERY a AS {SELECT}; CREATE STREAM s (ts TIMESTAMP) WITH (time = 'ts')", "streams and tables are those the job"),
        (SELECT, "a query has a name"),
        ("nowhere.sql", "a file of queries is a readable text file"),
        ("  -- nothing", "a change has a statement"),
    ],
)
def test_a_text_that_cannot_be_read_changes_nothing(tmp_path: Path, text: str, complaint: str) -> None:
    with FakeJob(tmp_path) as job:
        done = muntin("add", text, "--checkpoint", tmp_path)
        assert job.engine.texts == {}
    assert (done.returncode, done.stdout) == (2, "")
    assert complaint in " ".join(done.stderr.split())
    assert "Traceback" not in done.stderr


def test_a_name_beside_several_statements_is_refused(tmp_path: Path) -> None:
    with FakeJob(tmp_path):
        done = muntin("add", f"CREATE QUERY a AS {SELECT}; DROP QUERY b", "--name", "a", "--checkpoint", tmp_path)
    assert done.returncode == 2
    assert "one query is added at a time" in done.stderr


def test_list_shows_a_row_per_query_and_keeps_long_names_whole_in_a_pipe(tmp_path: Path) -> None:
    long = "a_name_of_" + 9 * "ten_chars_"
    with FakeJob(tmp_path) as job:
        assert "no queries" in muntin("list", "--checkpoint", tmp_path).stdout
        job.engine.texts |= {"first": SELECT, long: SELECT}
        done = muntin("list", "--checkpoint", tmp_path)
    assert done.returncode == 0, done.stderr
    head, *rows = done.stdout.splitlines()
    assert head.split() == ["name", "window", "state", "late"]
    assert [row.split() for row in rows] == [[name, *WINDOW.split(), "running", "0"] for name in ("first", long)]


def test_without_a_running_job_the_commands_say_so(tmp_path: Path) -> None:
    for command in (("add", SELECT, "--name", "c"), ("replace", SELECT, "--name", "c"), ("drop", "c"), ("list",)):
        done = muntin(*command, "--checkpoint", tmp_path)
        assert done.returncode == 2
        assert "no job runs on" in done.stderr


def wait_for(path: Path, job: subprocess.Popen[str]) -> None:
    deadline = time.monotonic() + 120
    while not path.exists():
        assert job.poll() is None, job.communicate()[1]
        assert time.monotonic() < deadline, f"{path} did not appear"
        time.sleep(0.2)


def test_unlocking_the_local_disk_and_an_address_that_means_nothing_are_refused(tmp_path: Path) -> None:
    done = muntin("unlock", tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert "a lock ends with its process" in done.stderr
    done = muntin("list", "--checkpoint", "ftp://nowhere/state")
    assert done.returncode == 2
    assert "a place is a path or a URI that pyarrow can open" in " ".join(done.stderr.split())


def test_a_place_on_a_shared_store_is_unlocked(endpoint: str, tmp_path: Path) -> None:
    where = address("objects", "unlocked", directory=tmp_path, endpoint=endpoint)
    with lock(place_at(where)):
        assert muntin("unlock", where).stdout.startswith("unlocked s3://state/unlocked/trades?")
    done = muntin("unlock", where)
    assert done.returncode == 2
    assert "nobody owns it" in done.stderr


def test_every_strategy_leaves_the_same_files_and_plain_spark_too(pipeline: Path, tmp_path: Path) -> None:
    found = {}
    for number, options in enumerate([(), ("--strategy", "unshared", "--slicing", "paned"), ("--strategy", "plain")]):
        done = muntin("run", pipeline, "--once", "--out", tmp_path / f"out{number}", *options)
        assert done.returncode == 0, done.stderr
        found[options] = {path.name: path.read_text() for path in (tmp_path / f"out{number}").glob("*.jsonl")}
    assert sorted(found[()]) == ["big.jsonl", "odd.jsonl"]
    assert all(one == found[()] for one in found.values())
    refused = muntin("run", pipeline, "--out", tmp_path / "out", "--strategy", "plain")
    assert refused.returncode == 2
    assert "plain Spark reads everything there is, once" in refused.stderr
    wrong = muntin("explain", pipeline, "--strategy", "plane")
    assert wrong.returncode == 2
    assert "choose one of unshared, slices, fragments, shards, automatic" in wrong.stderr


def test_a_query_that_fails_in_plain_spark_stops_and_the_others_go_on(pipeline: Path, tmp_path: Path) -> None:
    pipeline.write_text(
        pipeline.read_text() + "CREATE QUERY bad AS SELECT sum(1 / (vol - 20)) AS s FROM trades [RANGE 1 hour SLIDE 1 hour];"
    )
    done = muntin("run", pipeline, "--once", "--out", tmp_path / "out", "--strategy", "plain")
    assert done.returncode == 1, done.stderr
    assert "query bad: its job in plain Spark failed" in done.stderr
    assert len(lines(tmp_path / "out/big.jsonl")) == 8
