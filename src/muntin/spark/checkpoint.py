"""A checkpoint directory: whose it is, which format it has, and who is using it.

In: a directory and the fingerprint of the stream. Out: the run id, with the directory locked until it is closed.
Convention: one directory belongs to one run over one stream: another stream, another format or a second job is refused. Queries may
differ from run to run (`versions`).
Layout: `run` (this identity), `lock`, `pins/`, `log/`, `done/`, `snapshots/` (see `slicelog`), `spark/` (Spark's own checkpoint).
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import uuid
from pathlib import Path

from muntin.errors import CheckpointError
from muntin.query.model import StreamDefinition
from muntin.spark import durable

FORMAT = 3


def fingerprint(stream: StreamDefinition, strategy: str) -> str:
    """The same for streams that mean the same, whatever their spelling. Queries come and go; the stream stays what it is."""
    meaning = [repr((stream.name, stream.schema, stream.time, stream.slack, stream.max_ahead, sorted(stream.options.items()))), strategy]
    return hashlib.sha256("\n".join(meaning).encode()).hexdigest()


class Checkpoint:
    """A locked checkpoint directory."""

    def __init__(self, directory: Path, pipeline: str) -> None:
        self.directory = directory
        directory.mkdir(parents=True, exist_ok=True)
        self._lock = os.open(directory / "lock", os.O_RDWR | os.O_CREAT, 0o644)
        try:
            self._take_lock()
            self.run = self._identity(pipeline)
        except BaseException:
            os.close(self._lock)
            raise

    @property
    def spark_directory(self) -> Path:
        return self.directory / "spark"

    def close(self) -> None:
        os.close(self._lock)

    def spark_query(self) -> str | None:
        """The id that Spark gave its own checkpoint; None before Spark made one."""
        metadata = self.spark_directory / "metadata"
        try:
            return str(json.loads(metadata.read_text())["id"]) if metadata.exists() else None
        except (ValueError, KeyError, TypeError) as error:
            raise durable.damaged(metadata, f"it is not what Spark writes ({error})") from None

    def spark_committed(self) -> int:
        """The newest batch that Spark's own checkpoint has as committed; -1 if there is none."""
        commits = self.spark_directory / "commits"
        return max((int(path.name) for path in commits.glob("*") if path.name.isdigit()), default=-1)

    def _take_lock(self) -> None:
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            holder = os.pread(self._lock, 64, 0).decode().strip()
            raise CheckpointError(
                "one checkpoint is used by one job at a time",
                values=f"{self.directory} is held by process {holder or '?'}",
                way_out="stop that job, or give this one a checkpoint of its own",
            ) from None
        os.ftruncate(self._lock, 0)
        os.pwrite(self._lock, str(os.getpid()).encode(), 0)

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

    def _begin(self, path: Path, pipeline: str) -> str:
        leftovers = sorted(entry.name for entry in self.directory.iterdir() if entry.name != "lock" and not entry.name.startswith("."))
        if leftovers:
            raise CheckpointError(
                "a new checkpoint begins in an empty directory",
                values=f"{self.directory} has no run file but holds {', '.join(leftovers)}",
                way_out="restore the missing run file from a copy, or choose an empty directory",
            )
        run = uuid.uuid4().hex
        durable.write(path, {"format": FORMAT, "run": run, "pipeline": pipeline})
        return run
