"""How a command reaches a running job: requests and answers as files in `<checkpoint>/control`.

In: on the client's side a change of the queries, or the wish to see them; on the job's side the engine that makes the change.
Out: an `Answer`, once the change is in effect or refused. Needs no Spark.
Convention: the client publishes `requests/<id>` and waits for `answers/<id>`. Whoever deletes a request owns it: the job by taking it,
the client by withdrawing it when its time is up. So a request is applied while somebody waits for it, or never; one that a killed client
left behind is past its time, or of an earlier run, and is refused.
"""

from __future__ import annotations

import fcntl
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any, Protocol

from muntin.errors import MuntinError, Refusal
from muntin.spark import durable

#: How often a client looks for its answer, and whether the job is still there.
GLANCE_SECONDS, PULSE_SECONDS = 0.02, 1.0


class Action(Enum):
    ADD = "add"
    DROP = "drop"
    REPLACE = "replace"
    LIST = "list"


@dataclass(frozen=True)
class Request:
    """What a client asks for: ADD and REPLACE have a text, and a name if that is a bare SELECT; DROP has a name."""

    id: str
    action: Action
    name: str | None
    text: str | None


@dataclass(frozen=True)
class Answer:
    """`message` says from when on the change is in effect, or why it was refused; `queries` is what LIST asked for, a row each."""

    accepted: bool
    message: str
    queries: tuple[Mapping[str, str], ...] = ()


class Changes(Protocol):
    """The engine of a running job, as far as commands go. It refuses by raising a `MuntinError`."""

    def add(self, sql: str, name: str | None) -> object: ...

    def drop(self, name: str) -> object: ...

    def replace(self, sql: str, name: str | None) -> object: ...

    def listed(self) -> Sequence[Mapping[str, str]]:
        """A row per query: name, window, state (with the reason if it stopped), windows, results, late, origin."""
        ...


# -- the job's side -----------------------------------------------------------------------------------------------------------------


class Desk:
    """Where a job takes requests, in `<checkpoint>/control`. The checkpoint's lock keeps a second one away."""

    def __init__(self, directory: Path) -> None:
        self._requests, self._answers = directory / "requests", directory / "answers"
        for leftover in self._answers.glob("*"):
            leftover.unlink(missing_ok=True)
        for path in self._requests.glob("[!.]*"):  # of an earlier run, or of a client that asked while this one was starting
            self._take(path, "the job has started since")

    def requests(self) -> list[Request]:
        """What was asked since the last time, in order of arrival. Each is the job's to answer now."""
        taken = [self._take(path) for path in self._requests.glob("[!.]*")]
        return [request for _, request in sorted((one for one in taken if one), key=lambda one: one[0])]

    def answer(self, request: Request, answer: Answer) -> None:
        self._write(request.id, answer)

    def _take(self, path: Path, objection: str = "") -> tuple[int, Request] | None:
        """The request and when it was sent; None if it was withdrawn, or if it cannot be taken and was told so."""
        sent, until, request = 0, 0, None
        try:
            header, _ = durable.read(path)
            request = Request(path.name, Action(header["action"]), header["name"], header["text"])
            sent, until = header["sent"], header["until"]
        except (MuntinError, KeyError, ValueError) as error:
            objection = f"it cannot be read: {error}"
        if not _deleted(path):
            return None
        if request and not objection and time.time_ns() <= until:
            return sent, request
        self._write(path.name, _not_taken(objection or "its time was up before the job came to it"))
        return None

    def _write(self, name: str, answer: Answer) -> None:
        rows = [list(row.items()) for row in answer.queries]  # pairs: durable files sort keys, and columns have an order
        durable.write(self._answers / name, {"accepted": answer.accepted, "message": answer.message, "queries": rows})


def serve(desk: Desk, engine: Changes, where: Callable[[], str]) -> None:
    """Answer every request that is there. `where` says, after a change, from when on it is in effect."""
    for request in desk.requests():
        try:
            answer = _answer(request, engine, where)
        except MuntinError as refusal:
            answer = Answer(False, str(refusal))
        except BaseException as defect:
            desk.answer(request, Answer(False, f"the job failed on it: {type(defect).__name__}: {defect}"))
            raise
        desk.answer(request, answer)


def _answer(request: Request, engine: Changes, where: Callable[[], str]) -> Answer:
    match request:
        case Request(action=Action.LIST):
            return Answer(True, "", tuple(engine.listed()))
        case Request(action=Action.ADD, text=str(text)):
            engine.add(text, request.name)
        case Request(action=Action.REPLACE, text=str(text)):
            engine.replace(text, request.name)
        case Request(action=Action.DROP, name=str(name)):
            engine.drop(name)
        case _:
            raise Refusal("ADD and REPLACE have a text, DROP has a name", values=str(request), way_out="give what is missing")
    return Answer(True, where())


def _not_taken(objection: str) -> Answer:
    way_out = "nothing was changed: ask again"
    return Answer(False, str(Refusal("a request is taken while its client waits", values=objection, way_out=way_out)))


# -- the client's side --------------------------------------------------------------------------------------------------------------


def ask(checkpoint: Path, action: Action, *, name: str | None = None, text: str | None = None, timeout: float) -> Answer:
    """Ask the job that runs on a checkpoint, and wait at most `timeout` seconds. A refusal by the job is an `Answer` too."""
    _check_running(checkpoint)
    control, id = checkpoint / "control", uuid.uuid4().hex
    request, answer = control / "requests" / id, control / "answers" / id
    sent = time.time_ns()
    until = sent + int(timeout * 1e9)
    durable.write(request, {"action": action.value, "name": name, "text": text, "sent": sent, "until": until})
    try:
        _wait_for(answer, checkpoint, time.monotonic() + timeout)
    finally:
        withdrawn = _deleted(request)
    if not answer.exists():
        raise _unanswered(f"no answer in {timeout:g} s" if running(checkpoint) else "the job has ended", withdrawn=withdrawn)
    return _read(answer)


def running(checkpoint: Path) -> bool:
    """Whether a job holds the checkpoint of one of its streams."""
    return any(map(_held, checkpoint.glob("*/lock")))


def _held(lock: Path) -> bool:
    with lock.open() as file:
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)  # shared, so that clients are not in each other's way
        except BlockingIOError:
            return True
    return False


def _check_running(checkpoint: Path) -> None:
    if not running(checkpoint):
        raise Refusal(
            "queries come and go while a job runs on the checkpoint",
            values=f"no job runs on {checkpoint}",
            way_out=f"start one with muntin run PIPELINE --checkpoint {checkpoint}",
        )


def _wait_for(answer: Path, checkpoint: Path, deadline: float) -> None:
    """Until the answer is there, the time is up, or the job is gone."""
    pulse = time.monotonic() + PULSE_SECONDS
    while not answer.exists() and time.monotonic() < deadline:
        if time.monotonic() >= pulse:
            if not running(checkpoint):
                return
            pulse += PULSE_SECONDS
        time.sleep(GLANCE_SECONDS)


def _deleted(request: Path) -> bool:
    """Delete a request; False if the other side was first."""
    try:
        request.unlink()
    except FileNotFoundError:
        return False
    return True


def _unanswered(found: str, *, withdrawn: bool) -> Refusal:
    law = "a job answers a request in time"
    if withdrawn:
        return Refusal(
            law, values=f"{found}; the request is withdrawn", way_out="nothing was changed: ask again, or with a longer --timeout"
        )
    return Refusal(
        law,
        values=f"{found}, but it took the request",
        way_out="the change may come into effect: look with muntin list before you ask again",
    )


def _read(answer: Path) -> Answer:
    header: dict[str, Any] = durable.read(answer)[0]
    answer.unlink(missing_ok=True)
    return Answer(header["accepted"], header["message"], tuple(map(dict, header["queries"])))
