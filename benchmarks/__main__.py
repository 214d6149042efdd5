"""`python -m benchmarks [NAME…]`: run some benchmarks or all, show their claims, write their pages.

In: names and sizes. Out: pages, plots and raw numbers in a directory. Convention: a benchmark's `Setup` holds its sizes, by default those
that the targets are for; `--set NAME=VALUE` changes one, for development, and such pages belong in another directory (`--out`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer
from pyspark.sql import SparkSession
from rich.console import Console

from benchmarks import (
    buffering,
    churn,
    contest,
    groups,
    latency,
    long_windows,
    many_queries,
    panes,
    plots,
    plots_figures,
    plots_scale,
    report_churn,
    report_figures,
    report_latency,
    report_long,
    report_model,
    report_queries,
    report_scale,
    report_tuples,
    report_workload,
    restart,
    scaling,
    slide_by_tuple,
    touched,
    tuple_windows,
    workers,
)
from benchmarks.machine import BUSY, Elsewhere, this_machine
from benchmarks.outcome import Setup
from benchmarks.report import Report
from benchmarks.workloads import WORKLOADS, Workload

PAGES = Path(__file__).parents[1] / "docs" / "benchmarks"
#: For the JVM: 12 M rows and millions of shards at once want more than Muntin's default of 2g.
MEMORY = "8g"
app = typer.Typer(add_completion=False)


@dataclass(frozen=True)
class Benchmark:
    """Sizes, and the three steps from them to a page."""

    setup: Any
    run: Callable[[SparkSession, Any, Console], Any]
    plot: Callable[[Any, Path], None]
    report: Callable[[Any], Report]


def of_workload(workload: Workload) -> Benchmark:
    steps = (partial(contest.run, workload), partial(plots.workload, workload), partial(report_workload.report, workload))
    return Benchmark(Setup(queries=workload.counts), *steps)


#: An hour of a million groups, full before it is measured.
MILLION = groups.Setup(groups=(1_000_000,), places=("executors",), windows=(60,), batches=66, warmups=60)

#: A million partials of state, held by instances.
SPREAD_RESTART = restart.Setup(batches=200, groups=17_000, restarts=3, assembly="executors")

BENCHMARKS = {
    **{name: of_workload(workload) for name, workload in WORKLOADS.items()},
    "queries": Benchmark(many_queries.Setup(), many_queries.run, plots.queries, report_queries.report),
    "churn": Benchmark(churn.Setup(), churn.run, plots.churn, report_churn.report),
    "long_windows": Benchmark(long_windows.Setup(), long_windows.run, plots.long_windows, report_long.long_report),
    "restart": Benchmark(restart.Setup(), restart.run, plots.restart, report_long.restart_report),
    "restart_executors": Benchmark(SPREAD_RESTART, restart.run, plots.restart, report_long.restart_report),
    "slide_by_tuple": Benchmark(slide_by_tuple.Setup(), slide_by_tuple.run, plots_figures.slide_by_tuple, report_tuples.slide_report),
    "tuple_windows": Benchmark(tuple_windows.Setup(), tuple_windows.run, plots_figures.tuple_windows, report_tuples.counted_report),
    "panes": Benchmark(panes.Setup(), panes.run, plots_figures.panes, report_figures.panes_report),
    "buffering": Benchmark(buffering.Setup(), buffering.run, plots_figures.buffering, report_figures.buffering_report),
    "latency": Benchmark(latency.Setup(), latency.run, plots_figures.latency, report_latency.latency_report),
    "groups": Benchmark(groups.Setup(), groups.run, plots_scale.groups, report_scale.groups_report),
    "million": Benchmark(MILLION, groups.run, plots_scale.million, report_scale.million_report),
    "touched": Benchmark(touched.Setup(), touched.run, plots_scale.touched, report_scale.touched_report),
    "scaling": Benchmark(scaling.Setup(), scaling.run, report_model.plot, report_model.report),
    "workers": Benchmark(workers.Setup(), workers.run, plots_scale.workers, report_scale.workers_report),
}


def run(names: Sequence[str], spark: SparkSession, setups: Mapping[str, Any], out: Path, console: Console) -> list[Report]:
    """Run the named benchmarks one after another, in the sizes given or their own, and write their pages."""
    reports = []
    for name in names:
        machine = this_machine()
        if machine.busy:
            console.print(f"[yellow]load average {machine.load[0]:.1f} is above {BUSY}: read the ratios, not the times[/]")
        others, benchmark = Elsewhere(), BENCHMARKS[name]
        outcome = benchmark.run(spark, setups.get(name, benchmark.setup), console)
        benchmark.plot(outcome, out)
        report = benchmark.report(outcome)
        report.write(out, machine, others.cores())
        for claim in report.claims:
            console.print(
                f"[{'green' if claim.holds else 'red'}]{'PASS' if claim.holds else 'FAIL'}[/] {claim.text}: {claim.figures}",
                highlight=False,
            )
        console.print(f"page: {out / report.name}.md", highlight=False)
        reports.append(report)
    return reports


def resized(name: str, sizes: Sequence[str]) -> Any:
    """A benchmark's sizes, some of them changed.

    >>> resized("restart", ["batches=5"]).batches, resized("workload_a", ["queries=4,8", "rows=100"]).queries
    (5, (4, 8))
    """
    setup = BENCHMARKS[name].setup
    changes = dict(size.split("=", 1) for size in sizes if "=" in size)
    unknown = [size for size in sizes if "=" not in size or not hasattr(setup, size.split("=", 1)[0])]
    if unknown:
        raise typer.BadParameter(f"{', '.join(unknown)} is no size of {name}, which has {setup}")
    return replace(setup, **{field: like(getattr(setup, field), text) for field, text in changes.items()})


def like(present: object, text: str) -> object:
    """A value of the same type: a whole number, or several things with commas between them."""
    if isinstance(present, tuple):
        return tuple(like(present[0], part) for part in text.split(","))
    try:
        return type(present)(text)  # type: ignore[call-arg]
    except ValueError:
        raise typer.BadParameter(f"a whole number, not {text!r}") from None


@app.command()
def main(
    names: Annotated[list[str] | None, typer.Argument(help=f"which: {', '.join(BENCHMARKS)}; all if none is named")] = None,
    sizes: Annotated[list[str] | None, typer.Option("--set", help="a size, as in rows=100000 or queries=16,256")] = None,
    out: Annotated[Path, typer.Option(help="where pages go")] = PAGES,
) -> None:
    """Measure Muntin against plain Spark and against itself; answers are checked first."""
    chosen = names or list(BENCHMARKS)
    for name in chosen:
        if name not in BENCHMARKS:
            raise typer.BadParameter(f"there is no benchmark {name}; there are {', '.join(BENCHMARKS)}")
    setups = {name: resized(name, sizes or []) for name in chosen}
    from muntin import session

    spark = session("muntin benchmarks", **{"spark.driver.memory": MEMORY, "spark.driver.maxResultSize": "0"})
    try:
        run(chosen, spark, setups, out, Console())
    finally:
        spark.stop()


if __name__ == "__main__":  # a spawned process imports this module under another name
    app()
