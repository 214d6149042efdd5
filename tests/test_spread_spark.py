"""Assembled on executors, or here and there in turn, windows are what they are in the driver."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from muntin import Engine
from muntin.spark import slicelog
from spreading import FILES, LATE, PIPELINE, QUERIES, results, run_on, write_file

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DRIVER = ("driver", 1)


def run_all(spark: SparkSession, directory: Path, ways: Sequence[tuple[str, int]]) -> dict[str, list[str]]:
    """Each way of assembling takes the next files; a query joins on the way and another leaves."""
    directory.mkdir()
    stopped: dict[str, str] = {}
    for at, (assembly, instances) in enumerate(ways):
        engine = Engine(spark, assembly=assembly, instances=instances)
        for number in range(FILES * at // len(ways), FILES * (at + 1) // len(ways)):
            write_file(directory / "clicks", number)
        pipeline = PIPELINE.format(path=directory / "clicks")
        engine.execute(pipeline)
        if at:
            engine.add(LATE, name="late")
        stopped |= run_on(engine, directory, final=at == len(ways) - 1)
    assert list(stopped) == ["broken"]
    return results(directory)


@pytest.fixture(scope="module")
def expected(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    found = run_all(spark, tmp_path_factory.mktemp("driver") / "one", [DRIVER, DRIVER])
    assert all(found[query] for query in QUERIES)
    return found


def test_on_executors_windows_are_what_they_are_in_the_driver(
    spark: SparkSession, tmp_path: Path, expected: dict[str, list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(slicelog, "MOST_ENTRIES", 2)
    assert run_all(spark, tmp_path / "one", [("executors", 3), ("executors", 3)]) == expected
    parts = sorted(one.name for one in (tmp_path / "one" / "out" / "by_user").glob("*"))
    assert all("-0000" in name for name in parts)


def test_a_run_goes_on_with_another_number_of_instances_or_elsewhere(
    spark: SparkSession, tmp_path: Path, expected: dict[str, list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(slicelog, "MOST_ENTRIES", 2)
    assert run_all(spark, tmp_path / "one", [("executors", 2), ("executors", 1), DRIVER, ("executors", 7)])
    found = results(tmp_path / "one")
    assert {name: rows for name, rows in found.items() if name != "late"} == {
        name: rows for name, rows in expected.items() if name != "late"
    }
