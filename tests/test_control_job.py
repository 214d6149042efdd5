"""Queries come and go in a real job: `muntin run` in one process, `muntin add`, `list` and `drop` in others, files landing meanwhile."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

MUNTIN = [sys.executable, "-m", "muntin.cli"]
START = datetime(2024, 1, 1, tzinfo=UTC)
WINDOW = "[RANGE 10 seconds SLIDE 10 seconds]"
PIPELINE = f"""
CREATE STREAM clicks (ts TIMESTAMP, n BIGINT)
  WITH (source = 'files', format = 'json', path = '{{path}}', time = 'ts', slack = '0 seconds', max_files_per_trigger = '1');
CREATE QUERY total AS SELECT sum(n) AS n FROM clicks {WINDOW};
CREATE QUERY most AS SELECT max(n) AS n FROM clicks {WINDOW};
"""


class Running:
    """A job over a growing directory. `n` of a click is its second."""

    def __init__(self, directory: Path) -> None:
        self.directory, self.clicks, self.out, self.checkpoint = (directory, *(directory / one for one in ("clicks", "out", "checkpoint")))
        self.pipeline = directory / "pipeline.sql"
        self.clicks.mkdir()
        self.pipeline.write_text(PIPELINE.format(path=self.clicks))
        self.files = 0

    @contextmanager
    def started(self) -> Iterator[subprocess.Popen[str]]:
        job = subprocess.Popen([*MUNTIN, *self.arguments()], stderr=subprocess.PIPE, text=True, start_new_session=True)
        try:
            yield job
        finally:
            job.kill()
            job.communicate()

    def arguments(self) -> list[str]:
        return ["run", str(self.pipeline), "--out", str(self.out), "--checkpoint", str(self.checkpoint), "--master", "local[2]"]

    def land(self, *seconds: int) -> None:
        """One file, one micro-batch."""
        rows = [{"ts": (START + timedelta(seconds=second)).isoformat(), "n": second} for second in seconds]
        aside = self.clicks / f".{self.files}"
        aside.write_text("".join(json.dumps(row) + "\n" for row in rows))
        os.utime(aside, (1_700_000_000 + self.files,) * 2)  # Spark takes files in order of this time
        aside.rename(self.clicks / f"{self.files:04d}.json")
        self.files += 1

    def results(self, query: str) -> dict[int, Any]:
        """`n` by the second its window ends at."""
        parts = sorted((self.out / query).glob("*.jsonl"))
        rows = [json.loads(line) for part in parts for line in part.read_text().splitlines()]
        ends = [(datetime.fromisoformat(row["window_end"]) - START).total_seconds() for row in rows]
        assert len(ends) == len(set(ends)), "a window came out twice"
        return {int(end): row["n"] for end, row in zip(ends, rows, strict=True)}

    def command(self, name: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        command = [*MUNTIN, name, *arguments, "--checkpoint", str(self.checkpoint)]
        return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)

    def listed(self) -> dict[str, str]:
        """Name to the whole line of it."""
        done = self.command("list")
        assert done.returncode == 0, done.stderr
        return {line.split()[0]: line for line in done.stdout.splitlines()[1:]}


def wait_until(condition: Callable[[], bool], job: subprocess.Popen[str]) -> None:
    deadline = time.monotonic() + 120
    while not condition():
        assert job.poll() is None, job.communicate()[1]
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.2)


def test_queries_come_and_go_while_the_job_runs(tmp_path: Path) -> None:
    running = Running(tmp_path)
    running.land(1, 12)
    with running.started() as job:
        wait_until(lambda: running.results("total") == {10: 1}, job)

        added = running.command("add", f"SELECT count(*) AS n FROM clicks {WINDOW}", "--name", "joined")
        assert added.returncode == 0, added.stderr
        assert added.stdout.startswith("added joined: in effect from batch 1 of clicks on (version ")
        running.land(14, 23)
        running.land(35, 36, 47)
        wait_until(lambda: running.results("joined") == {30: 1, 40: 2}, job)  # from the first window that starts after 12, the last row
        wait_until(lambda: running.results("total") == {10: 1, 20: 26, 30: 23, 40: 71}, job)

        refused = running.command("add", f"SELECT sum(m) AS n FROM clicks {WINDOW}", "--name", "wrong")
        assert (refused.returncode, refused.stdout) == (2, "")
        assert "^" in refused.stderr
        assert running.command("drop", "nobody").returncode == 2
        listed = running.listed()
        assert list(listed) == ["total", "most", "joined"]
        assert all("running" in line for line in listed.values())
        assert ["command" in line for line in listed.values()] == [False, False, True]

        assert "stream clicks: 3 queries" in running.command("explain").stdout

        dropped = running.command("drop", "total")
        assert dropped.returncode == 0, dropped.stderr
        assert list(running.listed()) == ["most", "joined"]
        running.land(58)
        running.land(61)
        wait_until(lambda: running.results("joined") == {30: 1, 40: 2, 50: 1, 60: 1}, job)
        wait_until(lambda: running.results("most") == {10: 1, 20: 14, 30: 23, 40: 36, 50: 47, 60: 58}, job)
        assert list(running.results("total")) == [10, 20, 30, 40]

        os.kill(job.pid, signal.SIGTERM)
        _, complaint = job.communicate(timeout=60)
        assert job.returncode == 0, complaint

    assert running.command("list").returncode == 2
    resumed = subprocess.run([*MUNTIN, *running.arguments(), "--once", "--final"], capture_output=True, text=True, timeout=180, check=False)
    assert resumed.returncode == 0, resumed.stderr
    assert running.results("joined") == {30: 1, 40: 2, 50: 1, 60: 1, 70: 1}  # what a command brought is still there
