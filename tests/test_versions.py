"""Versions of the registry: what is told of queries belongs together, also when a version could not be written."""

from __future__ import annotations

from pathlib import Path

import pytest

from muntin.aggregates import AGGREGATES
from muntin.query.check import check_pipeline
from muntin.query.model import Query
from muntin.query.registry import Registry
from muntin.spark.place import Place
from muntin.spark.registrylog import Origin, Registered, RegistryLog
from muntin.spark.versions import Versions

STREAM = "CREATE STREAM s (ts TIMESTAMP) WITH (source = 'test', time = 'ts');"
QUERY = "CREATE QUERY {name} AS SELECT count(*) AS n FROM s [RANGE 1 hour SLIDE 1 hour];"


def query(name: str) -> Query:
    return check_pipeline(STREAM + QUERY.format(name=name), AGGREGATES).queries[0]


def parsed(one: Registered) -> Query:
    return check_pipeline(STREAM + one.text + ";", AGGREGATES).queries[0]


def test_a_version_that_could_not_be_written_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    versions, log = Versions(parsed), RegistryLog(Place.of(tmp_path / "registry"))
    versions.put(Registry().add(query("a")), Origin.PIPELINE)
    versions.save(log)
    versions.put(versions.registry.add(query("b")), Origin.COMMAND)
    before = versions.newest

    def fail(*_: object) -> None:
        raise OSError("the disk is gone")

    with monkeypatch.context() as patch:
        patch.setattr(log, "append", fail)
        with pytest.raises(OSError, match="the disk is gone"):
            versions.put(versions.registry.drop("a"), Origin.COMMAND)
    assert versions.newest == before
    assert before[1] == {"a": Origin.PIPELINE, "b": Origin.COMMAND}
    versions.put(versions.registry.drop("a"), Origin.COMMAND)
    registry, origins = versions.newest
    assert [one.name for one in registry.queries] == list(origins) == ["b"]
    assert [one.name for one in log.at(registry.version)] == ["b"]
