"""Figures 9 and 10 of window-id-2005: latency against accuracy, for slacks of both kinds and for punctuations from the source.

In: tuples with the time they carry and the time they arrive, out of order within bounds or in blocks. Out: `Latencies`: for each figure a
line for each way to make punctuations. Convention: the engine's own punctuators and assembly, batch by batch; the
truth is recomputed from the tuples of each extent. The paper does not say what its latency is measured from. Here a window's *wait* runs
from the arrival of the last tuple of its extent to the batch that closed it: what no evaluation can avoid is not counted, and a result
from before that has waited for nothing. *After the end* is the time from the window's end, which a block's delay is part of.
Parameters are those of Table 1: avg, RANGE 64 s, SLIDE 6.4 s, slack 0.32 to 3.2 s; cnt, RANGE 600 s, SLIDE 60 s, blocks of 490 s, slack
0 to 600 s.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from pyspark.sql import SparkSession
from rich.console import Console

from benchmarks.measuring import Tick, progress
from muntin.aggregates import AGGREGATES
from muntin.aggregates.base import Array
from muntin.aggregates.sums import Count
from muntin.disorder import Carried, Observation, Punctuator, Seen, Slack
from muntin.plan.shared import SharedPlan, shared_plan
from muntin.query.check import check_pipeline
from muntin.query.model import Lateness
from muntin.timeline import SECOND
from muntin.windows.assembly import Assembly
from muntin.windows.shards import Partials

CREATE = "CREATE STREAM readings (ts TIMESTAMP, speed DOUBLE) WITH (source = 'benchmark', time = 'ts');"
EXTERNAL = "external punctuation"
#: Blocks begin at times that windows do not end at.
BLOCK, FIRST_BLOCK = 490 * SECOND, 39_500_000
#: Bounded disorder: a sequence of so many seconds is made for each bound, and copies of them, chosen at random, follow each other.
SEQUENCE, BOUNDS = 20, tuple(SECOND * part // 100 for part in range(32, 352, 32))
#: Tuples a second, and the share of them that is held up.
RATE, HELD_UP = 50, 0.05


@dataclass(frozen=True)
class Setup:
    """Seconds of each stream."""

    bounded: int = 400
    blocks: int = 5000


@dataclass(frozen=True)
class Figure:
    """A query, how its tuples are out of order, which slacks are tried, and how wrong an answer is."""

    name: str
    select: str
    range: int
    slide: int
    slacks: tuple[float, ...]
    policies: tuple[Lateness, ...]
    blocks: bool
    batch: int

    @property
    def window(self) -> str:
        return f"RANGE {self.range} microseconds SLIDE {self.slide} microseconds"


BOUNDED = Figure(
    "Figure 9, bounded disorder", "avg(speed)", 64 * SECOND, 6_400_000, (0.32, 0.64, 1.28, 1.92, 2.56, 3.2),
    (Lateness.CONSISTENT, Lateness.GENEROUS), blocks=False, batch=SECOND // 5,
)  # fmt: skip
BLOCKS = Figure(
    "Figure 10, block-sorted disorder", "count(*)", 600 * SECOND, 60 * SECOND, (0, 60, 180, 300, 420, 480, 491, 500, 540, 600),
    (Lateness.CONSISTENT,), blocks=True, batch=4 * SECOND,
)  # fmt: skip


@dataclass(frozen=True)
class Stream:
    """In order of arrival. `complete` is what the source knows at each arrival: no more tuples below it."""

    ticks: Array
    arrives: Array
    speed: Array
    complete: Array

    def extent(self, end: int, range: int) -> Array:
        """Which tuples are in the window that ends there."""
        return np.nonzero((self.ticks >= end - range) & (self.ticks < end))[0]


def stream(figure: Figure, *, seconds: int) -> Stream:
    chance = np.random.default_rng(5)
    if figure.blocks:  # positions in each block are random; a block is sent while the next one is collected, at the pace it came
        ticks = np.sort(FIRST_BLOCK + chance.integers(0, seconds * SECOND, seconds * RATE))
        arrives = ticks + BLOCK
        ticks = ticks[np.lexsort((chance.random(len(ticks)), (ticks - FIRST_BLOCK) // BLOCK))]
    else:
        made = [sequence(chance, bound) for bound in BOUNDS]
        chosen = chance.integers(0, len(BOUNDS), -(-seconds // SEQUENCE))
        ticks = np.concatenate([number * SEQUENCE * SECOND + made[one][0] for number, one in enumerate(chosen)])
        arrives = ticks + np.concatenate([made[one][1] for one in chosen])
    order = np.argsort(arrives, kind="stable")
    ticks, arrives = ticks[order], arrives[order]
    later = np.minimum.accumulate(ticks[::-1])[::-1]
    speed = 50 + 20 * np.sin(ticks / (30 * SECOND)) + chance.normal(0, 5, len(ticks))
    return Stream(ticks, arrives, speed, np.append(later[1:], int(ticks.max()) + 1))


def sequence(chance: np.random.Generator, bound: int) -> tuple[Array, Array]:
    """Ticks and delays as of packets on a network: nearly all come in order, some of them later, within the bound."""
    ticks = np.sort(chance.integers(0, SEQUENCE * SECOND, SEQUENCE * RATE))
    held = chance.random(len(ticks)) < HELD_UP
    return ticks, np.where(held, chance.uniform(0, bound, len(ticks)), 0).astype(np.int64)


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
    """Answers by window end, and when each came. Windows that no punctuation closed are not here."""

    answers: dict[int, float]
    came: dict[int, int]


def outcome_of(figure: Figure, some: Stream, punctuator: Punctuator, policy: Lateness) -> Outcome:
    plan = plan_of(figure, policy)
    assembly, answers, came = Assembly(plan), dict[int, float](), dict[int, int]()
    for rows in batches(figure, some):
        ticks, now = some.ticks[rows], int(some.arrives[rows][-1])
        seen = Seen(len(ticks), int(ticks.min()), int(ticks.max()), int(some.complete[rows][-1]))
        punctuator = punctuator.observe(Observation(now, {(): seen}))
        for chunk in assembly.step(partials(plan, some, rows), punctuator.punctuations.overall, seen.greatest):
            ends = chunk.table["window_end"].cast("int64").to_pylist()
            came |= dict.fromkeys(ends, now)
            answers |= dict(zip(ends, chunk.table["v"].to_pylist(), strict=True))
    return Outcome(answers, came)


@dataclass(frozen=True)
class Line:
    """One way to make punctuations: what it is, its slack in seconds, and averages over the windows that punctuations closed in every run.

    `sooner` are right answers that came before that of the external punctuation. Wrong: for Figure 9 the average error, for Figure 10 the
    share of answers that are not right; in per cent both.
    """

    way: str
    slack: float
    wait: float
    after_end: float
    wrong: float
    sooner: int


@dataclass
class Latencies:
    setup: Setup
    lines: dict[str, list[Line]] = field(default_factory=dict)
    windows: dict[str, int] = field(default_factory=dict)

    def external(self, figure: Figure) -> Line:
        return self.lines[figure.name][0]

    def slacks(self, figure: Figure, policy: Lateness) -> list[Line]:
        return [line for line in self.lines[figure.name] if line.way == way_of(policy)]


def way_of(policy: Lateness) -> str:
    return f"{policy.value.lower()} slack"


def run(_: SparkSession, setup: Setup, console: Console) -> Latencies:
    found = Latencies(setup)
    for figure, seconds in ((BOUNDED, setup.bounded), (BLOCKS, setup.blocks)):
        with progress(console, figure.name, 1 + len(figure.policies) * len(figure.slacks)) as tick:
            found.windows[figure.name], found.lines[figure.name] = measured(figure, seconds=seconds, tick=tick)
    return found


def measured(figure: Figure, *, seconds: int, tick: Tick = lambda _: None) -> tuple[int, list[Line]]:
    """How many windows were compared, and a line for each way to make punctuations."""
    some = stream(figure, seconds=seconds)
    ways = [(EXTERNAL, 0.0, Punctuator((Carried(),)), Lateness.GENEROUS)]
    ways += [(way_of(one), slack, Punctuator((Slack(round(slack * SECOND)),)), one) for one in figure.policies for slack in figure.slacks]
    outcomes = []
    for way, slack, punctuator, policy in ways:
        tick(f"{way} {slack:g} s")
        outcomes.append(outcome_of(figure, some, punctuator, policy))
    ends = sorted(set.intersection(*(set(one.came) for one in outcomes)))
    extents = {end: some.extent(end, figure.range) for end in ends}
    whole = {end: int(some.arrives[extent].max()) for end, extent in extents.items()}
    truth = {end: len(extent) if figure.blocks else float(some.speed[extent].mean()) for end, extent in extents.items()}
    outside = outcomes[0].came
    lines = []
    for (way, slack, *_), one in zip(ways, outcomes, strict=True):
        right = [end for end in ends if is_right(figure, one.answers[end], truth[end])]
        errors = [abs(one.answers[end] - truth[end]) / abs(truth[end]) for end in ends]
        lines.append(
            Line(
                way,
                slack,
                wait=mean([max(one.came[end] - whole[end], 0) for end in ends]) / SECOND,
                after_end=mean([one.came[end] - end for end in ends]) / SECOND,
                wrong=100 * (1 - len(right) / len(ends) if figure.blocks else mean(errors)),
                sooner=sum(one.came[end] < outside[end] for end in right),
            )
        )
    return len(ends), lines


def is_right(figure: Figure, ours: float, truth: float) -> bool:
    """Counts are exact; averages are of doubles added in another order."""
    return ours == truth if figure.blocks else abs(ours - truth) <= 1e-9 * abs(truth)


def mean(values: list[float]) -> float:
    return float(np.mean(values))
