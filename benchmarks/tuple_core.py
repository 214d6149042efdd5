"""The core of slide-by-tuple windows alone: batches of partials per distinct tick in, results per window-id out, on one core.

In: counts of tuples, ranges, disorder. Out: a table of tuples per second of processor time: `python -m benchmarks.tuple_core`.
Convention: count, sum and max at once; tuples come 100 µs apart, one per tick, in batches; disorder means that this share of them comes
up to 5 seconds late, within the slack. The answers of the last batches are checked before a time is believed.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import dataclass

import numpy as np

from benchmarks.machine import this_machine
from muntin.aggregates.base import Array, LaneType
from muntin.aggregates.extrema import Direction, Extremum
from muntin.aggregates.sums import Count, NarrowSum
from muntin.disorder import Slack
from muntin.semantics import TupleSlide
from muntin.timeline import END, MINUTE, SECOND
from muntin.windows.bytuple import Ends, TupleWindows
from muntin.windows.tuplerows import TupleColumns, TupleRows

APART = 100
DELAY = 5 * SECOND


@dataclass(frozen=True)
class Case:
    tuples: int
    range: int
    batch: int = 250_000
    disorder: float = 0.0
    partitions: int = 1
    shuffled: bool = False  #: rows of a batch in no order at all, as a hash aggregation leaves them

    def __str__(self) -> str:
        order = "in no order in a batch" if self.shuffled else f"{self.disorder:.0%} out of order"
        return f"RANGE {self.range / SECOND:g} s, batches of {self.batch:,}, {order}, partitions {self.partitions}"


@dataclass(frozen=True)
class Stream:
    ticks: Array
    values: Array
    series: Array


def stream(case: Case) -> Stream:
    chance = np.random.default_rng(7)
    ticks = np.arange(case.tuples, dtype=np.int64) * APART
    arrives = ticks + np.where(chance.random(case.tuples) < case.disorder, chance.integers(0, DELAY, case.tuples), 0)
    order = np.argsort(arrives, kind="stable")
    if case.shuffled:
        order = np.concatenate([chance.permutation(order[at : at + case.batch]) for at in range(0, case.tuples, case.batch)])
    return Stream(ticks[order], chance.integers(0, 1000, case.tuples)[order], chance.integers(0, case.partitions, case.tuples)[order])


def run(case: Case, some: Stream) -> tuple[float, list[Ends]]:
    """Seconds of processor time, and what came out."""
    columns = TupleColumns([Count(), NarrowSum(), Extremum(Direction.MAX, LaneType.INT64)], [[LaneType.INT64]] * 3)
    windows = TupleWindows(TupleSlide(case.range), columns)
    windows.add_series(np.arange(case.partitions))
    slack, greatest, found = Slack(DELAY), 0, []
    ones = np.ones(case.batch, dtype=np.int64)
    begun = time.process_time()
    for at in range(0, case.tuples, case.batch):
        part = slice(at, at + case.batch)
        ticks, values = some.ticks[part], some.values[part]
        one = ones[: len(ticks)]
        windows.absorb(TupleRows(some.series[part], ticks, one, ((one,), (values,), (values,))))
        greatest = max(greatest, int(ticks.max()))
        found += windows.close(slack.punctuation(greatest))
    found += windows.close(END)
    return time.process_time() - begun, found


def check(case: Case, some: Stream, found: list[Ends]) -> None:
    """Every tuple ended one window; the values of a few hundred of them, recomputed from the tuples."""
    if sum(len(ends.ticks) for ends in found) != case.tuples:
        raise AssertionError(f"{sum(len(ends.ticks) for ends in found)} windows for {case.tuples} tuples")
    ends = max(found, key=lambda one: len(one.ticks))
    for at in np.linspace(0, len(ends.ticks) - 1, 200).astype(int):
        series, tick = ends.series[at], ends.ticks[at]
        inside = some.values[(some.series == series) & (some.ticks > tick - case.range) & (some.ticks <= tick)]
        ours = tuple(int(state[0][at]) for state in ends.states)
        if ours != (len(inside), int(inside.sum()), int(inside.max())):
            raise AssertionError(f"window {tick} of {series}: {ours}, but {len(inside)}, {inside.sum()}, {inside.max()}")


def measured(case: Case, *, times: int = 3) -> float:
    """Tuples per second of processor time, the best of some runs, once the answer was checked."""
    some = stream(case)
    check(case, some, run(case, some)[1])
    return case.tuples / min(run(case, some)[0] for _ in range(times))


def cases(tuples: int) -> list[Case]:
    ordered = [Case(tuples, seconds * SECOND) for seconds in (1, 10, 60)] + [Case(tuples, 5 * MINUTE)]
    return [
        *ordered,
        Case(tuples, 10 * SECOND, disorder=0.1),
        Case(tuples, 5 * MINUTE, disorder=0.1),
        Case(tuples, 5 * MINUTE, batch=25_000),
        Case(tuples, 5 * MINUTE, batch=25_000, disorder=0.1),
        Case(tuples, 5 * MINUTE, shuffled=True),
        Case(tuples, 5 * MINUTE, partitions=1000),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tuples", type=int, default=8_000_000)
    given = parser.parse_args()
    lines = [*this_machine().lines(), "", "| case | M tuples/s of processor time |", "|---|---|"]
    lines += [f"| {case} | {measured(case) / 1e6:.2f} |" for case in cases(given.tuples)]
    print("\n".join(lines))


if __name__ == "__main__":
    main()
