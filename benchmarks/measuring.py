"""Interleaved timing: every task once a round, in an order that changes from round to round, so that noise falls on all alike.

In: named tasks. Out: for each task the seconds of every round, and their median. Convention: warm-up rounds come first and are
thrown away (the JVM compiles, caches fill); what `prepare` does before a task is not timed.
"""

from __future__ import annotations

import random
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

#: Called after each step with the name of what comes next.
Tick = Callable[[str], None]


@dataclass(frozen=True)
class Task:
    """One thing to time."""

    name: str
    run: Callable[[], object]


@dataclass(frozen=True)
class Times:
    """The seconds of each round of one task, in order."""

    seconds: tuple[float, ...]

    @property
    def median(self) -> float:
        return statistics.median(self.seconds)

    @property
    def best(self) -> float:
        return min(self.seconds)

    @property
    def worst(self) -> float:
        return max(self.seconds)

    def __str__(self) -> str:
        return f"{self.median:.3f} s ({self.best:.3f} to {self.worst:.3f})"


def interleaved(
    tasks: Sequence[Task], *, rounds: int, warmups: int, prepare: Callable[[], object], tick: Tick = lambda _: None, seed: int = 1
) -> dict[str, Times]:
    """Time every task in every round."""
    chance = random.Random(seed)
    found: dict[str, list[float]] = {task.name: [] for task in tasks}
    for number in range(warmups + rounds):
        label = f"round {number - warmups + 1} of {rounds}" if number >= warmups else "warm-up"
        for task in chance.sample(tasks, len(tasks)):
            tick(f"{label}: {task.name}")
            prepare()
            seconds = timed(task.run)
            if number >= warmups:
                found[task.name].append(seconds)
    return {name: Times(tuple(seconds)) for name, seconds in found.items()}


def timed(run: Callable[[], object]) -> float:
    began = time.perf_counter()
    run()
    return time.perf_counter() - began


@contextmanager
def progress(console: Console, title: str, total: int) -> Iterator[Tick]:
    """A bar that moves one step with every tick."""
    columns = (TextColumn("{task.fields[title]}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TextColumn("{task.description}"))
    with Progress(*columns, console=console) as display:
        shown = display.add_task("", total=total, title=title)
        begun = 0

        def tick(what: str) -> None:
            nonlocal begun
            display.update(shown, completed=begun, description=what)
            begun += 1

        yield tick
        display.update(shown, completed=total, description="")
