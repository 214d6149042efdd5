"""Where an instance works on the machine it is on: a private directory of the local disk.

In: a run and a stream. Out: a directory, and a way to be alone in it. Convention: `MUNTIN_SCRATCH`, else the executor's own directories,
which the cluster manager removes with the application, else the machine's temporary directory. What is there is a cache.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from muntin.errors import StoreError
from muntin.spark.folders import PRIVATE

#: Where Spark, YARN and Kubernetes tell an executor which disks are its own; several are divided by commas or colons.
_TOLD = ("MUNTIN_SCRATCH", "SPARK_EXECUTOR_DIRS", "LOCAL_DIRS", "SPARK_LOCAL_DIRS")


def scratch_of(run: str, stream: str) -> Path:
    """The directory of one run over one stream."""
    told = next((os.environ[name] for name in _TOLD if os.environ.get(name)), tempfile.gettempdir())
    path = Path(told.replace(",", os.pathsep).split(os.pathsep)[0])
    for name in (f"muntin-{os.getuid()}", run, stream):
        path = path / name
        path.mkdir(mode=PRIVATE, parents=True, exist_ok=True)
        if path.stat().st_uid != os.getuid():
            raise StoreError(
                "the directory that instances work in is this user's", values=str(path), way_out="set MUNTIN_SCRATCH to a private directory"
            )
        path.chmod(PRIVATE)
    return path


@contextmanager
def alone(directory: Path) -> Iterator[None]:
    """One task at a time in a directory: another copy of it may still run."""
    directory.mkdir(mode=PRIVATE, exist_ok=True)
    with (directory / "lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def clear_scratch(run: str, stream: str) -> None:
    """Remove what instances of this machine left."""
    path = scratch_of(run, stream)
    shutil.rmtree(path, ignore_errors=True)
    with suppress(OSError):  # other streams of the run are still there
        path.parent.rmdir()
