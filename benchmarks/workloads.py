"""The workloads of the paper as contests: which queries, which strategies, which single jobs in plain Spark, which targets.

In: nothing. Out: `WORKLOADS` by the name of their benchmark. Convention: a sampled strategy runs some of the queries only, and its time
is multiplied; all others run all of them. `main` is the strategy that the targets are about.
Paper: on-the-fly-sharing-2006, section 6 and Table 8.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum

from benchmarks import paper
from benchmarks.baselines import Job, PlainSpark
from muntin import Sharing, Slicing
from muntin.demo import workloads as demo
from muntin.demo.workloads import WindowedSum

PLAIN = "plain Spark"
#: What takes long is timed in every third round.
SELDOM = 3


class Form(Enum):
    """Single jobs in plain Spark (`baselines`). The last is no target: it is panes, by hand."""

    CONDITIONAL = "conditional sums"
    EXPLODED = "one explode"
    BY_SECONDS = "by seconds"

    def job(self, plain: PlainSpark, queries: Sequence[WindowedSum]) -> Job:
        ways = {Form.CONDITIONAL: plain.conditional, Form.EXPLODED: plain.exploded, Form.BY_SECONDS: plain.by_seconds}
        return ways[self](queries)


@dataclass(frozen=True)
class Strategy:
    """A way to run queries in Muntin; one that takes long is timed in every `every`th round."""

    name: str
    sharing: Sharing
    slicing: Slicing = Slicing.PAIRED
    sampled: bool = False
    every: int = 1


UNSHARED = Strategy("unshared paired", Sharing.UNSHARED, sampled=True)
SLICES = Strategy("slices", Sharing.SLICES, every=SELDOM)
FRAGMENTS = Strategy("fragments", Sharing.FRAGMENTS, every=SELDOM)
SHARDS = Strategy("shards", Sharing.SHARDS)
AUTOMATIC = Strategy("automatic", Sharing.AUTOMATIC)


@dataclass(frozen=True)
class Workload:
    """A contest. `gain` and `careful_gain`: how many times faster than all plain jobs, and than the best single one, `main` has to be."""

    name: str
    title: str
    differing: str
    section: str
    queries: Callable[[int], list[WindowedSum]]
    counts: tuple[int, ...]
    strategies: tuple[Strategy, ...]
    main: str
    figures: tuple[paper.PaperFigure, ...]
    gain: float
    forms: tuple[Form, ...] = ()
    careful_gain: float = 0.0

    @property
    def sampled(self) -> list[Strategy]:
        return [strategy for strategy in self.strategies if strategy.sampled]

    @property
    def whole(self) -> list[Strategy]:
        return [strategy for strategy in self.strategies if not strategy.sampled]

    @property
    def careful(self) -> list[Form]:
        """The single jobs that a target is about."""
        return [form for form in self.forms if form is not Form.BY_SECONDS]


A = Workload(
    name="workload-a",
    title="Workload A: {queries} windows over one hour of trades",
    differing="RANGE uniform in 600 to 900 s, SLIDE in 300 to 600 s, `sum(price * vol)`",
    section="6.2",
    queries=demo.workload_a,
    counts=(16, 32, 64, 128, 256),
    strategies=(
        Strategy("unshared paned", Sharing.UNSHARED, Slicing.PANED, sampled=True),
        UNSHARED,
        Strategy("shared paned", Sharing.AUTOMATIC, Slicing.PANED),
        Strategy("shared paired", Sharing.AUTOMATIC),
    ),
    main="shared paired",
    figures=paper.A,
    gain=200,
)
B = Workload(
    name="workload-b",
    title="Workload B: {queries} predicates over one hour of trades",
    differing="tumbling windows of 600 s; predicates of Table 8 over trades joined with two tables",
    section="6.3",
    queries=demo.workload_b,
    counts=(16, 32, 64, 128, 256),
    strategies=(UNSHARED, SLICES, SHARDS, AUTOMATIC),
    main="automatic",
    figures=paper.B,
    gain=60,
    forms=(Form.CONDITIONAL, Form.EXPLODED),
    careful_gain=8,
)
C_REGULAR = Workload(
    name="workload-c-regular",
    title="Workload C regular: {queries} queries, each of k predicates with each of k windows",
    differing="k different windows as in workload A, k different predicates as in workload B, all k × k pairs",
    section="6.4.1",
    queries=demo.workload_c_regular,
    counts=(16, 36, 64, 144, 256),
    strategies=(UNSHARED, SLICES, FRAGMENTS, SHARDS, AUTOMATIC),
    main="automatic",
    figures=paper.C_REGULAR,
    gain=60,
    forms=(Form.EXPLODED, Form.BY_SECONDS),
    careful_gain=8,
)
C_LOW_SHARING = Workload(
    name="workload-c-low-sharing",
    title="Workload C low sharing: {queries} windows, {queries} predicates",
    differing="windows as in workload A, predicates as in workload B, no two queries with the same window or predicate",
    section="6.4.2",
    queries=demo.workload_c_low_sharing,
    counts=(16, 32, 64, 128, 256),
    strategies=(UNSHARED, SLICES, SHARDS, AUTOMATIC),  # fragments among queries with the same window: there are none
    main="automatic",
    figures=paper.C_LOW_SHARING,
    gain=20,
    forms=(Form.EXPLODED, Form.BY_SECONDS),
    careful_gain=5,
)

WORKLOADS = {workload.name.replace("-", "_"): workload for workload in (A, B, C_REGULAR, C_LOW_SHARING)}
