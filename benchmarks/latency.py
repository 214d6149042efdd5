"""Figures 9 and 10 of window-id-2005: latency against accuracy, for slacks of both kinds and for punctuations from the source.

In: tuples with the time they carry and the time they arrive, out of order within bounds or in blocks. Out: a table for each figure:
`python -m benchmarks.latency`. Convention: the engine's own punctuators and assembly, batch by batch; latency is the arrival time of the
batch that closed a window less the window's end, averaged; the answers of a run that waits for everything are the truth.
Parameters are those of Table 1: avg, RANGE 64 s, SLIDE 6.4 s, slack 0.32 to 3.2 s; cnt, RANGE 600 s, SLIDE 60 s, blocks of 490 s, slack
0 to 600 s.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from benchmarks.machine import this_machine
from muntin.aggregates import AGGREGATES
from muntin.aggregates.base import Array
from muntin.aggregates.sums import Count
from muntin.disorder import Carried, Observation, Punctuator, Seen, Slack
from muntin.plan.shared import SharedPlan, shared_plan
from muntin.query.check import check_pipeline
from muntin.query.model import Lateness
from muntin.timeline import BEGINNING, END, SECOND
from muntin.windows.assembly import Assembly
from muntin.windows.shards import Partials

CREATE = "CREATE STREAM readings (ts TIMESTAMP, speed DOUBLE) WITH (source = 'benchmark', time = 'ts');"
BLOCK = 490 * SECOND


@dataclass(frozen=True)
class Figure:
    """A query, how its tuples are out of order, which slacks are tried, and how wrong an answer is."""

    name: str
    select: str
    window: str
    slacks: tuple[float, ...]
    policies: tuple[Lateness, ...]
    blocks: bool
    batch: int


FIGURES = (
    Figure(
        "Figure 9, bounded disorder: average error", "avg(speed)", "RANGE 64 s SLIDE 6400 ms", (0.32, 0.64, 1.28, 1.92, 2.56, 3.2),
        (Lateness.CONSISTENT, Lateness.GENEROUS), blocks=False, batch=SECOND // 5,
    ),
    Figure(
        "Figure 10, block-sorted disorder: share of wrong answers", "count(*)", "RANGE 600 s SLIDE 60 s",
        (0, 60, 180, 300, 420, 480, 491, 500, 540, 600), (Lateness.CONSISTENT,), blocks=True, batch=5 * SECOND,
    ),
)  # fmt: skip


@dataclass(frozen=True)
class Stream:
    """In order of arrival. `complete` is what the source knows at each arrival: no more tuples below it."""

    ticks: Array
    arrives: Array
    speed: Array
    complete: Array


def stream(figure: Figure, *, seconds: int, rate: int = 50) -> Stream:
    chance = np.random.default_rng(5)
    ticks = np.sort(chance.integers(0, seconds * SECOND, seconds * rate))
    if figure.blocks:  # each block is sent while the next one is collected, shuffled, at the pace it came
        arrives = ticks + BLOCK
        ticks = ticks[np.lexsort((chance.random(len(ticks)), ticks // BLOCK))]
    else:  # most tuples are in order, some are held up, a few of them for long
        held = chance.random(len(ticks)) < 0.1
        arrives = ticks + np.where(held, np.minimum(chance.exponential(0.6 * SECOND, len(ticks)), 3.2 * SECOND), 0).astype(np.int64)
    order = np.argsort(arrives, kind="stable")
    ticks, arrives = ticks[order], arrives[order]
    later = np.minimum.accumulate(ticks[::-1])[::-1]
    speed = 50 + 20 * np.sin(ticks / (30 * SECOND)) + chance.normal(0, 5, len(ticks))
    return Stream(ticks, arrives, speed, np.append(later[1:], seconds * SECOND))


def plan_of(figure: Figure, policy: Lateness) -> SharedPlan:
    query = f"CREATE QUERY q AS SELECT {figure.select} AS v FROM readings [{figure.window}] LATE {policy.value};"
    return shared_plan(check_pipeline(CREATE + query, AGGREGATES).queries, AGGREGATES)


def partials(plan: SharedPlan, some: Stream, rows: slice) -> list[Partials]:
    """A shard per tuple: assembly brings them together."""
    count, speed = np.ones(len(some.ticks[rows]), dtype=np.int64), some.speed[rows]
    states = tuple((count,) if isinstance(column.partial, Count) else (speed,) for column in plan.groupings[0].columns)
    return [Partials(some.ticks[rows], (), states)]


def batches(figure: Figure, some: Stream) -> Iterator[slice]:
    edges = np.searchsorted(some.arrives, np.arange(0, int(some.arrives[-1]) + figure.batch, figure.batch))
    return (slice(low, high) for low, high in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True) if high > low)


@dataclass(frozen=True)
class Outcome:
    """Answers by window end, and how long after it each came; windows that only the end of the input closed have no latency."""

    answers: dict[int, float]
    latency: dict[int, int]


def run(figure: Figure, some: Stream, punctuator: Punctuator, policy: Lateness) -> Outcome:
    plan = plan_of(figure, policy)
    assembly, answers, latency = Assembly(plan), dict[int, float](), dict[int, int]()
    for rows in batches(figure, some):
        ticks, now = some.ticks[rows], int(some.arrives[rows][-1])
        seen = Seen(len(ticks), int(ticks.min()), int(ticks.max()), int(some.complete[rows][-1]))
        punctuator = punctuator.observe(Observation(now, {(): seen}))
        for chunk in assembly.step(partials(plan, some, rows), punctuator.punctuations.overall, seen.greatest):
            ends = chunk.table["window_end"].cast("int64").to_pylist()
            latency |= {end: now - end for end in ends}
            answers |= dict(zip(ends, chunk.table["v"].to_pylist(), strict=True))
    for chunk in assembly.step(partials(plan, some, slice(0, 0)), END, BEGINNING):
        answers |= dict(zip(chunk.table["window_end"].cast("int64").to_pylist(), chunk.table["v"].to_pylist(), strict=True))
    return Outcome(answers, latency)


def compared(figure: Figure, outcome: Outcome, truth: Outcome) -> tuple[float, float]:
    """Average latency in seconds, and what is wrong in per cent, over windows that a punctuation closed in every run."""
    ends = [end for end in outcome.latency if end in truth.answers]
    latency = float(np.mean([outcome.latency[end] for end in ends])) / SECOND
    pairs = [(outcome.answers[end], truth.answers[end]) for end in ends]
    wrong = [ours != true if figure.blocks else abs(ours - true) / abs(true) for ours, true in pairs]
    return latency, 100 * float(np.mean(wrong))


def measured(figure: Figure, *, seconds: int) -> list[tuple[str, float, float]]:
    """A row for each way to make punctuations: its name, latency, error."""
    some = stream(figure, seconds=seconds)
    everything = run(figure, some, Punctuator((Slack(seconds * SECOND),)), Lateness.GENEROUS)
    outside = run(figure, some, Punctuator((Carried(),)), Lateness.GENEROUS)
    rows = [("external punctuation", *compared(figure, outside, everything))]
    for policy in figure.policies:
        for slack in figure.slacks:
            outcome = run(figure, some, Punctuator((Slack(round(slack * SECOND)),)), policy)
            rows.append((f"{policy.value.lower()} slack {slack:g} s", *compared(figure, outcome, everything)))
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=int, default=6000)
    given = parser.parse_args()
    lines = [*this_machine().lines()]
    for figure in FIGURES:
        lines += ["", figure.name, "", "| punctuations | latency, s | error, % |", "|---|---|---|"]
        lines += [f"| {name} | {latency:.2f} | {error:.4f} |" for name, latency, error in measured(figure, seconds=given.seconds)]
    print("\n".join(lines))


if __name__ == "__main__":
    main()
