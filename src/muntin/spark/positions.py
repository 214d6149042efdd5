"""What orders the rows of a source by their arrival: a hidden column beside the declared ones.

In: where a row lies. Out: a struct Column that ascends with arrival, equal for rows that a source keeps in order itself.
Convention: it is made where the source is opened, since a micro-batch no longer knows its files, and only if a query counts rows: a path
with every row costs more than the row.
"""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F

ARRIVED = "_muntin_arrived"


def arrival(changed: Column, path: Column, start: Column) -> Column:
    return F.struct(changed.alias("changed"), path.alias("path"), start.alias("start")).alias(ARRIVED)


def arrival_in_file() -> Column:
    """Files in order of modification time and path, and the parts that Spark reads a file in, in order."""
    metadata = [F.col(f"_metadata.{name}") for name in ("file_modification_time", "file_path", "file_block_start")]
    return arrival(F.unix_micros(metadata[0]), metadata[1], metadata[2])
