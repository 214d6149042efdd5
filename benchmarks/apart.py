"""A case in a process of its own: its memory, its JVM and its log are then its own.

In: a function of a case and a tick, both of a module that can be imported. Out: what it returns. Convention: ticks are passed on; an
error ends the case and is raised here as an EOFError, its stack on the terminal.
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import TypeVar

from benchmarks.measuring import Tick

Case = TypeVar("Case")
Found = TypeVar("Found")


def apart(measure: Callable[[Case, Tick], Found], case: Case, tick: Tick) -> Found:
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_tell, args=(measure, case, theirs))
    process.start()
    theirs.close()
    try:
        while isinstance(said := ours.recv(), str):
            tick(said)
        return said
    finally:
        process.join()


def _tell(measure: Callable[[Case, Tick], Found], case: Case, connection: Connection) -> None:
    connection.send(measure(case, connection.send))
