"""A lock of the kernel's: one process at a time, on this machine's disk.

In: a file, or a directory. Out: a `FileLock`, held until it is closed or the process ends; `Occupied` if another one has it.
Convention: whoever only looks takes a shared lock for some microseconds; so whoever wants it tries again for a moment.
"""

from __future__ import annotations

import fcntl
import os
import time
from pathlib import Path

#: For so long a lock is tried for again, and after such pauses.
PATIENCE_SECONDS, PAUSE_SECONDS = 0.25, 0.01


class Occupied(Exception):
    """Another job has it: `holder` says which, `way_out` what to do if that is a mistake."""

    def __init__(self, holder: str, way_out: str) -> None:
        super().__init__(holder)
        self.holder, self.way_out = holder, way_out


class FileLock:
    """On a file the process is noted in it; a directory is locked as it is."""

    def __init__(self, path: Path) -> None:
        noted = not path.is_dir()
        self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT if noted else os.O_RDONLY, 0o644)
        try:
            self._take(noted=noted)
        except BaseException:
            os.close(self._descriptor)
            raise

    def check(self) -> None:
        """The kernel takes it from nobody."""

    def close(self) -> None:
        os.close(self._descriptor)

    def _take(self, *, noted: bool) -> None:
        patience = time.monotonic() + PATIENCE_SECONDS
        while not self._locked():
            if time.monotonic() > patience:
                holder = os.pread(self._descriptor, 64, 0).decode().strip() if noted else ""
                raise Occupied(f"process {holder or '?'}", "stop that job")
            time.sleep(PAUSE_SECONDS)
        if noted:
            os.ftruncate(self._descriptor, 0)
            os.pwrite(self._descriptor, str(os.getpid()).encode(), 0)

    def _locked(self) -> bool:
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True


def is_locked(path: Path) -> bool:
    with path.open() as file:
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)  # shared, so that clients are not in each other's way
        except BlockingIOError:
            return True
    return False
