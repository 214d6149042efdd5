"""Clicks per user over the last 1, 12 and 24 hours, every minute, from a DataFrame you already have: one pass over the rows.

Run it with `scripts/run.sh python examples/last_day_per_user.py`.
"""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession

import muntin


def clicks_of(spark: SparkSession) -> DataFrame:
    return spark.read.schema("ts TIMESTAMP, user STRING, page STRING").json("examples/clicks")


def results_of(spark: SparkSession) -> muntin.Results:
    engine = muntin.Engine(spark)
    engine.stream("clicks", clicks_of(spark), time="ts")
    for hours in (1, 12, 24):
        window = f"[RANGE {hours} hours SLIDE 1 minute]"
        engine.add(f"SELECT user, count(*) AS clicks FROM clicks {window} GROUP BY user", name=f"clicks_{hours}h")
    return engine.run()


if __name__ == "__main__":
    results = results_of(muntin.session())
    for name in results:
        results.frame(name).orderBy("window_end", ascending=False).show(3, truncate=False)
