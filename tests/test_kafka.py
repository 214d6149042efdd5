"""A topic of a real broker: rows are numbered by partition and offset, and each partition's order makes its punctuation."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from kafka_broker import jars, kafka_broker
from kafka_job import LOTS
from muntin.errors import Refusal
from muntin.schema import BIGINT, INT, STRING, TIMESTAMP, Field, Schema
from muntin.spark.positions import order_of

KAFKA = Schema((Field("topic", STRING), Field("partition", INT), Field("offset", BIGINT), Field("ts", TIMESTAMP)))


def test_the_columns_of_kafka_say_the_order_of_its_rows() -> None:
    assert order_of(KAFKA, "") == ("topic", "partition", "offset")
    assert order_of(Schema(KAFKA.fields[1:]), "") == ("partition", "offset")
    assert order_of(Schema(KAFKA.fields[:2]), "") == ()
    assert order_of(KAFKA, "PARTITION, ts") == ("partition", "ts")


def test_an_order_by_a_column_that_is_not_there_is_refused() -> None:
    with pytest.raises(Refusal, match=r"order names scalar columns of the stream.*\n?.*sequence"):
        order_of(KAFKA, "partition, sequence")


@pytest.mark.slow
def test_rows_of_a_topic_are_numbered_by_partition_and_offset_and_closed_by_partition(tmp_path: Path) -> None:
    connector = ",".join(map(str, jars("spark")))
    job = Path(__file__).parent / "kafka_job.py"
    with kafka_broker(tmp_path / "broker", partitions=2) as broker:
        done = subprocess.run(
            [sys.executable, str(job), broker, connector, str(tmp_path / "checkpoint")], capture_output=True, timeout=600, check=False
        )
    assert done.returncode == 0, done.stderr.decode()[-3000:]
    first, second = json.loads(done.stdout.decode().splitlines()[-1])
    in_order = [id for lot in LOTS for _, id, _ in sorted(lot, key=lambda row: row[0])]  # the sort is stable: by offset
    assert [row["id"] for row in first["arrived"] + second["arrived"]] == in_order == [0, 2, 4, 1, 3, 6, 9, 5, 7, 8]
    assert [(row["window_end"], row["partition"], row["ids"]) for row in first["of_partition"]] == [("2", 0, 2), ("2", 1, 4)]
    assert [(row["window_end"], row["partition"], row["ids"]) for row in second["of_partition"]] == [
        ("4", 0, 10), ("4", 1, 12), ("6", 0, 9), ("6", 1, 8)
    ]  # fmt: skip
    # Partition 1 had come to 6 s when partition 0 was at 70 s: nothing was complete.
    assert first["in_time"] == []
    assert [row["n"] for row in second["in_time"]] == [3, 1, 1, 1, 4]
