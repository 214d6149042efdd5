"""This process and all that it started, as the system counts them: the JVM, and Spark's Python workers.

In: nothing. Out: memory at the most, bytes read, processor time. Convention: from `/proc`; where there is none, numbers are zero. A process
that ends while it is looked at counts as nothing.
"""

from __future__ import annotations

import os
import re
import threading
import time
import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

SAMPLES_A_SECOND = 2


@contextmanager
def highest_memory() -> Iterator[list[int]]:
    """The most memory that this process and its descendants have while it is entered, in bytes, sampled twice a second."""
    most, done = [0], threading.Event()

    def sample() -> None:
        while not done.wait(1 / SAMPLES_A_SECOND):
            most[0] = max(most[0], memory_of(descendants()))

    thread = threading.Thread(target=sample, daemon=True)
    thread.start()
    try:
        yield most
    finally:
        done.set()
        thread.join()


def descendants() -> list[int]:
    parents: dict[int, int] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            parents[int(stat.parent.name)] = int(stat.read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue
    found = [int(Path("/proc/self").resolve().name)]
    for process in found:
        found += [child for child, parent in parents.items() if parent == process]
    return found


def memory_of(processes: Sequence[int]) -> int:
    """PSS counts a page that n processes share as one n-th for each. Files that are mapped count while they are in memory."""
    return sum(_found(process, "smaps_rollup", r"^Pss: +(\d+)") for process in processes) * 1024


def bytes_read() -> int:
    """All bytes that Python processes among them have read from files so far; the JVM reads its own code."""
    return sum(_found(process, "io", r"^rchar: (\d+)") for process in descendants() if _is_python(process))


def _is_python(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/comm").read_text().startswith(("python", "pytest"))
    except OSError:
        return False


def _found(process: int, file: str, pattern: str) -> int:
    try:
        found = re.search(pattern, Path(f"/proc/{process}/{file}").read_text(), re.MULTILINE)
    except OSError:
        return 0
    return int(found[1]) if found else 0


def processor_seconds() -> tuple[float, float]:
    """What this process, and all that it started, have had of the processor so far; those that ended are in what their parents had."""
    own, *others = descendants()
    return _processor(own, waited=False), sum(_processor(process, waited=True) for process in others)


class Spent:
    """What this process and all that it started have had of the processor, looked at twice a second as long as this is there.

    A process whose parent ends before it is nobody's, and what it had is in nobody's sum: so each is remembered as last seen.
    """

    def __init__(self) -> None:
        self._last: dict[int, float] = {}
        self._lock = threading.Lock()
        threading.Thread(target=self._look, args=(weakref.ref(self),), daemon=True).start()

    @staticmethod
    def _look(watched: weakref.ref[Spent]) -> None:
        while (spent := watched()) is not None:
            spent.seconds()
            del spent
            time.sleep(1 / SAMPLES_A_SECOND)

    def seconds(self) -> float:
        with self._lock:
            for process in {*descendants(), *self._last}:
                self._last[process] = max(self._last.get(process, 0.0), _processor(process, waited=False))
            return sum(self._last.values())


def _processor(process: int, *, waited: bool) -> float:
    try:
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return sum(map(int, fields[11 : 15 if waited else 13])) / os.sysconf("SC_CLK_TCK")
