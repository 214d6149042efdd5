"""Who owns a place on a shared store, where there are no locks: claims, renewed by heartbeats.

In: a place. Out: a `Claim` to check before every commit and to close; `Occupied` if another job's claim is alive.
Convention: a claim is a file `_owners/<number>-<token>-<beat>`, and whoever has the highest one owns the place. Numbers only rise:
a claim is given up by saying so in it, never by deleting it; a heartbeat writes another file and removes the one before the last,
so that whoever lists the directory finds one, also where replacing a file is deleting it first. The next number is claimed when the
newest claim was given up, or its heartbeat is stale, or its process is known to be gone; from then on the former owner, should it
wake up, finds that its claim is not the highest and refuses to commit. A write that was under way when its process was paused can
still land: it is whole, and of an entry that the new owner computes from the same rows. The clocks of the hosts agree to within
half a minute.
"""

from __future__ import annotations

import os
import socket
import threading
import time
import uuid
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from muntin.errors import CheckpointError, OwnershipError, Refusal, StoreError
from muntin.spark import durable
from muntin.spark.locks import Occupied
from muntin.spark.place import Place

#: Where claims are, beside what they are claims to.
OWNERS = "_owners"

#: An owner renews its heartbeat this often, and is taken for gone after so long without one.
HEARTBEAT_SECONDS, STALE_SECONDS = 10.0, 60.0

#: Between claiming and looking whether somebody else claimed at the same time; and before an unreadable claim is read again.
SETTLE_SECONDS, RETRY_SECONDS = 1.0, 0.1


@dataclass(frozen=True)
class Owner:
    """What a claim says. `machine` tells process numbers of one kernel and container from those of another."""

    host: str
    machine: str
    process: int
    heartbeat: float
    given_up: bool = False

    @classmethod
    def this_process(cls) -> Owner:
        return cls(socket.gethostname(), _machine(), os.getpid(), time.time())

    @property
    def alive(self) -> bool:
        gone = self.machine != "" and self.machine == _machine() and not _runs(self.process)
        return not (self.given_up or gone) and time.time() - self.heartbeat < STALE_SECONDS

    def __str__(self) -> str:
        return f"process {self.process} on {self.host}, last heard of {max(0.0, time.time() - self.heartbeat):.0f} s ago"


class Claim:
    """A claim to a place, renewed by a thread until it is closed or overtaken."""

    def __init__(self, place: Place) -> None:
        self._place = place
        newest = newest_claim(place)
        if newest is not None and newest[1].alive:
            raise _occupied(place, newest[1])
        self._name = _claim_name(newest[0] if newest else "", uuid.uuid4().hex)
        self._beats = 0
        self._overtaken = False
        self._writing = threading.Lock()
        self._renew()
        self._settle()
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._renewing, name=f"heartbeat of {place}", daemon=True)
        self._thread.start()

    def check(self) -> None:
        with self._writing:
            self._overtaken = self._overtaken or not self._highest()
        if self._overtaken:
            raise OwnershipError(
                "a job writes to a checkpoint or an output directory while it owns it",
                values=f"{self._place} was taken over by another job, or unlocked, while this one was not heard of",
                way_out="leave the place to the other job; if there is none, start this one again",
            )

    def close(self) -> None:
        self._closing.set()
        self._thread.join()
        with suppress(StoreError):  # then the claim goes stale instead
            if self._highest():
                self._renew(given_up=True)

    def _settle(self) -> None:
        time.sleep(SETTLE_SECONDS)
        if not self._highest():
            newest = newest_claim(self._place)
            self._file(self._beats).remove()
            raise _occupied(self._place, newest[1] if newest else Owner.this_process())
        for name in (self._place / OWNERS).files():
            if name < self._name:
                (self._place / OWNERS / name).remove()

    def _renewing(self) -> None:
        while not self._closing.wait(HEARTBEAT_SECONDS):
            with suppress(StoreError), self._writing:  # a store that cannot be reached now is tried again; commits tell of it
                if not self._highest():
                    self._overtaken = True
                    return
                self._renew()

    def _highest(self) -> bool:
        claims = (self._place / OWNERS).files()
        return bool(claims) and claims[-1].startswith(self._name)

    def _file(self, beat: int) -> Place:
        return self._place / OWNERS / f"{self._name}-{beat:012d}"

    def _renew(self, *, given_up: bool = False) -> None:
        self._beats += 1
        durable.write(self._file(self._beats), asdict(replace(Owner.this_process(), given_up=given_up)))
        if self._beats > 2:
            self._file(self._beats - 2).remove()


def newest_claim(place: Place) -> tuple[str, Owner] | None:
    """The highest claim and what it says. One that is not there or cannot be read may be on its way: it is looked for again."""
    claims: list[str] = []
    for attempt in range(5):
        claims = (place / OWNERS).files()
        if claims:
            with suppress(CheckpointError):
                header, _ = durable.read(place / OWNERS / claims[-1])
                return claims[-1], Owner(**{key: value for key, value in header.items() if key != "blobs"})
        elif attempt:
            return None
        time.sleep(RETRY_SECONDS)
    raise durable.damaged(place / OWNERS / claims[-1], "the claim of the owner cannot be read")


def unlocked(place: Place) -> list[str]:
    """Take a place, or the places in it, from whoever owns them. Returns a line about each."""
    lines = []
    for one in (place, *(place / name for name in place.folders())):
        newest = newest_claim(one) if one.local is None else None
        if newest is not None and not newest[1].given_up:
            taken = replace(Owner.this_process(), given_up=True)
            durable.write(one / OWNERS / _claim_name(newest[0], uuid.uuid4().hex), asdict(taken))
            lines.append(f"unlocked {one}: it was owned by {newest[1]}")
    if not lines:
        raise Refusal(
            "what is unlocked is owned by a job on a shared store",
            values=f"{place}: nobody owns it" if place.local is None else f"{place} is on this machine's disk",
            way_out="start the job: on the local disk a lock ends with its process",
        )
    return lines


def _occupied(place: Place, owner: Owner) -> Occupied:
    left = max(0.0, STALE_SECONDS - (time.time() - owner.heartbeat))
    way_out = f"stop that job; if it is gone, start again in {left:.0f} s, or run `muntin unlock '{place}'`"
    return Occupied(str(owner), way_out)


def _claim_name(before: str, token: str) -> str:
    return f"{int(before.partition('-')[0] or 0) + 1:08d}-{token}"


def _machine() -> str:
    """The running kernel and the process numbers' namespace; "" where the system does not tell."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{boot} {Path('/proc/self/ns/pid').readlink()}"
    except OSError:
        return ""


def _runs(process: int) -> bool:
    with suppress(PermissionError):  # it runs, as another user
        try:
            os.kill(process, 0)
        except ProcessLookupError:
            return False
    return True
