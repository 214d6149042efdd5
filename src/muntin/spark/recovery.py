"""What must hold before a job goes on with a checkpoint: the slice log and Spark's own checkpoint tell the same story.

In: what each of the two says. Out: nothing, or a `CheckpointError` that says what was found and the way out.
"""

from __future__ import annotations

from collections.abc import Iterable

from muntin.disorder import Attributes
from muntin.errors import CheckpointError, Refusal
from muntin.query.model import Query
from muntin.spark.checkpoint import Checkpoint
from muntin.spark.entries import Pin
from muntin.spark.sinks.base import EntryId

_ANEW = "restore the checkpoint directory from a copy, or start with a new checkpoint and a new output directory"


def check_open(checkpoint: Checkpoint | None, *, closed: object) -> None:
    if closed:
        raise CheckpointError(
            "a run that was closed with --final has no windows left to go on with",
            values=f"{checkpoint.directory if checkpoint else ''}",
            way_out="start with a new checkpoint and a new output directory",
        )


def check_not_behind(checkpoint: Checkpoint | None, last: EntryId) -> None:
    committed = checkpoint.spark_committed() if checkpoint else -1
    if committed > last.batch:
        raise CheckpointError(
            "every batch that Spark has committed is in the slice log",
            values=f"Spark has committed batch {committed}, the slice log ends with {last}",
            way_out=_ANEW,
        )


def check_same_spark_checkpoint(pin: Pin | None, checkpoint: Checkpoint | None) -> None:
    """`pin` is that of the latest batch begun."""
    query = checkpoint.spark_query() if checkpoint else None
    if pin and query != pin.spark_query:
        raise CheckpointError(
            "a slice log goes on with the Spark checkpoint it was written beside",
            values=f"the log has entries of Spark query {pin.spark_query}, the Spark checkpoint is {query or 'missing'}",
            way_out="restore the directory `spark` of the checkpoint, or start with a new checkpoint and a new output directory",
        )


def check_next(entry: EntryId, last: EntryId) -> None:
    if entry != last.next_batch():
        raise CheckpointError(
            "entries of the slice log follow each other",
            values=f"Spark goes on with batch {entry.batch}, the slice log ends with {last}",
            way_out=_ANEW,
        )


def check_nothing_begun(begun: EntryId | None, last: EntryId) -> None:
    if begun is not None and begun > last:
        raise CheckpointError(
            "windows are closed for good when every batch that was begun is finished",
            values=f"batch {begun} was begun, the slice log ends with {last}",
            way_out="run once more with --once, and --final if all windows are to close",
        )


def check_counted(attributes: Attributes, queries: Iterable[Query]) -> None:
    """Rows of partitions are numbered from the first row of the stream on: nobody knows how many came while nobody counted."""
    for query in queries:
        counter = query.counter
        if counter and counter.pattr and counter not in attributes.punctuators and attributes.rows:
            raise Refusal(
                "rows are counted by PATTR from the first row of the stream on",
                values=f"{query.name} counts {counter}, and {attributes.rows:,} rows came while no query did",
                way_out="start with a new checkpoint, with a query that counts so from the beginning",
            )
