"""How a command reaches a running job: requests and answers as files in `<checkpoint>/control`.

In: on the client's side a change of the queries, or the wish to see them; on the job's side the engine that makes the change.
Out: an `Answer`, once the change is in effect or refused. Needs no Spark.
Convention: the client publishes `requests/<id>` and waits for `answers/<id>`. Whoever deletes a request owns it: the job by taking it,
the client by withdrawing it when its time is up. So a request is applied while somebody waits for it, or never; one that a killed client
left behind is past its time, or of an earlier run, and is refused. On a shared store both may be told that they deleted it: there the
client never says for certain that nothing was changed. And there both sides look less often, since looking is a request that costs.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, Protocol

from muntin.errors import MuntinError, Refusal
from muntin.spark import durable
from muntin.spark.ownership import is_owned
from muntin.spark.place import Place

#: How often a client looks for its answer, and whether the job is still there.
GLANCE_SECONDS, PULSE_SECONDS = 0.02, 1.0

#: On a shared store: how often a client looks for its answer, and a job for requests.
SHARED_GLANCE_SECONDS, SHARED_DESK_SECONDS = 0.5, 2.0

_IN_TIME = "a job answers a request in time"


class Action(Enum):
    ADD = "add"
    DROP = "drop"
    REPLACE = "replace"
    LIST = "list"
    EXPLAIN = "explain"


@dataclass(frozen=True)
class Request:
    """What a client asks for: ADD and REPLACE have a text, and a name if that is a bare SELECT; DROP has a name."""

    id: str
    action: Action
    name: str | None
    text: str | None


@dataclass(frozen=True)
class Answer:
    """`message` says from when on the change is in effect, or why it was refused, or is what EXPLAIN asked for; `queries` is what LIST
    asked for, a row each.
    """

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

    def explain(self) -> str:
        """The plan in use, with the counts it was chosen from."""
        ...


# -- the job's side -----------------------------------------------------------------------------------------------------------------


class Desk:
    """Where a job takes requests, in `<checkpoint>/control`. The checkpoint's lock keeps a second one away."""

    def __init__(self, directory: Place) -> None:
        self._requests, self._answers = directory / "requests", directory / "answers"
        self._pause = SHARED_DESK_SECONDS if directory.local is None else 0.0
        self._looked = time.monotonic()
        for leftover in self._answers.files():
            (self._answers / leftover).remove()
        for name in self._requests.files():  # of an earlier run, or of a client that asked while this one was starting
            self._take(self._requests / name, "the job has started since")

    def requests(self) -> list[Request]:
        """What was asked since the last time, in order of arrival. Each is the job's to answer now."""
        if time.monotonic() < self._looked + self._pause:
            return []
        self._looked = time.monotonic()
        taken = [self._take(self._requests / name) for name in self._requests.files()]
        return [request for _, request in sorted((one for one in taken if one), key=lambda one: one[0])]

    def answer(self, request: Request, answer: Answer) -> None:
        self._write(request.id, answer)

    def _take(self, path: Place, objection: str = "") -> tuple[int, Request] | None:
        """The request and when it was sent; None if it was withdrawn, or if it cannot be taken and was told so."""
        sent, until, request = 0, 0, None
        try:
            header, _ = durable.read(path)
            request = Request(path.name, Action(header["action"]), header["name"], header["text"])
            sent, until = header["sent"], header["until"]
        except (MuntinError, KeyError, ValueError) as error:
            objection = f"it cannot be read: {error}"
        if not path.remove():
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
        case Request(action=Action.EXPLAIN):
            return Answer(True, engine.explain())
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


def ask(checkpoint: Place, action: Action, *, name: str | None = None, text: str | None = None, timeout: float) -> Answer:
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
        removed = request.remove()
    if not answer.exists():
        found = f"no answer in {timeout:g} s" if running(checkpoint) else "the job has ended"
        if removed and request.local is not None:
            raise _withdrawn(found)
        raise _unanswered(f"{found}, but it took the request" if not removed else f"{found}; it may have taken the request")
    return _read(answer)


def running(checkpoint: Place) -> bool:
    """Whether a job owns the checkpoint of one of its streams."""
    return any(is_owned(checkpoint / name) for name in checkpoint.folders())


def _check_running(checkpoint: Place) -> None:
    if not running(checkpoint):
        raise Refusal(
            "queries come and go while a job runs on the checkpoint",
            values=f"no job runs on {checkpoint}",
            way_out=f"start one with muntin run PIPELINE --checkpoint {checkpoint}",
        )


def _wait_for(answer: Place, checkpoint: Place, deadline: float) -> None:
    """Until the answer is there, the time is up, or the job is gone."""
    pulse = time.monotonic() + PULSE_SECONDS
    while not answer.exists() and time.monotonic() < deadline:
        if time.monotonic() >= pulse:
            if not running(checkpoint):
                return
            pulse += PULSE_SECONDS
        time.sleep(GLANCE_SECONDS if answer.local is not None else SHARED_GLANCE_SECONDS)


def _withdrawn(found: str) -> Refusal:
    values, way_out = f"{found}; the request is withdrawn", "nothing was changed: ask again, or with a longer --timeout"
    return Refusal(_IN_TIME, values=values, way_out=way_out)


def _unanswered(found: str) -> Refusal:
    return Refusal(_IN_TIME, values=found, way_out="the change may come into effect: look with muntin list before you ask again")


def _read(answer: Place) -> Answer:
    header: dict[str, Any] = durable.read(answer)[0]
    answer.remove()
    return Answer(header["accepted"], header["message"], tuple(map(dict, header["queries"])))
