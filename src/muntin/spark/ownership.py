"""One job at a time: who owns a checkpoint or an output directory.

In: a place. Out: an `Ownership` to check before every commit and to close; `Occupied` if another job has it.
Convention: on this machine's disk a lock of the kernel's (`locks`), which ends with the process; on a shared store a claim (`claims`).
"""

from __future__ import annotations

from typing import Protocol

from muntin.spark.claims import Claim, newest_claim
from muntin.spark.locks import FileLock, is_locked
from muntin.spark.place import Place
from muntin.spark.stores import make_folder

#: The file of a checkpoint that is locked on the local disk.
LOCK = "lock"


class Ownership(Protocol):
    def check(self) -> None:
        """An `OwnershipError` if the place is no longer ours."""

    def close(self) -> None:
        """Let go of it."""


def own(place: Place, lock: str = "") -> Ownership:
    """Own a place. On the local disk the file `lock` of it is locked, or the directory itself."""
    if place.local is None:
        return Claim(place)
    make_folder(place.local)
    return FileLock(place.local / lock if lock else place.local)


def is_owned(place: Place) -> bool:
    """Whether a job owns the checkpoint of a stream, as far as can be told from here."""
    if place.local is not None:
        return (place.local / LOCK).exists() and is_locked(place.local / LOCK)
    newest = newest_claim(place)
    return newest is not None and newest[1].alive
