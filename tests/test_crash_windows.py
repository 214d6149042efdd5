"""Every type of window that is not made of time alone, killed with SIGKILL and resumed = an undisturbed run."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import pytest

from crash_job import PIPELINES
from test_crash import LETTERS, data, ended, output, same, start

__all__ = ["data"]  # the fixture
pytestmark = pytest.mark.slow
Lines = dict[str, list[str]]


def run(data: Path, directory: Path, kills: Sequence[str], pipeline: str) -> Lines:
    """Each run is killed at its moment and the next one goes on; the last one is left alone."""
    for kill in [*kills, "never:0"]:
        if ended(start(data, directory / "out", directory / "checkpoint", kill, pipeline)) == 0:
            break
    return output(directory / "out", re.findall(r"CREATE QUERY (\w+)", PIPELINES[pipeline][0]))


@pytest.fixture(scope="module", params=["rows", "tuples"])
def undisturbed(request: pytest.FixtureRequest, data: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Lines]:
    pipeline: str = request.param
    return pipeline, run(data, tmp_path_factory.mktemp("undisturbed"), [], pipeline)


def test_killed_twice_these_windows_give_the_undisturbed_result(data: Path, tmp_path: Path, undisturbed: tuple[str, Lines]) -> None:
    pipeline, truth = undisturbed
    assert all(truth.values())
    assert len(truth[LETTERS]) == 2
    assert same(run(data, tmp_path, ["after:6", "before:9"], pipeline), truth)


@pytest.mark.parametrize("kill", [f"{when}:{number}" for number in (2, 4, 9, 13, 18, 24, 30) for when in ("before", "after")])
def test_killed_at_any_write_these_windows_give_the_undisturbed_result(
    data: Path, tmp_path: Path, undisturbed: tuple[str, Lines], kill: str
) -> None:
    pipeline, truth = undisturbed
    assert same(run(data, tmp_path, [kill], pipeline), truth)
