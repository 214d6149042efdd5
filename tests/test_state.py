"""The state of a job, on every kind of store: committed, recovered, refused where it is damaged, unharmed by SIGKILL at any moment."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from uuid import uuid4

import pytest

from fake_job import FakeJob
from log_job import BATCHES, job_on, results, run, take
from muntin.errors import CheckpointError, Refusal, SinkError
from muntin.spark import claims, control, slicelog
from muntin.spark.checkpoint import Checkpoint
from muntin.spark.control import Action, ask
from muntin.spark.place import Place
from muntin.spark.registrylog import Origin, Registered, RegistryLog
from muntin.spark.sinks.files import FileSink, Layout
from storage import KINDS, address, place_at

JOB = Path(__file__).with_name("log_job.py")


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(claims, "SETTLE_SECONDS", 0.0)
    monkeypatch.setattr(control, "SHARED_DESK_SECONDS", 0.05)
    monkeypatch.setattr(control, "SHARED_GLANCE_SECONDS", 0.05)
    monkeypatch.setattr(slicelog, "MOST_ENTRIES", 3)


@pytest.fixture
def place(home: str) -> Place:
    return place_at(home)


@pytest.fixture
def begun(place: Place) -> Place:
    """A checkpoint with a snapshot at batch 2 and the entry of batch 3, and its results; its job has ended before batch 4."""
    held = Checkpoint(place / "checkpoint", "a pipeline")
    (held.spark_directory / "metadata").write(b'{"id": "spark"}')
    sink = FileSink(place / "out", "jsonl", Layout.PARTS)
    job = job_on(held, sink)
    for number in range(BATCHES - 1):
        take(job, number)
    sink.close()
    held.close()
    return place


def test_a_job_that_goes_on_leaves_what_an_undisturbed_one_leaves(begun: Place, tmp_path: Path) -> None:
    run(begun / "checkpoint", begun / "out")
    undisturbed = Place.of(tmp_path / "undisturbed")
    run(undisturbed / "checkpoint", undisturbed / "out")
    assert results(begun / "out") == results(undisturbed / "out")
    assert results(begun / "out")["total"]


def test_a_snapshot_stands_for_what_is_forgotten(begun: Place) -> None:
    found = {name: (begun / "checkpoint" / name).files() for name in ("pins", "log", "done", "snapshots")}
    assert found == {
        "pins": ["00000002", "00000003"],
        "log": ["00000003"],
        "done": ["00000003"],
        "snapshots": ["00000002"],
    }


HARMS: dict[str, Callable[[bytes], bytes]] = {
    "emptied": lambda _: b"",
    "cut": lambda content: content[:-3],
    "flipped": lambda content: content[:20] + bytes([content[20] ^ 1]) + content[21:],
}


def test_a_damaged_or_missing_file_is_a_clear_error(begun: Place) -> None:
    for name in ("run", "log/00000003", "done/00000003", "snapshots/00000002", "pins/00000003"):
        folder, _, last = name.rpartition("/")
        file = (begun / "checkpoint" / folder if folder else begun / "checkpoint") / last
        content = bytes(file.read())
        for harm in HARMS.values():
            file.write(harm(content))
            with pytest.raises(CheckpointError, match=f"there and unharmed\n.*{name}"):
                run(begun / "checkpoint", begun / "out")
        file.write(content)
    for folder, last, complaint in (("log", "00000003", "there and unharmed"), ("", "run", "begins in an empty directory")):
        ((begun / "checkpoint" / folder if folder else begun / "checkpoint") / last).remove()
        with pytest.raises(CheckpointError, match=complaint):
            run(begun / "checkpoint", begun / "out")


def test_a_stranger_in_the_log_is_refused(begun: Place) -> None:
    (begun / "checkpoint" / "log" / "notes.txt").write(b"x")
    with pytest.raises(CheckpointError, match="nothing but its own files"):
        run(begun / "checkpoint", begun / "out")


def test_output_of_another_run_and_things_in_the_way_are_refused(begun: Place) -> None:
    with pytest.raises(SinkError, match="belongs to one run"):
        run(begun / "other", begun / "out")
    (begun / "elsewhere" / "total" / "precious.txt").write(b"x")
    with pytest.raises(SinkError, match="total is there already"):
        run(begun / "third", begun / "elsewhere")


@pytest.mark.parametrize("format", ["jsonl", "csv", "parquet"])
def test_whole_files_appear_when_the_run_has_ended(place: Place, format: str) -> None:
    for number in (1, 2):
        sink = FileSink(place, format, Layout.WHOLE)
        sink.open(f"run-{number}", [])
        sink.close()
    assert place.files() == ["_muntin.json"]
    assert f'"run": "run-{number}"'.encode() in bytes((place / "_muntin.json").read())


def test_versions_of_the_registry_and_the_pipeline_are_read_as_they_were_written(place: Place) -> None:
    queries = [Registered(name, f"CREATE QUERY {name} AS SELECT 1", Origin.PIPELINE) for name in "abc"]
    log = RegistryLog(place / "registry")
    assert (log.newest(), log.pipeline()) == (None, ())
    for version in (1, 2, 3):
        log.append(version, queries[:version])
        log.write_pipeline(queries[:version])
        log.write_pipeline(queries[:version])
    again = RegistryLog(place / "registry")
    assert [again.at(version) for version in (2, 3, 1)] == [tuple(queries[:2]), tuple(queries), tuple(queries[:1])]
    assert (again.newest(), again.pipeline()) == (3, tuple(queries))
    assert (place / "registry" / "pipelines").files() == ["00000003"]


def test_commands_reach_a_job_through_its_checkpoint(place: Place) -> None:
    with FakeJob(place) as job:
        for name in ("a", "b"):
            assert ask(place, Action.ADD, name=name, text="SELECT 1", timeout=20).accepted
        assert [row["name"] for row in ask(place, Action.LIST, timeout=20).queries] == ["a", "b"]
        assert not ask(place, Action.ADD, name="c", text="SELECT bad", timeout=20).accepted
    assert list(job.engine.texts) == ["a", "b"]
    assert [(place / "control" / folder).files() for folder in ("requests", "answers")] == [[], []]
    with pytest.raises(Refusal, match="no job runs on"):
        ask(place, Action.LIST, timeout=5)


def test_on_a_shared_store_a_client_is_never_sure_that_its_request_was_not_taken(place: Place) -> None:
    job = FakeJob(place)
    with job.holding():
        sure = "the request is withdrawn" if place.local is not None else "it may have taken the request\n.*look with muntin list"
        with pytest.raises(Refusal, match=sure):
            ask(place, Action.ADD, name="q", text="SELECT 1", timeout=0.2)
    assert (place / "control" / "requests").files() == []


# -- killed ------------------------------------------------------------------------------------------------------------------------


def check_survives(kind: str, directory: Path, endpoint: str, *, first: int, step: int) -> int:
    """Kill a job at every `step`-th moment; each time the next one goes on. Returns how often it was killed."""
    where = address(kind, f"{uuid4().hex}-NAME", directory=directory, endpoint=endpoint)
    report = directory / "report"
    subprocess.run([sys.executable, JOB, where, where, report, str(first), str(step)], check=True)
    undisturbed, *others = report.read_text().splitlines()
    assert len(undisturbed) > 1000
    assert set(others) == {undisturbed}
    return len(others) - 1


@pytest.mark.parametrize("kind", KINDS)
def test_killed_at_some_moments_it_leaves_the_undisturbed_result(kind: str, endpoint: str, tmp_path: Path) -> None:
    assert check_survives(kind, tmp_path, endpoint, first=11, step=29) >= 4


@pytest.mark.slow
@pytest.mark.parametrize("first", range(3))
@pytest.mark.parametrize("kind", KINDS)
def test_killed_at_any_moment_it_leaves_the_undisturbed_result(kind: str, first: int, endpoint: str, tmp_path: Path) -> None:
    check_survives(kind, tmp_path, endpoint, first=first, step=12 if kind == "objects" else 6)
