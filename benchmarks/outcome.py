"""The outcome of a contest: what was compared, timed and counted.

In: filled by `contest`. Out: read by the reports and plots, and written as it is, as JSON.
Convention: a time or a count belongs to a strategy, by name, and a number of queries.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from benchmarks.counting import Aggregations
from muntin.spark.generator import ROWS


@dataclass(frozen=True)
class Setup:
    """What to run. `measured` queries stand for all where a time is multiplied; answers of `checked` are also taken one by one."""

    queries: tuple[int, ...]
    rows: int = ROWS
    rounds: int = 9
    warmups: int = 6
    measured: int = 16
    checked: int = 16


@dataclass(frozen=True)
class Timing:
    """A strategy's median for some number of queries; `scaled` where fewer were run and their time was multiplied."""

    strategy: str
    queries: int
    seconds: float
    best: float
    worst: float
    scaled: bool


@dataclass(frozen=True)
class Work:
    """A strategy's aggregations for the queries it ran: by the paper's definition of what it did, and combines as performed."""

    strategy: str
    queries: int
    counted: Aggregations
    performed: int


@dataclass(frozen=True)
class Fragments:
    """Distinct signatures: per window of ten minutes, on average, and in all rows."""

    per_window: float
    altogether: int


@dataclass
class Outcome:
    """Everything about one workload. `definition`: the paper's two schemes on the rows and queries at hand, without a machine."""

    setup: Setup
    rows_compared: int = 0
    one_plain: float = 0.0
    adding_seconds: float = 0.0
    once: dict[str, float] = field(default_factory=dict)
    timings: list[Timing] = field(default_factory=list)
    work: list[Work] = field(default_factory=list)
    definition: dict[str, Aggregations] = field(default_factory=dict)
    fragments: Fragments | None = None

    @property
    def most(self) -> int:
        return max(self.setup.queries)

    def timing(self, strategy: str, queries: int) -> Timing:
        return next(one for one in self.timings if (one.strategy, one.queries) == (strategy, queries))

    def seconds(self, strategy: str, queries: int) -> float:
        return self.timing(strategy, queries).seconds

    def work_of(self, strategy: str, queries: int) -> Work:
        return next(one for one in self.work if (one.strategy, one.queries) == (strategy, queries))
