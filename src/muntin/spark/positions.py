"""What orders the rows of a source by their arrival: a hidden column beside the declared ones, or some of the declared ones.

In: where a row lies. Out: a struct Column that ascends with arrival, equal for rows that a source keeps in order itself; or the names of
columns. Convention: the hidden column is made where files are opened, since a micro-batch no longer knows its files, and only if a query
counts rows: a path with every row costs more than the row. A DataFrame whose columns say where a row lies in its source needs none:
rows of a batch are in the order of these columns. Spark takes Kafka's partitions in no fixed order, so it takes columns to tell.
"""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F

from muntin.errors import Refusal
from muntin.query.disorder import FOLDER
from muntin.query.model import StreamDefinition
from muntin.schema import BIGINT, INT, STRING, Kind, Schema

ARRIVED = "_muntin_arrived"
#: What a DataFrame of Kafka's has: a row's topic, partition and offset.
KAFKA = {"topic": STRING, "partition": INT, "offset": BIGINT}


def arrival(changed: Column, path: Column, start: Column) -> Column:
    return F.struct(changed.alias("changed"), path.alias("path"), start.alias("start")).alias(ARRIVED)


def arrival_in_file() -> Column:
    """Files in order of modification time and path, and the parts that Spark reads a file in, in order."""
    metadata = [F.col(f"_metadata.{name}") for name in ("file_modification_time", "file_path", "file_block_start")]
    return arrival(F.unix_micros(metadata[0]), metadata[1], metadata[2])


def has_folders(stream: StreamDefinition) -> bool:
    """Whether rows are in order by the folder of their file, and not by a column of that name."""
    return FOLDER in stream.disorder.substreams and stream.schema.field(FOLDER) is None


def folder() -> Column:
    """Where the file of a row lies."""
    return F.regexp_replace(F.col("_metadata.file_path"), "/[^/]*$", "").alias(FOLDER)


def order_of(schema: Schema, order: str) -> tuple[str, ...]:
    """The columns that a DataFrame's rows came by: those that are named, or those of Kafka if it has them; none if nothing says."""
    if not order:
        kafka = [name for name, type in KAFKA.items() if (found := schema.field(name)) is not None and found.type == type]
        return tuple(kafka) if {"partition", "offset"} <= set(kafka) else ()
    named = [schema.field(part.strip()) for part in order.split(",")]
    if any(one is None or one.type.kind is Kind.OTHER for one in named):
        law, names = "order names scalar columns of the stream", ", ".join(one.name for one in schema.fields)
        raise Refusal(law, values=order, way_out=f"the columns are {names}")
    return tuple(dict.fromkeys(one.name for one in named if one is not None))
