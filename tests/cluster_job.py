"""A driver on a cluster: takes halves of the sample's input, each with a number of instances, one after another in one session.

`python cluster_job.py MASTER DIRECTORY WORK:HALF:INSTANCES…`: the input is in DIRECTORY, checkpoint and results are in WORK. Settings of
Spark come as JSON in SETTINGS. The second half closes all windows at its end. With TABLES in the environment results become tables.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

from muntin import Engine, session
from spreading import halves, run_on


def main(master: str, directory: Path, tasks: list[str]) -> None:
    spark = session(**{"spark.master": master} | json.loads(os.environ["SETTINGS"]))
    for task in tasks:
        work, half, instances = task.rsplit(":", 2)
        engine = Engine(spark, assembly="executors", instances=int(instances))
        engine.execute(halves(directory, int(half)))
        run_on(engine, Path(work), final=half == "1", tables="TABLES" in os.environ)
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), sys.argv[3:])
