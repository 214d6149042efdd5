"""The demo: an hour of trades shaped like the paper's, 256 window queries over it, one shared pass, and what that saved.

In: a directory. Out: trades as Parquet, the pipeline file, one result file per query, and a summary on the terminal.
"""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.panel import Panel
from rich.table import Table

from muntin.demo.workloads import pipeline, workload_a
from muntin.plan.cost import slices_per_window
from muntin.plan.slices import Slicing
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
    windows: int
    slices: int
    partial: int
    final: int
    unshared_partial: int
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
        text = pipeline(workload_a(queries), directory)
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
    show(summary, directory, console)
    return summary


def summarised(engine: Engine, results: Results, seconds: float) -> Summary:
    (job,) = results.jobs.values()
    windows = {query.name: query.window for query in engine.queries}
    final = sum(counts.windows * slices_per_window(windows[name], Slicing.PAIRED) for name, counts in results.counts.items())
    return Summary(
        rows=job.totals.rows,
        seconds=seconds,
        queries=len(windows),
        windows=sum(counts.windows for counts in results.counts.values()),
        slices=job.assembly.slices_seen,
        partial=job.assembly.aggregations.partial,
        final=job.assembly.aggregations.final,
        unshared_partial=job.totals.rows * len(windows),
        unshared_final=final,
    )


def show(summary: Summary, directory: Path, console: Console) -> None:
    table = Table(title=f"{summary.queries} sliding-window queries over one hour of trades, one pass", title_justify="left")
    table.add_column("")
    table.add_column("shared, as run", justify="right")
    table.add_column("each query for itself", justify="right")
    table.add_row("rows into slices", f"{summary.partial:,}", f"{summary.unshared_partial:,}")
    table.add_row("slices into windows (the paper's count)", f"{summary.final:,}", f"{summary.unshared_final:,}")
    console.print(table)
    rate = summary.rows / summary.seconds
    console.print(f"{summary.rows:,} rows in {summary.seconds:.1f} s ({rate:,.0f} rows/s), reading and writing files included")
    console.print(f"{summary.slices:,} slices, {summary.windows:,} windows closed")
    console.print(Panel("\n".join(sample(directory / "results")), title="some results", title_align="left", expand=False))
    console.print(f"pipeline  {directory / 'pipeline.sql'}\nresults   {directory / 'results'}/q000.jsonl … one file per query")


def sample(results: Path) -> list[str]:
    """A line from each of a few files."""
    lines = []
    for path in sorted(results.glob("q*.jsonl"))[:SHOWN]:
        rows = path.read_text().splitlines()
        middle = json.loads(rows[len(rows) // 2])
        lines.append(f"{path.stem}  {middle['window_start'][:19]} to {middle['window_end'][:19]}  value {middle['value']:,.2f}")
    return lines
