"""The shared session runs on the Java and the Python that set-up chose."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pyarrow as pa

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_the_session_runs_in_utc_and_ansi_mode(spark: SparkSession) -> None:
    assert spark.conf.get("spark.sql.session.timeZone") == "UTC"
    assert spark.conf.get("spark.sql.ansi.enabled") == "true"


def test_workers_run_the_python_of_the_tests(spark: SparkSession) -> None:
    def python_of_the_worker(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for _ in batches:
            yield pa.RecordBatch.from_pydict({"executable": [sys.executable]})

    rows = spark.range(1, numPartitions=1).mapInArrow(python_of_the_worker, "executable string").collect()
    assert [row.executable for row in rows] == [sys.executable]


def test_a_timestamp_without_zone_is_read_as_utc(spark: SparkSession) -> None:
    rows = spark.sql("SELECT unix_micros(TIMESTAMP '1969-12-31 23:59:59.999999') AS micros").collect()
    assert [row.micros for row in rows] == [-1]
