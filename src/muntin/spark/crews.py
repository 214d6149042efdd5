"""Which crew a job gets: where its parts are, and how many instances it has.

In: a session, and the checkpoint, if there is one. Out: a crew; or none, where executors share no directory with the driver.
"""

from __future__ import annotations

import tempfile

from pyspark.sql import SparkSession

from muntin.errors import Refusal
from muntin.plan.family import BUCKETS
from muntin.plan.placing import Placement
from muntin.spark.checkpoint import Checkpoint
from muntin.spark.crew import Crew
from muntin.spark.place import Place
from muntin.spark.shipping import is_local

NO_PLACE = "executors need a directory they share with the driver, and there is no checkpoint"


def checked_instances(spark: SparkSession, asked: int | None) -> int:
    """As many as asked for, or one for each core that Spark has."""
    if asked is not None and not 1 <= asked <= BUCKETS:
        law = f"windows are assembled by at least one instance, and by at most one for each of the {BUCKETS:,} buckets of groups"
        raise Refusal(law, values=f"instances = {asked:,}", way_out=f"choose 1 to {BUCKETS:,}")
    return asked or min(spark.sparkContext.defaultParallelism, BUCKETS)


def crew_for(spark: SparkSession, held: Checkpoint | None, run: str, stream: str, placement: Placement, instances: int) -> Crew | None:
    """With a checkpoint parts are in it; without, in a temporary directory of this machine, which only local executors see.

    A job whose windows are all to be in the driver has a crew as well, if it has a checkpoint: its queries may come from executors.
    """
    if held is not None:
        return Crew(spark, run, stream, held.directory, instances, held.check_owned)
    if placement is Placement.DRIVER:
        return None
    if is_local(spark):
        return Crew(spark, run, stream, Place.of(tempfile.mkdtemp(prefix="muntin-parts-")), instances, temporary=True)
    if placement is Placement.EXECUTORS:
        raise Refusal(
            "executors assemble where they share a directory with the driver",
            values="no checkpoint",
            way_out="give a checkpoint, on a store that the cluster shares",
        )
    return None
