"""Interleaved timing: every task once a round, in an order that changes from round to round, so that noise falls on all alike.

In: named tasks. Out: for each task the seconds of every round it ran in, and their median. Convention: warm-up rounds come first and
are thrown away (the JVM compiles, caches fill); what `prepare` does before a task is not timed.
"""

from __future__ import annotations

import random
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeVar

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

One = TypeVar("One")

#: Called after each step with the name of what comes next.
Tick = Callable[[str], None]


@dataclass(frozen=True)
class Task:
    """One thing to time, in every round or, if it takes long, in every second, third, … only."""

    name: str
    run: Callable[[], object]
    every: int = 1


@dataclass(frozen=True)
class Times:
    """The seconds of each round that one task ran in, in order."""

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
    """Time every task in its rounds; warm-ups have negative numbers."""
    chance = random.Random(seed)
    found: dict[str, list[float]] = {task.name: [] for task in tasks}
    for number in range(-warmups, rounds):
        label = f"round {number + 1} of {rounds}" if number >= 0 else "warm-up"
        chosen = in_round(tasks, number)
        for task in chance.sample(chosen, len(chosen)):
            tick(f"{label}: {task.name}")
            prepare()
            seconds = timed(task.run)
            if number >= 0:
                found[task.name].append(seconds)
    return {name: Times(tuple(seconds)) for name, seconds in found.items()}


def in_round(tasks: Sequence[Task], number: int) -> list[Task]:
    """A task that takes long is not warmed up: it ran once when its answers were checked."""
    return [task for task in tasks if task.every == 1 or (number >= 0 and number % task.every == 0)]


def runs(tasks: Sequence[Task], *, rounds: int, warmups: int) -> int:
    """How often anything is run."""
    return sum(len(in_round(tasks, number)) for number in range(-warmups, rounds))


def spread(all_of_them: Sequence[One], count: int) -> list[One]:
    """So many of them, or all if there are fewer, spread evenly.

    >>> spread("abcdefgh", 3), spread("ab", 3)
    (['a', 'c', 'f'], ['a', 'b'])
    """
    count = min(count, len(all_of_them))
    return [all_of_them[at * len(all_of_them) // count] for at in range(count)]


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
