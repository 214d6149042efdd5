"""A job without Spark: it holds a checkpoint's lock, listens at its desk, and keeps a list of names instead of running queries.

`with FakeJob(checkpoint) as job` listens in a thread; `python fake_job.py CHECKPOINT` in a process of its own, until it is killed.
It refuses a text with `bad` in it, and knows nothing of SQL beyond the name.
"""

from __future__ import annotations

import re
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Self

from muntin.errors import QueryError, Refusal, Span
from muntin.spark.control import Desk, serve
from muntin.spark.ownership import LOCK, own
from muntin.spark.place import Place


@contextmanager
def lock(checkpoint: Path | Place) -> Iterator[None]:
    """The checkpoint of the stream `trades` is owned, as by a running job."""
    owned = own(Place.of(checkpoint) / "trades", LOCK)
    try:
        yield
    finally:
        owned.close()


class Names:
    """What stands for the engine: names and texts."""

    def __init__(self) -> None:
        self.texts: dict[str, str] = {}
        self.version = 0

    def add(self, sql: str, name: str | None) -> None:
        found = re.search(r"CREATE QUERY (\w+)", sql)
        known = name or (found[1] if found else "")
        if "bad" in sql:
            raise QueryError("bad is refused", values="bad", text=sql, span=Span(sql.index("bad"), sql.index("bad") + 3))
        if "defect" in sql:
            raise RuntimeError("a defect")
        if known in self.texts:
            raise Refusal("a query's name is its own", values=known, way_out="choose another")
        self.texts[known] = sql
        self.version += 1

    def drop(self, name: str) -> None:
        if name not in self.texts:
            raise Refusal("only a registered query can be dropped", values=name)
        del self.texts[name]
        self.version += 1

    def replace(self, sql: str, name: str | None) -> None:
        self.texts[name or ""] = sql
        self.version += 1

    def listed(self) -> Sequence[Mapping[str, str]]:
        return [{"name": name, "window": "[RANGE 1 hour SLIDE 1 minute]", "state": "running", "late": "0"} for name in self.texts]

    def explain(self) -> str:
        return f"stream trades: {len(self.texts)} queries"

    def where(self) -> str:
        return f"in effect from batch 12 on (version {self.version})"


class FakeJob:
    """Listens while it is entered."""

    def __init__(self, checkpoint: Path | Place) -> None:
        self.checkpoint = checkpoint
        self.engine = Names()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._listen)

    def holding(self) -> AbstractContextManager[None]:
        """It runs, but does not listen."""
        return lock(self.checkpoint)

    def __enter__(self) -> Self:
        self._lock = self.holding()
        self._lock.__enter__()
        self._desk = Desk(Place.of(self.checkpoint) / "control")
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()
        self._lock.__exit__(None, None, None)

    def _listen(self) -> None:
        while not self._ended.wait(0.01):
            serve(self._desk, self.engine, self.engine.where)


if __name__ == "__main__":
    with FakeJob(Path(sys.argv[1])):
        time.sleep(60)
