"""Requests to a running job: answered while somebody waits, withdrawn or refused otherwise, never applied later."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from fake_job import FakeJob, Names, lock
from muntin.errors import Refusal
from muntin.spark import control, durable
from muntin.spark.control import Action, Answer, Desk, Request, serve
from muntin.spark.place import Place

SELECT = "SELECT count(*) AS c FROM trades [RANGE 1 hour SLIDE 1 minute]"


@pytest.fixture
def locked(tmp_path: Path) -> Iterator[Path]:
    """A checkpoint that a job holds, though nobody listens at its desk."""
    with lock(tmp_path):
        yield tmp_path


def sent(checkpoint: Path, id: str, *, at: int, until: float = 60, text: str = SELECT) -> None:
    """A request as a client leaves it that is killed before it can wait."""
    header = {"action": "add", "name": id, "text": text, "sent": at, "until": time.time_ns() + int(until * 1e9)}
    durable.write(Place.of(checkpoint / "control/requests" / id), header)


def ask(checkpoint: Path, action: Action, **options: Any) -> Answer:
    return control.ask(Place.of(checkpoint), action, **options)


def desk_of(checkpoint: Path) -> Desk:
    return Desk(Place.of(checkpoint / "control"))


def answered(checkpoint: Path, id: str) -> Answer:
    return control._read(Place.of(checkpoint / "control/answers" / id))


def test_a_change_is_answered_with_the_batch_it_is_in_effect_from(tmp_path: Path) -> None:
    with FakeJob(tmp_path) as job:
        assert ask(tmp_path, Action.ADD, name="q", text=SELECT, timeout=10) == Answer(True, "in effect from batch 12 on (version 1)")
        assert ask(tmp_path, Action.REPLACE, name="q", text=SELECT + " ", timeout=10).message.endswith("(version 2)")
        assert job.engine.texts == {"q": SELECT + " "}
        assert ask(tmp_path, Action.DROP, name="q", timeout=10).accepted
        assert job.engine.texts == {}
    assert [path for path in (tmp_path / "control").rglob("*") if path.is_file()] == []


def test_a_list_comes_back_row_by_row(tmp_path: Path) -> None:
    with FakeJob(tmp_path) as job:
        job.engine.texts = {"a": SELECT, "b": SELECT}
        answer = ask(tmp_path, Action.LIST, timeout=10)
    assert answer.accepted
    assert [(row["name"], row["state"]) for row in answer.queries] == [("a", "running"), ("b", "running")]


def test_a_plan_comes_back_as_text(tmp_path: Path) -> None:
    with FakeJob(tmp_path):
        assert ask(tmp_path, Action.EXPLAIN, timeout=10).message == "stream trades: 0 queries"


def test_a_refusal_is_an_answer_and_leaves_the_rest_as_it_was(tmp_path: Path) -> None:
    with FakeJob(tmp_path) as job:
        ask(tmp_path, Action.ADD, name="q", text=SELECT, timeout=10)
        answer = ask(tmp_path, Action.ADD, name="other", text="SELECT bad", timeout=10)
        assert not answer.accepted
        assert answer.message == "bad is refused\n  found: bad\n  line 1: SELECT bad\n                 ^^^"
        assert list(job.engine.texts) == ["q"]
        assert ask(tmp_path, Action.DROP, name="q", timeout=10).accepted


@pytest.mark.parametrize("action", [Action.ADD, Action.REPLACE, Action.DROP])
def test_a_request_without_its_text_or_name_is_refused(tmp_path: Path, action: Action) -> None:
    with FakeJob(tmp_path):
        answer = ask(tmp_path, action, timeout=10)
    assert not answer.accepted
    assert "ADD and REPLACE have a text, DROP has a name" in answer.message


def test_a_defect_is_told_to_the_client_and_raised_in_the_job(locked: Path) -> None:
    desk = desk_of(locked)
    sent(locked, "one", at=0, text="defect")
    with pytest.raises(RuntimeError, match="a defect"):
        serve(desk, Names(), str)
    assert answered(locked, "one") == Answer(False, "the job failed on it: RuntimeError: a defect")


def test_requests_come_in_the_order_they_were_sent_in(locked: Path) -> None:
    desk = desk_of(locked)
    for id, at in (("b", 2), ("c", 3), ("a", 4), ("d", 1)):
        sent(locked, id, at=at)
    assert desk.requests() == [Request(id, Action.ADD, id, SELECT) for id in "dbca"]
    assert desk.requests() == []


def test_a_request_of_an_earlier_run_is_refused_and_not_applied(locked: Path) -> None:
    sent(locked, "old", at=0)
    desk = desk_of(locked)
    assert desk.requests() == []
    assert "the job has started since" in answered(locked, "old").message


def test_a_request_past_its_clients_time_is_refused_and_not_applied(locked: Path) -> None:
    desk = desk_of(locked)
    sent(locked, "past", at=0, until=-0.001)
    sent(locked, "waiting", at=0)
    assert [request.id for request in desk.requests()] == ["waiting"]
    assert "its time was up" in answered(locked, "past").message


def test_a_file_that_is_no_request_is_refused_and_the_job_goes_on(locked: Path) -> None:
    desk = desk_of(locked)
    sent(locked, "good", at=0)
    (locked / "control/requests/scribble").write_text("add a query, please")
    durable.write(Place.of(locked / "control/requests/strange"), {"action": "explode"})
    assert [request.id for request in desk.requests()] == ["good"]
    assert "it cannot be read" in answered(locked, "scribble").message
    assert "'explode' is not a valid Action" in answered(locked, "strange").message


@pytest.mark.parametrize("ran_before", [False, True])
def test_without_a_job_the_client_is_told_so_and_leaves_nothing_behind(tmp_path: Path, ran_before: bool) -> None:
    if ran_before:
        with FakeJob(tmp_path):
            pass
    with pytest.raises(Refusal, match=f"no job runs on {tmp_path}\n  way out: start one with muntin run"):
        ask(tmp_path, Action.LIST, timeout=10)
    assert not list(tmp_path.glob("control/requests/*"))


def test_a_request_that_is_not_taken_in_time_is_withdrawn(locked: Path) -> None:
    desk = desk_of(locked)
    with pytest.raises(Refusal, match=r"no answer in 0\.1 s; the request is withdrawn\n  way out: nothing was changed"):
        ask(locked, Action.ADD, name="q", text=SELECT, timeout=0.1)
    assert desk.requests() == []


def test_a_client_that_is_interrupted_withdraws_its_request(locked: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(_: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(control.time, "sleep", interrupted)
    with pytest.raises(KeyboardInterrupt):
        ask(locked, Action.ADD, name="q", text=SELECT, timeout=10)
    assert desk_of(locked).requests() == []


def test_a_request_that_was_taken_and_not_answered_may_come_into_effect(locked: Path) -> None:
    desk = desk_of(locked)
    taken: list[Request] = []

    def take() -> None:
        while not taken:
            taken.extend(desk.requests())
            time.sleep(0.01)

    taking = threading.Thread(target=take)
    taking.start()
    with pytest.raises(Refusal, match=r"no answer in 0\.5 s, but it took the request\n.*may come into effect"):
        ask(locked, Action.ADD, name="q", text=SELECT, timeout=0.5)
    taking.join()
    assert [request.name for request in taken] == ["q"]


def test_every_request_is_applied_once_or_withdrawn_whatever_the_timing(tmp_path: Path) -> None:
    """Sixty clients with little patience at a slow desk."""
    timing = random.Random(7)
    applied: list[str] = []

    class Slow(Names):
        def add(self, sql: str, name: str | None) -> None:
            time.sleep(timing.random() / 50)
            applied.append(name or "")

    def outcome(number: int) -> str:
        time.sleep(timing.random() / 2)
        try:
            answer = ask(tmp_path, Action.ADD, name=str(number), text=SELECT, timeout=timing.random() / 5)
        except Refusal as refusal:
            return "withdrawn" if "withdrawn" in str(refusal) else "taken"
        return "accepted" if answer.accepted else "refused"

    job = FakeJob(tmp_path)
    job.engine = Slow()
    with job, ThreadPoolExecutor(60) as clients:
        outcomes = dict(enumerate(clients.map(outcome, range(60))))
    by_outcome = {seen: {str(number) for number, one in outcomes.items() if one == seen} for seen in outcomes.values()}
    assert len(applied) == len(set(applied))
    assert by_outcome["accepted"] <= set(applied)
    assert not (by_outcome["withdrawn"] | by_outcome.get("refused", set())) & set(applied)


@pytest.fixture
def other_process(tmp_path: Path) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen([sys.executable, Path(__file__).with_name("fake_job.py"), tmp_path])
    try:
        while not control.running(Place.of(tmp_path)):
            assert process.poll() is None
            time.sleep(0.05)
        yield process
    finally:
        process.kill()
        process.wait()


def test_a_job_in_another_process_answers(other_process: subprocess.Popen[bytes], tmp_path: Path) -> None:
    for version, name in enumerate(("a", "b"), start=1):
        message = f"in effect from batch 12 on (version {version})"
        assert ask(tmp_path, Action.ADD, name=name, text=SELECT, timeout=30) == Answer(True, message)
    assert [row["name"] for row in ask(tmp_path, Action.LIST, timeout=30).queries] == ["a", "b"]


def test_a_job_that_dies_while_a_client_waits_is_noticed(other_process: subprocess.Popen[bytes], tmp_path: Path) -> None:
    ask(tmp_path, Action.LIST, timeout=30)
    other_process.send_signal(signal.SIGSTOP)
    threading.Timer(0.3, other_process.kill).start()
    began = time.monotonic()
    with pytest.raises(Refusal, match="the job has ended; the request is withdrawn"):
        ask(tmp_path, Action.ADD, name="q", text=SELECT, timeout=60)
    assert time.monotonic() - began < 20
