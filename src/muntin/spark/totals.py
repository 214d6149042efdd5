"""Totals of a run, and how far it is.

In: entries, and the assembly they went into. Out: counters for the slice log, and a `Progress` for people.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass

from muntin.disorder import Attributes
from muntin.errors import SourceError
from muntin.spark.assembling import Assembling
from muntin.spark.facts import BatchFacts
from muntin.spark.progress import Progress


@dataclass
class Totals:
    """Counters of the whole run; they go into the log with every entry."""

    rows: int = 0
    dead: int = 0
    entries: int = 0

    def add(self, facts: BatchFacts) -> None:
        self.rows += facts.rows
        self.dead += facts.dead
        self.entries += 1


class Stopwatch:
    """Time since this process took the run up, and the rows it had by then."""

    def __init__(self, totals: Totals) -> None:
        self._began, self._rows = time.monotonic(), totals.rows

    def progress(self, totals: Totals, assembly: Assembling, attributes: Attributes, troubles: Mapping[str, SourceError]) -> Progress:
        lives = assembly.lives.values()
        seconds = time.monotonic() - self._began
        return Progress(
            stream=attributes.stream.name,
            entries=totals.entries,
            rows=totals.rows,
            rows_per_second=(totals.rows - self._rows) / max(seconds, 1e-9),
            punctuation=attributes.time.punctuation,
            windows_closed=sum(one.windows for one in lives),
            results=sum(one.results for one in lives),
            late=sum(one.late for one in lives),
            dead_lettered=totals.dead,
            disorder=attributes.counts,
            seconds=seconds,
            slices=assembly.slices,
            groups=assembly.groups,
            troubles=tuple(map(str, troubles.values())),
        )
