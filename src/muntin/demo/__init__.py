"""The demo: an hour of trades shaped like the paper's, 256 window queries over it, one shared pass, and what that saved.

In: a directory. Out: trades as Parquet, two static tables as CSV, the pipeline file, one result file per query, and a summary on the
terminal. The queries are the paper's workload C regular: each of 16 windows with each of 16 predicates.
"""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.panel import Panel
from rich.table import Table

from muntin.demo.workloads import WindowedSum, pipeline, workload_c_regular
from muntin.plan.cost import slices_per_window
from muntin.plan.slices import Slicing
from muntin.semantics import TimeWindow
from muntin.spark.engine import Engine
from muntin.spark.generator import write_files
from muntin.spark.progress import ProgressDisplay
from muntin.spark.results import Results
from muntin.spark.session import session
from muntin.spark.sinks.files import FileSink, Layout

#: Results shown in the summary.
SHOWN = 4


@dataclass(frozen=True)
class Summary:
    """The figures of a demo run."""

    rows: int
    seconds: float
    queries: int
    kinds: tuple[int, int]
    windows: int
    partial: int
    final: int
    unshared_final: int


def run_demo(directory: Path, console: Console, *, queries: int = 256, rows: int = 1_138_636) -> Summary:
    """Generate, run, and tell what happened."""
    directory.mkdir(parents=True, exist_ok=True)
    with console.status("starting Spark"):
        spark = session("muntin demo")
    try:
        out = directory / "results"
        with console.status(f"generating one hour of trades: {rows:,} rows"):
            write_files(spark, directory, rows=rows)
        asked = workload_c_regular(queries)
        text = pipeline(asked, directory)
        (directory / "pipeline.sql").write_text(text)
        engine = Engine(spark)
        with console.status(f"checking {queries} queries"):
            engine.execute(text)
        began = time.perf_counter()
        with ProgressDisplay(spark, console) as display:
            results = engine.run(FileSink(out, "jsonl", Layout.WHOLE), on_progress=display.update)
        summary = summarised(engine, results, time.perf_counter() - began)
    finally:
        spark.stop()
    show(summary, asked, directory, console)
    return summary


def summarised(engine: Engine, results: Results, seconds: float) -> Summary:
    (job,) = results.jobs.values()
    windows = {query.name: query.window for query in engine.queries if isinstance(query.window, TimeWindow)}
    final = sum(counts.windows * slices_per_window(windows[name], Slicing.PAIRED) for name, counts in results.counts.items())
    return Summary(
        rows=job.totals.rows,
        seconds=seconds,
        queries=len(windows),
        kinds=(len(set(windows.values())), len({query.where for query in engine.queries})),
        windows=sum(counts.windows for counts in results.counts.values()),
        partial=job.assembly.aggregations.partial,
        final=job.assembly.aggregations.final,
        unshared_final=final,
    )


def show(summary: Summary, queries: Sequence[WindowedSum], directory: Path, console: Console) -> None:
    table = Table(title=f"{summary.queries} window queries over one hour of trades, one pass", title_justify="left")
    table.add_column("")
    table.add_column("shared, as run", justify="right")
    table.add_column("each query for itself", justify="right")
    table.add_row("rows joined, tested and aggregated", f"{summary.partial:,}", f"{summary.rows * summary.queries:,}")
    table.add_row("partials into windows, by the paper", f"{summary.final:,}", f"{summary.unshared_final:,}")
    console.print(table)
    different = "{} different windows, {} different predicates, joined with two tables".format(*summary.kinds)
    rate = summary.rows / summary.seconds
    console.print(f"{different}; {summary.windows:,} windows closed")
    console.print(f"{summary.rows:,} rows in {summary.seconds:.1f} s ({rate:,.0f} rows/s), reading and writing files included")
    lines = [line for query in queries[:SHOWN] for line in sample(query, directory / "results")]
    console.print(Panel("\n".join(lines), title="some queries, and a result of each", title_align="left", expand=False))
    console.print(f"pipeline  {directory / 'pipeline.sql'}\nresults   {directory / 'results'}/q000.jsonl … one file per query")


def sample(query: WindowedSum, results: Path) -> list[str]:
    """What a query asks, and a line of its file."""
    rows = (results / f"{query.name}.jsonl").read_text().splitlines()
    middle = json.loads(rows[len(rows) // 2])
    window = f"RANGE {query.range} s SLIDE {query.slide} s"
    return [
        f"{query.name}  {query.restriction.sql if query.restriction else ''}",
        f"      {window}: {middle['window_start'][11:19]} to {middle['window_end'][11:19]}  {middle['value']:,.2f}",
    ]
