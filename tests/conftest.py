"""What all tests share: one Spark session for the whole run, and how many examples a property is tried on."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

import pytest
from hypothesis import HealthCheck, settings

from storage import KINDS, address, object_store

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Derandomized: the same examples on every machine, so that a red run means a changed Muntin.
COMMON = {"deadline": None, "derandomize": True, "suppress_health_check": [HealthCheck.too_slow, HealthCheck.data_too_large]}
settings.register_profile("fast", max_examples=40, **COMMON)
settings.register_profile("thorough", max_examples=500, **COMMON)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "fast"))


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """Muntin's own local session. A JVM takes seconds to start: tests share this one and leave its settings alone."""
    session = local_session(tmp_path_factory.mktemp("spark"))
    yield session
    session.stop()


def local_session(directory: Path) -> SparkSession:
    from muntin.spark.session import session

    settings = {"spark.master": "local[2]", "spark.driver.memory": "3g", "spark.local.dir": str(directory)}
    return session("muntin-tests", **settings, **{"spark.sql.warehouse.dir": str(directory / "warehouse")})


@pytest.fixture(scope="module")
def small_pieces() -> Iterator[None]:
    """Snapshots in pieces of a few cells, as those of very many groups are."""
    with pytest.MonkeyPatch.context() as patch:
        for module in ("muntin.windows.store", "muntin.spark.instances"):
            patch.setattr(f"{module}.MOST_CELLS", 6)
        yield


@pytest.fixture(scope="session")
def endpoint() -> Iterator[str]:
    """A real S3 endpoint in a process of its own."""
    with object_store() as address:
        yield address


@pytest.fixture(params=KINDS)
def home(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The address of an empty directory on each kind of store; `storage.place_at` is the place."""
    kind: str = request.param
    endpoint = request.getfixturevalue("endpoint") if kind == "objects" else ""
    return address(kind, uuid4().hex, directory=tmp_path, endpoint=endpoint)
