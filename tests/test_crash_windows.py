"""Every type of window that is not made of time alone, killed with SIGKILL and resumed = an undisturbed run."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import pytest

from crash_job import OTHERS
from test_crash import LETTERS, data, ended, output, same, start

__all__ = ["data"]  # the fixture
QUERIES = re.findall(r"CREATE QUERY (\w+)", OTHERS)
Lines = dict[str, list[str]]


def run(data: Path, directory: Path, kills: Sequence[str]) -> Lines:
    """Each run is killed at its moment and the next one goes on; the last one is left alone."""
    for kill in [*kills, "never:0"]:
        if ended(start(data, directory / "out", directory / "checkpoint", kill, "others")) == 0:
            break
    return output(directory / "out", QUERIES)


@pytest.fixture(scope="module")
def undisturbed(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Lines:
    return run(data, tmp_path_factory.mktemp("undisturbed"), [])


def test_killed_twice_every_window_type_gives_the_undisturbed_result(data: Path, tmp_path: Path, undisturbed: Lines) -> None:
    assert all(undisturbed.values())
    assert len(undisturbed[LETTERS]) == 2
    assert same(run(data, tmp_path, ["after:6", "before:17"]), undisturbed)


@pytest.mark.slow
@pytest.mark.parametrize("kill", [f"{when}:{number}" for number in (2, 4, 9, 13, 18, 24, 30, 36) for when in ("before", "after")])
def test_killed_at_any_write_every_window_type_gives_the_undisturbed_result(
    data: Path, tmp_path: Path, undisturbed: Lines, kill: str
) -> None:
    assert same(run(data, tmp_path, [kill]), undisturbed)
