"""A checkpoint directory: whose it is, which format it has, and who is using it.

In: a directory and the fingerprint of the stream. Out: the run id, with the directory locked until it is closed.
Convention: one directory belongs to one run over one stream: another stream, another format or a second job is refused. Queries may
differ from run to run (`versions`).
Layout: `run` (this identity), `lock` or `_owners/` (see `ownership`), `pins/`, `log/`, `done/`, `snapshots/` (see `slicelog`),
`parts/`, `snapshot-parts/` (see `crew`), `tables/`, `spark/` (Spark's own checkpoint).
"""

from __future__ import annotations

import hashlib
import json
import uuid
from collections.abc import Iterable

from muntin.errors import CheckpointError
from muntin.query.model import StreamDefinition
from muntin.spark import durable
from muntin.spark.claims import OWNERS
from muntin.spark.locks import Occupied
from muntin.spark.ownership import LOCK, Ownership, own
from muntin.spark.place import Place

FORMAT = 7


def fingerprint(stream: StreamDefinition, strategy: str) -> str:
    """The same for streams that mean the same, whatever their spelling. Queries come and go; the stream stays what it is."""
    disorder = (stream.slack, stream.disorder, *([stream.order] if stream.order else []))
    meaning = [repr((stream.name, stream.schema, stream.time, disorder, stream.max_ahead, sorted(stream.options.items()))), strategy]
    return hashlib.sha256("\n".join(meaning).encode()).hexdigest()


class Checkpoint:
    """A checkpoint directory that is this job's alone."""

    def __init__(self, directory: Place, pipeline: str) -> None:
        self.directory = directory
        self._ownership = self._own()
        try:
            self.run = self._identity(pipeline)
        except BaseException:
            self.close()
            raise

    @property
    def spark_directory(self) -> Place:
        return self.directory / "spark"

    def check_owned(self) -> None:
        """Refuse to go on if another job has taken over; asked before every commit."""
        self._ownership.check()

    def close(self) -> None:
        self._ownership.close()

    def spark_query(self) -> str | None:
        """The id that Spark gave its own checkpoint; None before Spark made one."""
        metadata = self.spark_directory / "metadata"
        try:
            return str(json.loads(bytes(metadata.read()))["id"]) if metadata.exists() else None
        except (ValueError, KeyError, TypeError) as error:
            raise durable.damaged(metadata, f"it is not what Spark writes ({error})") from None

    def spark_committed(self) -> int:
        """The newest batch that Spark's own checkpoint has as committed; -1 if there is none."""
        commits = self.spark_directory / "commits"
        return max((int(name) for name in commits.files() if name.isdigit()), default=-1)

    def _own(self) -> Ownership:
        try:
            return own(self.directory, LOCK)
        except Occupied as occupied:
            raise CheckpointError(
                "one checkpoint is used by one job at a time",
                values=f"{self.directory} is held by {occupied.holder}",
                way_out=f"{occupied.way_out}, or give this one a checkpoint of its own",
            ) from None

    def _identity(self, pipeline: str) -> str:
        path = self.directory / "run"
        if not path.exists():
            return self._begin(path, pipeline)
        header, _ = durable.read(path)
        if header["format"] != FORMAT:
            raise CheckpointError(
                f"this version reads checkpoints of format {FORMAT}",
                values=f"{self.directory} has format {header['format']}",
                way_out="run the version of Muntin that wrote it, or start with a new checkpoint",
            )
        if header["pipeline"] != pipeline:
            raise CheckpointError(
                "a checkpoint goes on with the stream and the strategy that began it",
                values=f"the stream's definition or the strategy differs from that of {self.directory}",
                way_out="declare the stream as before, or give the changed one a new checkpoint and a new output directory",
            )
        return str(header["run"])

    def _begin(self, path: Place, pipeline: str) -> str:
        leftovers = sorted({*self.directory.files(), *self.directory.folders()} - {LOCK, OWNERS})
        if leftovers:
            raise CheckpointError(
                "a new checkpoint begins in an empty directory",
                values=f"{self.directory} has no run file but holds {', '.join(leftovers)}",
                way_out="restore the missing run file from a copy, or choose an empty directory",
            )
        run = uuid.uuid4().hex
        durable.write(path, {"format": FORMAT, "run": run, "pipeline": pipeline})
        return run


def check_owned(checkpoints: Iterable[Checkpoint | None]) -> None:
    """Every stream of the job is still this job's."""
    for checkpoint in checkpoints:
        if checkpoint:
            checkpoint.check_owned()
