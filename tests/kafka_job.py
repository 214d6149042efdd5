"""A job that reads a topic of two partitions: `python kafka_job.py BROKER JARS CHECKPOINT` prints what came out, as JSON.

Rows are written in two lots, and the job runs once after each, the second time from its checkpoint.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from muntin import Engine, MemorySink, Pace, Trigger, session

#: Lots of rows: a partition, a number, a time in seconds. Times ascend in each partition.
LOTS = [[(0, 0, 10), (1, 1, 5), (0, 2, 40), (1, 3, 6), (0, 4, 70)], [(1, 5, 30), (0, 6, 80), (1, 7, 90), (1, 8, 91), (0, 9, 95)]]
QUERIES = {
    "arrived": "SELECT max(id) AS id FROM t [RANGE 1 row SLIDE 1 row WATTR row_num]",
    "of_partition": "SELECT partition, sum(id) AS ids FROM t [RANGE 2 rows SLIDE 2 rows WATTR row_num PATTR partition]",
    "in_time": "SELECT count(*) AS n FROM t [RANGE 20 seconds SLIDE 20 seconds]",
}


def write(spark: SparkSession, broker: str, lot: list[tuple[int, int, int]]) -> None:
    rows = [(partition, json.dumps({"id": id, "s": s})) for partition, id, s in lot]
    frame = spark.createDataFrame(rows, "partition int, value string").coalesce(1)
    frame.write.format("kafka").options(**{"kafka.bootstrap.servers": broker, "topic": "t"}).save()


def topic(spark: SparkSession, broker: str) -> DataFrame:
    options = {"kafka.bootstrap.servers": broker, "subscribe": "t", "startingOffsets": "earliest"}
    read = spark.readStream.format("kafka").options(**options).load()
    value = F.from_json(F.col("value").cast("string"), "id bigint, s bigint")
    return read.select("topic", "partition", "offset", value["id"].alias("id"), F.timestamp_seconds(value["s"]).alias("ts"))


def run(spark: SparkSession, broker: str, checkpoint: Path, *, final: bool) -> dict[str, list[dict[str, Any]]]:
    engine, memory = Engine(spark), MemorySink()
    engine.stream("t", topic(spark, broker), time="ts", substreams="partition", slack="0 seconds")
    for name, text in QUERIES.items():
        engine.add(text, name=name)
    engine.start(memory, checkpoint=checkpoint, trigger=Trigger(Pace.AVAILABLE_NOW)).wait(final=final)
    return {name: [{**row, "window_end": str(row["window_end"])} for row in memory.table(name).to_pylist()] for name in QUERIES}


def main(broker: str, jars: str, checkpoint: Path) -> None:
    spark = session(**{"spark.master": "local[2]", "spark.jars": jars})
    found = []
    for at, lot in enumerate(LOTS):
        write(spark, broker, lot)
        found.append(run(spark, broker, checkpoint, final=at == 1))
    sys.stdout.write(json.dumps(found, default=str) + "\n")
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], Path(sys.argv[3]))
