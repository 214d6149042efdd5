"""Law 5: a query's results do not depend on which other queries are registered, or when they came and went."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from cases import cut, python_partials, queries, rows
from muntin import reference
from muntin.aggregates import AGGREGATES
from muntin.plan.divide import Load, Sharing
from muntin.plan.shared import shared_plan
from muntin.query.model import Query
from muntin.timeline import BEGINNING, END, instant_of
from muntin.windows.assembly import Assembly
from muntin.windows.lowering import ResultChunk
from muntin.windows.shards import grouping_layout
from test_laws import Outcome, restarted

BATCHES = 6


@dataclass(frozen=True)
class Stay:
    """A query that takes part in batches `[joins, leaves)`; a stay that ends with the input has its windows closed."""

    query: Query
    joins: int
    leaves: int


@st.composite
def stays(draw: st.DrawFn, number: int) -> Stay:
    joins = draw(st.integers(0, BATCHES - 1))
    return Stay(draw(queries(name=f"q{number}")), joins, draw(st.integers(joins + 1, BATCHES + 1)))


schedules = st.integers(2, 6).flatmap(lambda count: st.tuples(*(stays(number) for number in range(count))))
loads = st.builds(Load, rows=st.sampled_from([10, 100_000]), slices=st.sampled_from([1, 1000]))


@dataclass
class Run:
    """The steps of a job whose queries change before some batches."""

    sharing: Sharing
    slack: int

    def __call__(self, schedule: tuple[Stay, ...], batches: list[list[dict[str, Any]]], loads: list[Load], restarts: set[int]) -> Outcome:
        assembly = Assembly(self.plan(schedule, 0, loads[0]))
        chunks: list[ResultChunk] = []
        for at, batch in enumerate(batches):
            assembly.use(self.plan(schedule, at, loads[at]))
            latest = max((instant_of(row["ts"]) for row in batch), default=BEGINNING)
            partials = [python_partials(batch, grouping) for grouping in assembly.plan.groupings]
            chunks += assembly.step(partials, latest - self.slack if batch else assembly.punctuation, latest)
            assembly = restarted(assembly) if at in restarts else assembly
        assembly.use(self.plan(schedule, BATCHES, loads[-1]))
        chunks += assembly.step([grouping_layout(grouping).empty() for grouping in assembly.plan.groupings], END, BEGINNING)
        return Outcome.of([stay.query.name for stay in schedule], chunks)

    def plan(self, schedule: tuple[Stay, ...], batch: int, load: Load) -> Any:
        present = [stay.query for stay in schedule if stay.joins <= batch < stay.leaves]
        return shared_plan(present, AGGREGATES, sharing=self.sharing, load=load)


def truth(stay: Stay, batches: list[list[dict[str, Any]]], slack: int) -> reference.Results:
    """The query by itself, over the rows that came while it was there."""
    before, _ = reference.arrivals(batches[: stay.joins], time="ts", slack=slack)
    arrived, punctuation = reference.arrivals(batches[: stay.leaves], time="ts", slack=slack)
    since = max((instant_of(one.row["ts"]) + 1 for one in before), default=BEGINNING)
    upto = END if stay.leaves > BATCHES else punctuation
    return reference.results(stay.query, arrived[len(before) :], AGGREGATES, since=since, punctuation=upto)


@settings(max_examples=600)
@given(
    schedule=schedules,
    some_rows=st.lists(rows, min_size=3, max_size=30),
    places=st.lists(st.integers(0, 100), min_size=BATCHES - 1, max_size=BATCHES - 1),
    ordered=st.booleans(),
    sharing=st.sampled_from(Sharing),
    slack=st.integers(0, 30),
    loads=st.lists(loads, min_size=BATCHES + 1, max_size=BATCHES + 1),
    restarts=st.sets(st.integers(0, BATCHES - 1), max_size=2),
)
def test_a_query_gives_what_it_gives_alone_with_the_same_join_and_leave_positions(
    schedule: tuple[Stay, ...],
    some_rows: list[dict[str, Any]],
    places: list[int],
    ordered: bool,
    sharing: Sharing,
    slack: int,
    loads: list[Load],
    restarts: set[int],
) -> None:
    """Plans change with the queries and with the load, batches come out of order, the job restarts in between: nothing shows."""
    arriving = sorted(some_rows, key=lambda row: instant_of(row["ts"])) if ordered else some_rows
    batches = cut(arriving, places)
    ours = Run(sharing, slack)(schedule, batches, loads, restarts)
    for stay in schedule:
        ours.check(stay.query, truth(stay, batches, slack))
