"""Work that goes on behind Spark's back: what is left of a batch once its partials are in the log.

In: from Spark's thread, a batch; from there, the rest of its work. Out: the gate, which is held from when a batch is taken until nothing
of it is left; and what failed. Convention: one batch at a time. Spark commits a batch and plans the next one, some 0.1 s, while results
are assembled and written; the next batch waits at the gate for what is left. After a failure nothing is taken any more.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager


class Stopping(Exception):
    """The job is being stopped: a batch that begins now is not taken, and Spark brings it again after a resume."""


class Behind:
    def __init__(self) -> None:
        self.gate = threading.Lock()
        self.stopping = False
        self.failure: BaseException | None = None
        self._rest: Callable[[], None] | None = None
        self._thread: threading.Thread | None = None

    @contextmanager
    def entered(self) -> Iterator[None]:
        """Take a batch, once the one before is done. The gate opens at the end, or when what `go_on` was given is done."""
        self.gate.acquire()
        try:
            if self.stopping:
                raise Stopping
            if self.failure is not None:
                raise self.failure
            yield
        except BaseException as failure:
            if not isinstance(failure, Stopping):
                self.failure = failure
            self.gate.release()
            raise
        if self._rest is None:
            self.gate.release()
        else:
            rest, self._rest = self._rest, None
            thread = threading.Thread(target=self._finish, args=(rest,), name="muntin finishes a batch")
            try:
                thread.start()
                self._thread = thread
            except RuntimeError:  # the system has no thread left
                self._finish(rest)

    def go_on(self, rest: Callable[[], None]) -> None:
        """Leave the rest of the batch for another thread."""
        self._rest = rest

    def _finish(self, rest: Callable[[], None]) -> None:
        try:
            rest()
        except BaseException as failure:  # noqa: BLE001 - raised by whoever waits for the job, and for the next batch
            self.failure = failure
        finally:
            self.gate.release()

    def settle(self) -> None:
        """Wait for what is being done."""
        if self._thread is not None:
            self._thread.join()
