"""One job at a time, on every kind of store: locks, claims, stale heartbeats, and a job that wakes up after it was taken for gone."""

from __future__ import annotations

import fcntl
import os
import re
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from log_job import job_on, results, run, take
from muntin.errors import CheckpointError, OwnershipError, Refusal, SinkError
from muntin.spark import claims, durable
from muntin.spark.checkpoint import Checkpoint
from muntin.spark.claims import OWNERS, Claim, Owner, newest_claim, unlocked
from muntin.spark.locks import FileLock, Occupied
from muntin.spark.ownership import LOCK, is_owned, own
from muntin.spark.place import Place
from muntin.spark.sinks.base import EntryId
from muntin.spark.sinks.files import FileSink, Layout
from storage import KINDS, address, place_at


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(claims, "SETTLE_SECONDS", 0.05)
    monkeypatch.setattr(claims, "HEARTBEAT_SECONDS", 0.05)


@pytest.fixture
def place(home: str) -> Place:
    return place_at(home)


@pytest.fixture(params=[kind for kind in KINDS if kind != "disk"])
def shared(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    """Where the kernel keeps no locks."""
    endpoint = request.getfixturevalue("endpoint") if request.param == "objects" else ""
    return place_at(address(request.param, uuid4().hex, directory=tmp_path, endpoint=endpoint))


def claimed(place: Place, number: int, owner: Owner) -> None:
    """A claim as another process left it."""
    durable.write(place / OWNERS / f"{number:08d}-{'f' * 32}", asdict(owner))


def elsewhere(*, seconds_ago: float = 0.0) -> Owner:
    return Owner("other-host", "another machine", 7, time.time() - seconds_ago)


def test_a_second_job_is_refused_until_the_first_lets_go(place: Place) -> None:
    first = Checkpoint(place, "p")
    assert is_owned(place)
    with pytest.raises(CheckpointError, match=rf"used by one job at a time\n.*held by process {os.getpid()}"):
        Checkpoint(place, "p")
    first.check_owned()
    first.close()
    assert not is_owned(place)
    second = Checkpoint(place, "p")
    assert second.run == first.run
    second.close()


def test_an_output_directory_is_written_by_one_job_at_a_time(place: Place) -> None:
    first = FileSink(place, "jsonl", Layout.PARTS)
    first.open("run-1", [])
    with pytest.raises(SinkError, match="one job writes to a directory at a time"):
        FileSink(place, "jsonl", Layout.PARTS).open("run-1", [])
    first.close()
    again = FileSink(place, "jsonl", Layout.PARTS)
    again.open("run-1", [])
    again.close()


def heard_of(place: Place) -> float:
    newest = newest_claim(place)
    assert newest is not None
    return newest[1].heartbeat


def test_a_heartbeat_renews_a_claim(shared: Place) -> None:
    claim = Claim(shared)
    first = heard_of(shared)
    while heard_of(shared) < first + 0.3:
        time.sleep(0.01)
    with pytest.raises(Occupied, match=r"last heard of \d+ s ago"):
        Claim(shared)
    claim.check()
    claim.close()


def test_a_claim_is_never_missing_while_its_heartbeat_is_renewed(shared: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where a store replaces a file by deleting it first: a place that is owned never looks free."""
    claim, seen = Claim(shared), []

    def looking(operation: Callable[..., Any]) -> Callable[..., Any]:
        def then_look(*arguments: Any) -> Any:
            found = operation(*arguments)
            seen.append((shared / OWNERS).files())
            return found

        return then_look

    monkeypatch.setattr(Place, "remove", looking(Place.remove))
    monkeypatch.setattr(claims.durable, "write", looking(claims.durable.write))
    for _ in range(4):
        claim._renew()
    assert len(seen) > 4
    assert all(seen)
    claim.close()


def test_a_stale_owner_is_taken_over_and_a_fresh_one_is_not(shared: Place) -> None:
    claimed(shared, 4, elsewhere(seconds_ago=claims.STALE_SECONDS - 15))
    with pytest.raises(Occupied, match=r"process 7 on other-host, last heard of 4\d s ago") as occupied:
        Claim(shared)
    assert re.match(r"stop that job; if it is gone, start again in 1\d s, or run `muntin unlock '", occupied.value.way_out)
    claimed(shared, 4, elsewhere(seconds_ago=claims.STALE_SECONDS + 1))
    claim = Claim(shared)
    assert [name.partition("-")[0] for name in (shared / OWNERS).files()] == ["00000005"]
    claim.close()


def test_a_process_of_this_machine_that_is_gone_needs_no_waiting(shared: Place) -> None:
    child = subprocess.Popen([sys.executable, "-c", ""])
    child.wait()
    here = Owner.this_process()
    if not here.machine:
        pytest.skip("the system does not tell one kernel's process numbers from another's")
    claimed(shared, 1, replace(here, process=child.pid))
    Claim(shared).close()
    claimed(shared, 9, replace(here, process=child.pid, machine="another container"))
    with pytest.raises(Occupied):
        Claim(shared)


def test_a_claim_that_is_given_up_is_free_at_once_and_its_number_is_not_used_again(shared: Place) -> None:
    for number in (1, 2, 3):
        Claim(shared).close()
        newest = newest_claim(shared)
        assert newest is not None
        assert (newest[0][:8], newest[1].given_up) == (f"{number:08d}", True)


def test_of_two_that_claim_at_once_one_gets_it(shared: Place) -> None:
    outcomes: list[Claim | Occupied] = []

    def attempt() -> None:
        try:
            outcomes.append(Claim(shared))
        except Occupied as occupied:
            outcomes.append(occupied)

    threads = [threading.Thread(target=attempt) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    owners = [one for one in outcomes if isinstance(one, Claim) and one._highest()]
    assert len(owners) == 1
    for one in outcomes:
        if isinstance(one, Claim):
            one.close()


def test_a_job_that_wakes_up_after_it_was_taken_over_commits_nothing(shared: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first job is paused in the midst of its batches; the second takes over and ends; then the first goes on."""
    checkpoint, out = shared / "checkpoint", shared / "out"
    with monkeypatch.context() as paused:
        paused.setattr(claims, "HEARTBEAT_SECONDS", 3600.0)  # no heartbeat while it is paused
        first = Checkpoint(checkpoint, "a pipeline")
        (first.spark_directory / "metadata").write(b'{"id": "spark"}')
        job = job_on(first, FileSink(out, "jsonl", Layout.PARTS))
    assert job.log is not None
    take(job, 0)
    with monkeypatch.context() as later:
        later.setattr(claims, "STALE_SECONDS", -1.0)
        run(checkpoint, out)
    before = tree(shared)
    with pytest.raises(OwnershipError, match="taken over by another job, or unlocked"):
        take(job, 1)
    with pytest.raises(OwnershipError):
        job.sinks[0].write(EntryId(1), [], "clicks")
    with pytest.raises(OwnershipError):
        job.log.done(EntryId(1), {})
    first.close()
    job.sinks[0].abandon()
    assert tree(shared) == before
    assert len(results(out)["total"]) > 5


def tree(place: Place) -> dict[str, bytes]:
    found = {str(place / name): bytes((place / name).read()) for name in place.files()}
    for name in place.folders():
        found |= tree(place / name)
    return found


def test_a_place_can_be_unlocked_by_hand_and_its_owner_then_commits_nothing(shared: Place) -> None:
    first = Checkpoint(shared / "trades", "p")
    lines = unlocked(shared)
    assert len(lines) == 1
    assert lines[0].startswith(f"unlocked {shared / 'trades'}: ")
    assert f"owned by process {os.getpid()} on {socket.gethostname()}" in lines[0]
    with pytest.raises(OwnershipError):
        first.check_owned()
    second = Checkpoint(shared / "trades", "p")
    first.close()
    second.check_owned()
    second.close()
    with pytest.raises(Refusal, match="nobody owns it"):
        unlocked(shared)


def test_on_the_local_disk_there_is_nothing_to_unlock(tmp_path: Path) -> None:
    with pytest.raises(Refusal, match=r"is on this machine's disk\n.*a lock ends with its process"):
        unlocked(Place.of(tmp_path))


def test_a_damaged_claim_is_an_error_and_no_free_place(shared: Place) -> None:
    (shared / OWNERS / f"00000001-{'0' * 32}").write(b"scribble")
    with pytest.raises(CheckpointError, match="the claim of the owner cannot be read"):
        Checkpoint(shared, "p")


@pytest.fixture
def looked_at(tmp_path: Path) -> Iterator[Path]:
    """A lock that a client holds, shared, for a moment, as it does to see whether a job runs."""
    path = tmp_path / LOCK
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT)
    fcntl.flock(descriptor, fcntl.LOCK_SH)
    timer = threading.Timer(0.05, os.close, [descriptor])
    timer.start()
    yield path
    timer.join()


def test_a_client_that_looks_does_not_keep_a_job_from_starting(looked_at: Path) -> None:
    FileLock(looked_at).close()


def test_a_checkpoint_starts_though_clients_look_at_it_all_the_time(tmp_path: Path) -> None:
    place, ended = Place.of(tmp_path), threading.Event()
    own(place, LOCK).close()

    def look() -> None:
        while not ended.is_set():
            is_owned(place)
            time.sleep(0.001)

    clients = [threading.Thread(target=look) for _ in range(3)]
    for client in clients:
        client.start()
    try:
        for _ in range(50):
            own(place, LOCK).close()
    finally:
        ended.set()
        for client in clients:
            client.join()
