"""The cost model of a micro-batch: seconds of the processor, as a sum of terms, each a constant times a number known before the run.

In: runs with what was measured. Out: a `Model`: the constants for the driver's Python (serial) and for all other processes (parallel), and
what it predicts for more cores. Convention: constants are fitted to relative errors and are not negative: a term that would be is left
out. More cores share all that is parallel but the batch's own term, most of which is planning in the driver's JVM.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

#: The terms: the batch itself, rows, shards, results (windows × groups × queries), tasks, files of results.
TERMS = ("batch", "row", "shard", "result", "task", "file")
#: What the driver's Python has to do with, by where windows are assembled: where that is on executors, it sees names and counts.
SERIAL = {"driver": ("batch", "shard", "result", "file"), "executors": ("batch", "task", "file")}
#: What more cores share.
DIVIDED = ("row", "shard", "result", "task", "file")


@dataclass(frozen=True)
class Load:
    """A batch, in numbers: `groups` have `rows` rows each, in one slice; each of `queries` closes one window."""

    groups: int
    rows: int
    queries: int
    instances: int
    place: str

    @property
    def amounts(self) -> dict[str, float]:
        """How often each term counts. Where the driver assembles there are no tasks of instances, and a file for each query."""
        spread = self.place == "executors"
        tasks = self.instances if spread else 0
        files = self.queries * (self.instances if spread else 1)
        numbers = (1, self.groups * self.rows, self.groups, self.groups * self.queries, tasks, files)
        return dict(zip(TERMS, map(float, numbers), strict=True))

    def __str__(self) -> str:
        spread = f", {self.instances} instances" if self.place == "executors" else ""
        return f"{self.groups:,} groups × {self.rows} rows, {self.queries} queries, {self.place}{spread}"


@dataclass(frozen=True)
class Cost:
    """Seconds of a batch: on the wall, of the processor in the driver's Python, and in all other processes."""

    wall: float
    serial: float
    parallel: float

    @property
    def processor(self) -> float:
        return self.serial + self.parallel


@dataclass(frozen=True)
class Run:
    load: Load
    cost: Cost


@dataclass(frozen=True)
class Model:
    """Seconds for one of each term, in the driver's Python and elsewhere; `wait` is what a batch takes on the wall and on no processor."""

    serial: dict[str, float]
    parallel: dict[str, float]
    wait: float

    def processor(self, load: Load) -> float:
        return sum(self._terms(load).values())

    def wall(self, load: Load, cores: int) -> float:
        """Of a batch whose tasks run on so many cores."""
        shared = sum(self.parallel[term] * load.amounts[term] for term in DIVIDED)
        return self.wait + self.processor(load) - shared * (1 - 1 / cores)

    def _terms(self, load: Load) -> dict[str, float]:
        return {term: (self.serial[term] + self.parallel[term]) * amount for term, amount in load.amounts.items()}


def fitted(runs: Sequence[Run], cores: int) -> Model:
    """To runs in one place, on a machine with so many cores."""
    serial = constants(runs, SERIAL[runs[0].load.place], [run.cost.serial for run in runs])
    parallel = constants(runs, TERMS, [run.cost.parallel for run in runs])
    alone = Model(serial, parallel, 0.0)
    waits = [run.cost.wall - alone.wall(run.load, cores) for run in runs]
    return Model(serial, parallel, max(0.0, float(np.median(waits))))


def constants(runs: Sequence[Run], terms: Sequence[str], measured: Sequence[float]) -> dict[str, float]:
    """The least squares of relative errors, with no constant below zero; terms that are not given have none."""
    amounts = np.array([[run.load.amounts[term] * (term in terms) for term in TERMS] for run in runs])
    seconds = np.array(measured)
    weights = 1 / np.maximum(seconds, 1e-3)  # of a time that short the error is the clock's
    weighted = amounts * weights[:, None]
    scale = np.maximum(np.abs(weighted).max(axis=0), 1e-300)
    found, used = np.zeros(amounts.shape[1]), np.any(amounts != 0, axis=0)
    while used.any():
        solved = np.linalg.lstsq(weighted[:, used] / scale[used], seconds * weights, rcond=None)[0]
        if (solved >= 0).all():
            found[used] = solved / scale[used]
            break
        used[np.nonzero(used)[0][solved.argmin()]] = False
    return dict(zip(TERMS, found.tolist(), strict=True))


def error(predicted: float, measured: float) -> float:
    """How far a prediction is off, as a part of what was measured."""
    return predicted / measured - 1
