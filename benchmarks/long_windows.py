"""Long windows over many groups: what a slide costs, and what is held in memory, as RANGE grows and SLIDE stays one minute.

In: lengths of RANGE, a number of groups, how many slides to measure. Out: one `SteadyState` per RANGE and select list.
Convention: assembly alone is measured, fed with synthetic partials, one minute a step, in order. The window is filled first; its
results are then compared with sums and maxima taken over all its minutes, before the timing and again after the last slide. Every
case runs in a process of its own, so that its memory is its own.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from pyspark.sql import SparkSession
from rich.console import Console

from benchmarks.answers import differing
from benchmarks.apart import apart
from benchmarks.machine import resident_bytes
from benchmarks.measuring import Tick, progress
from benchmarks.performed import performed, stores_of
from muntin.aggregates import AGGREGATES
from muntin.aggregates.sums import Count
from muntin.plan.shared import Grouping, shared_plan
from muntin.query.check import check_pipeline
from muntin.timeline import MINUTE
from muntin.windows.assembly import Assembly
from muntin.windows.blocks import BlockColumn
from muntin.windows.lowering import tables_by_query
from muntin.windows.shards import Partials

SELECTS = {"count": "count(*) AS n", "sum": "sum(x) AS s", "max": "max(x) AS m", "avg": "avg(x) AS a"}
SELECTS["all four"] = ", ".join(SELECTS.values())
STREAM = "CREATE STREAM s (ts TIMESTAMP, g BIGINT, x DOUBLE) WITH (source = 'files', format = 'parquet', path = '-', time = 'ts');\n"
#: Rows that each synthetic partial stands for.
ROWS_PER_CELL = 3
#: Steps between two signs of life of a case.
STEPS_PER_TICK = 60


@dataclass(frozen=True)
class Setup:
    """1,146 slides are one block of the longest RANGE (2^36 µs), so that each of its parts is built once while it is measured."""

    hours: tuple[int, ...] = (1, 6, 24)
    groups: int = 10_000
    slides: int = 1_146
    selects: tuple[str, ...] = tuple(SELECTS)


@dataclass(frozen=True)
class Case:
    select: str
    hours: int
    groups: int
    slides: int

    @property
    def steps(self) -> int:
        return self.hours * 60 + self.slides


@dataclass(frozen=True)
class SteadyState:
    """Seconds are per slide, `cpu` those of the processor; bytes are held after the last slide, `process` and `peak` by the process."""

    case: Case
    checked: int
    mean: float
    median: float
    longest: float
    cpu: float
    combines: float
    slices: int
    lanes: int
    cells: int
    reserved: int
    blocks: int
    process: int
    peak: int

    @property
    def nanoseconds_per_group(self) -> float:
        """Of the processor: on a busy machine the clock on the wall also counts the time that others had it."""
        return self.cpu * 1e9 / self.case.groups

    @property
    def bytes_per_cell(self) -> float:
        """Held by assembly for each slice × group, all lanes together."""
        return (self.reserved + self.blocks) / (self.slices * self.case.groups)

    @property
    def overhead(self) -> float:
        """What is held, as a multiple of one 8-byte number per lane, slice and group."""
        return self.bytes_per_cell / (8 * self.lanes)


def run(_: SparkSession, setup: Setup, console: Console) -> list[SteadyState]:
    cases = [Case(select, hours, setup.groups, setup.slides) for select in setup.selects for hours in setup.hours]
    total = sum(case.steps // STEPS_PER_TICK for case in cases)
    with progress(console, "long windows", total) as tick:
        return [apart(steady_state, case, tick) for case in cases]


def steady_state(case: Case, say: Tick = lambda _: None) -> SteadyState:
    """Fill the window, check it, slide it on and measure, check it again."""

    def tick(what: str) -> None:
        say(f"{case.select} over {case.hours} h: {what}")

    warm_up(case.select)
    assembly = assembly_of(case)
    before, _ = resident_bytes()
    feed = minutes(assembly, case)
    for number in range(case.hours * 60 - 1):
        if number % STEPS_PER_TICK == 0:
            tick("filling")
        step(assembly, next(feed))
    checked = check(case, step(assembly, next(feed))[1], last=case.hours * 60)
    before_sliding = performed(assembly)
    seconds: list[float] = []
    cpu = 0.0
    for number in range(case.slides):
        if number % STEPS_PER_TICK == 0:
            tick("sliding")
        minute = next(feed)
        began = time.process_time()
        took, table = step(assembly, minute)
        cpu += time.process_time() - began
        seconds.append(took)
    combines = (performed(assembly) - before_sliding) / (case.slides * case.groups)
    now, most = resident_bytes()
    checked += check(case, table, last=case.steps)
    return SteadyState(
        case, checked, statistics.mean(seconds), statistics.median(seconds), max(seconds), cpu / case.slides, combines,
        *held(assembly), process=now - before, peak=most - before,
    )  # fmt: skip


def warm_up(select: str) -> None:
    """Load what is loaded on first use (60 MB of pyarrow), so that the process grows by its windows alone."""
    case = Case(select, hours=1, groups=64, slides=1)
    assembly = assembly_of(case)
    for minute in minutes(assembly, case):
        step(assembly, minute)


def assembly_of(case: Case) -> Assembly:
    query = f"CREATE QUERY q AS SELECT g, {SELECTS[case.select]} FROM s [RANGE {case.hours} hours SLIDE 1 minute] GROUP BY g;"
    return Assembly(shared_plan(check_pipeline(STREAM + query, AGGREGATES).queries, AGGREGATES))


def values_of(minute: int, groups: int) -> np.ndarray:
    """Positive and the same on every machine: a minute's numbers can be made again when an answer is checked."""
    return np.random.default_rng(minute).random(groups) + 1e-3


def minutes(assembly: Assembly, case: Case) -> Iterator[tuple[Partials, int]]:
    """The partials of one minute after another, and the punctuation after each."""
    grouping = assembly.plan.groupings[0]
    keys = pa.array(np.arange(case.groups), type=pa.int64())
    for minute in range(case.steps):
        at = np.full(case.groups, minute * MINUTE, dtype=np.int64)
        yield Partials(at, (keys,), states_of(grouping, values_of(minute, case.groups))), (minute + 1) * MINUTE


def states_of(grouping: Grouping, values: np.ndarray) -> tuple[tuple[np.ndarray, ...], ...]:
    count = np.full(len(values), ROWS_PER_CELL, dtype=np.int64)
    return tuple((count,) if isinstance(column.partial, Count) else (values,) for column in grouping.columns)


def step(assembly: Assembly, minute: tuple[Partials, int]) -> tuple[float, pa.Table]:
    """The seconds of one step, and the results of the window it closed."""
    partials, punctuation = minute
    began = time.perf_counter()
    chunks = list(assembly.step([partials], punctuation, punctuation - 1))
    took = time.perf_counter() - began
    return took, tables_by_query(chunks)["q"]


def check(case: Case, table: pa.Table, *, last: int) -> int:
    """Compare the window that ends with minute `last` with what its minutes say; the groups compared."""
    name = f"{case.select} over {case.hours} h, window ending {last} min"
    if table.num_rows != case.groups:
        raise differing(name, f"{table.num_rows} rows for {case.groups} groups")
    window = range(max(0, last - case.hours * 60), last)
    total, most = np.zeros(case.groups), np.zeros(case.groups)
    for minute in window:
        values = values_of(minute, case.groups)
        total, most = total + values, np.maximum(most, values)
    rows = len(window) * ROWS_PER_CELL
    for column, truth in {"n": np.full(case.groups, rows), "s": total, "m": most, "a": total / rows}.items():
        if column in table.column_names and not np.allclose(table[column].to_numpy(), truth, rtol=1e-12, atol=0):
            raise differing(name, f"column {column}")
    return case.groups


def held(assembly: Assembly) -> tuple[int, int, int, int, int]:
    """Slices, lanes, bytes of cells in use, bytes reserved for cells, bytes of blocks."""
    (store,) = stores_of(assembly)
    lanes = [lane for column in store.columns.values() for lane in column.lanes]
    blocks = [block for column in store.columns.values() if isinstance(column, BlockColumn) for block in column.blocks.values()]
    return (
        len(store.starts),
        len(lanes),
        sum(lane.view.nbytes for lane in lanes),
        sum(np.asarray(lane.view.base).nbytes for lane in lanes),
        sum(lane.nbytes for block in blocks for state in (block.suffix, block.prefix) if state for lane in state),
    )


def growth(found: Sequence[SteadyState], select: str) -> float:
    """How many times the time per slide and group of the shortest RANGE the longest one takes."""
    own = sorted((one for one in found if one.case.select == select), key=lambda one: one.case.hours)
    return own[-1].nanoseconds_per_group / own[0].nanoseconds_per_group
