"""Killed with SIGKILL anywhere and resumed, a job leaves the output of an undisturbed run."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from crash_job import stop_between_batches

JOB = Path(__file__).parent / "crash_job.py"
QUERIES = ("by_user", "total", "silence", "corrected")
LETTERS = "dead letters"
FILES = 5


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Five files of clicks, a little out of order, two rows too late, and two without a time."""
    directory = tmp_path_factory.mktemp("crash") / "clicks"
    directory.mkdir()
    chance = random.Random(4)
    for number in range(FILES):
        rows: list[dict[str, Any]] = [
            {
                "ts": f"2024-01-01T00:{(second := number * 25 + chance.randint(0, 28)) // 60:02d}:{second % 60:02d}Z",
                "user": chance.choice("ab"),
                "n": chance.randint(1, 9),
                "x": chance.random(),
            }
            for _ in range(30)
        ]
        rows += [{"user": "a", "n": number}] if number in (2, 3) else []
        rows += [{"ts": f"2024-01-01T00:00:{20 + 10 * number}Z", "user": "a", "n": 1, "x": 0.5}] if number in (2, 3) else []
        path = directory / f"{number}.json"
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        os.utime(path, (1_700_000_000 + number,) * 2)
    return directory


def start(data: Path, out: Path, checkpoint: Path, kill: str, pipeline: str = "sliding", sink: str = "files") -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, str(JOB), str(data), str(out), str(checkpoint), kill, pipeline, sink],
        start_new_session=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )


def ended(process: subprocess.Popen[bytes]) -> int:
    """The exit code, once the JVM is gone as well."""
    _, complaint = process.communicate(timeout=180)
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        try:
            os.killpg(process.pid, 0)
        except ProcessLookupError:
            break
        time.sleep(0.1)
    assert process.returncode in (0, -signal.SIGKILL), complaint.decode()[-3000:]
    return process.returncode


def output(out: Path, queries: Iterable[str] = QUERIES) -> dict[str, list[str]]:
    """The lines of every query, and the dead letters, which Spark writes in no fixed order."""
    lines = {query: lines_of(sorted((out / query).glob("*.jsonl"))) for query in queries}
    return lines | {LETTERS: sorted(lines_of(out.with_name(f"{out.name}_letters").glob("*/*/part-*.json")))}


def lines_of(parts: Iterable[Path]) -> list[str]:
    return [line for part in parts for line in part.read_text().splitlines()]


@pytest.fixture(scope="module")
def undisturbed(data: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    directory = tmp_path_factory.mktemp("undisturbed")
    assert ended(start(data, directory / "out", directory / "checkpoint", "never:0")) == 0
    return output(directory / "out")


def check_survives(data: Path, directory: Path, undisturbed: dict[str, list[str]], kills: list[str]) -> None:
    """Each run is killed at its moment and the next one goes on; the last one is left alone."""
    for kill in [*kills, "never:0"]:
        code = ended(start(data, directory / "out", directory / "checkpoint", kill))
        if code == 0:
            break
    assert same(output(directory / "out"), undisturbed)


def same(ours: dict[str, list[str]], truth: dict[str, list[str]]) -> bool:
    """Equal rows; a double may differ in its last digits, since Spark adds in no fixed order when a batch is computed again."""
    return all(
        len(ours[query]) == len(truth[query])
        and all(alike(json.loads(mine), json.loads(theirs)) for mine, theirs in zip(ours[query], truth[query], strict=True))
        for query in truth
    )


def alike(mine: dict[str, Any], theirs: dict[str, Any]) -> bool:
    return mine.keys() == theirs.keys() and all(
        abs(mine[key] - theirs[key]) <= 1e-12 * 100 if isinstance(theirs[key], float) else mine[key] == theirs[key] for key in theirs
    )


def test_killed_four_times_on_the_way_it_gives_the_undisturbed_result(
    data: Path, tmp_path: Path, undisturbed: dict[str, list[str]]
) -> None:
    assert all(undisturbed.values())
    assert len(undisturbed[LETTERS]) == 2
    told = [json.loads(line) for line in undisturbed["corrected"]]
    assert {row["final"] for row in told} == {True, False}
    assert max(row["revision"] for row in told) > 0
    check_survives(data, tmp_path, undisturbed, ["after:3", "before:5", "late:9", "before:12"])


@pytest.mark.slow
@pytest.mark.parametrize("when", ["before", "after", "late"])
@pytest.mark.parametrize("number", [1, 2, 3, 4, 5, 6, 7, 8, 11, 14, 17, 20, 23])
def test_killed_at_any_write_it_gives_the_undisturbed_result(
    data: Path, tmp_path: Path, undisturbed: dict[str, list[str]], when: str, number: int
) -> None:
    check_survives(data, tmp_path, undisturbed, [f"{when}:{number}"])


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(6))
def test_killed_at_a_random_moment_it_gives_the_undisturbed_result(
    data: Path, tmp_path: Path, undisturbed: dict[str, list[str]], seed: int
) -> None:
    chance = random.Random(seed)
    for _ in range(2):
        process = start(data, tmp_path / "out", tmp_path / "checkpoint", "never:0")
        time.sleep(chance.uniform(3, 9))
        stop_between_batches(tmp_path / "checkpoint", lambda what: os.killpg(process.pid, what))  # noqa: B023 - called at once
        os.killpg(process.pid, signal.SIGKILL)
        ended(process)
    check_survives(data, tmp_path, undisturbed, [])
