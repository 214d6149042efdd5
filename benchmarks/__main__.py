"""`python -m benchmarks [NAME…]`: run some benchmarks or all, show their claims, write their pages.

In: names and sizes. Out: pages, plots and raw numbers in a directory. Convention: sizes default to the issue's; smaller ones are for
development, and their pages belong in another directory (`--out`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Annotated

import typer
from pyspark.sql import SparkSession
from rich.console import Console

from benchmarks import contest, long_windows, plots, restart
from benchmarks.machine import BUSY, Elsewhere, this_machine
from benchmarks.outcome import Setup as ContestSetup
from benchmarks.report import Report
from benchmarks.report_long import long_report, restart_report
from benchmarks.report_workload import report as workload_report
from benchmarks.workloads import WORKLOADS, Workload
from muntin.spark.generator import ROWS

PAGES = Path(__file__).parents[1] / "docs" / "benchmarks"
app = typer.Typer(add_completion=False)


@dataclass(frozen=True)
class Setups:
    """The size of every benchmark; a contest without one has its workload's numbers of queries."""

    contests: Mapping[str, ContestSetup] = field(default_factory=dict)
    long_windows: long_windows.Setup = long_windows.Setup()
    restart: restart.Setup = restart.Setup()


def bench_workload(workload: Workload, spark: SparkSession, setups: Setups, out: Path, console: Console) -> Report:
    setup = setups.contests.get(workload.name, ContestSetup(queries=workload.counts))
    outcome = contest.run(spark, workload, setup, console)
    plots.workload(workload, outcome, out)
    return workload_report(workload, outcome)


def bench_long_windows(_: SparkSession, setups: Setups, out: Path, console: Console) -> Report:
    found = long_windows.run(setups.long_windows, console)
    plots.long_windows(found, out)
    return long_report(found)


def bench_restart(spark: SparkSession, setups: Setups, out: Path, console: Console) -> Report:
    curve = restart.run(spark, setups.restart, console)
    plots.restart(curve, out)
    return restart_report(curve)


BENCHMARKS: dict[str, Callable[[SparkSession, Setups, Path, Console], Report]] = {
    **{name: partial(bench_workload, workload) for name, workload in WORKLOADS.items()},
    "long_windows": bench_long_windows,
    "restart": bench_restart,
}


def run(names: list[str], spark: SparkSession, setups: Setups, out: Path, console: Console) -> list[Report]:
    """Run the named benchmarks one after another and write their pages."""
    reports = []
    for name in names:
        machine = this_machine()
        if machine.busy:
            console.print(f"[yellow]load average {machine.load[0]:.1f} is above {BUSY}: read the ratios, not the times[/]")
        others = Elsewhere()
        report = BENCHMARKS[name](spark, setups, out, console)
        report.write(out, machine, others.cores())
        for claim in report.claims:
            console.print(
                f"[{'green' if claim.holds else 'red'}]{'PASS' if claim.holds else 'FAIL'}[/] {claim.text}: {claim.figures}",
                highlight=False,
            )
        console.print(f"page: {out / report.name}.md", highlight=False)
        reports.append(report)
    return reports


def numbers(text: str) -> tuple[int, ...]:
    try:
        return tuple(int(part) for part in text.split(","))
    except ValueError:
        raise typer.BadParameter(f"whole numbers with commas between them, not {text!r}") from None


@app.command()
def main(
    names: Annotated[list[str] | None, typer.Argument(help=f"which: {', '.join(BENCHMARKS)}; all if none is named")] = None,
    queries: Annotated[str, typer.Option(help="workloads: numbers of queries, the paper's if none are given")] = "",
    rows: Annotated[int, typer.Option(help="workloads: trades")] = ROWS,
    rounds: Annotated[int, typer.Option(help="workloads: rounds that count")] = 9,
    checked: Annotated[int, typer.Option(help="workloads: queries also run one by one to check every strategy")] = 16,
    hours: Annotated[str, typer.Option(help="long windows: RANGE in hours")] = "1,6,24",
    groups: Annotated[int, typer.Option(help="long windows: groups")] = 10_000,
    slides: Annotated[int, typer.Option(help="long windows: slides measured")] = 1_146,
    batches: Annotated[int, typer.Option(help="restart: micro-batches")] = 500,
    out: Annotated[Path, typer.Option(help="where pages go")] = PAGES,
) -> None:
    """Measure Muntin against plain Spark and against itself; answers are checked first."""
    for name in names or []:
        if name not in BENCHMARKS:
            raise typer.BadParameter(f"there is no benchmark {name}; there are {', '.join(BENCHMARKS)}")
    from muntin import session

    setups = Setups(
        {
            workload.name: ContestSetup(numbers(queries) if queries else workload.counts, rows, rounds, checked=checked)
            for workload in WORKLOADS.values()
        },
        long_windows.Setup(hours=numbers(hours), groups=groups, slides=slides),
        restart.Setup(batches=batches),
    )
    console = Console()
    spark = session("muntin benchmarks")
    try:
        run(names or list(BENCHMARKS), spark, setups, out, console)
    finally:
        spark.stop()


if __name__ == "__main__":  # a spawned process imports this module under another name
    app()
