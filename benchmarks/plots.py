"""The plots: PNG to look at, SVG to print, one pair of files per page.

In: outcomes. Out: `NAME.png` and `NAME.svg` in a directory. Convention: one colour per strategy or select list in all plots; hollow
markers are multiplied, not measured; crosses are the paper's figures, from a machine of 2006.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

from benchmarks import paper
from benchmarks.churn import ChurnOutcome, Mode
from benchmarks.long_windows import SteadyState
from benchmarks.many_queries import KINDS, Growth
from benchmarks.outcome import Outcome
from benchmarks.report_workload import names_of
from benchmarks.restart import RestartCurve, page_of
from benchmarks.workloads import PLAIN, Form, Workload

COLOURS = {
    PLAIN: "#444444",
    Form.CONDITIONAL.value: "#888888",
    Form.EXPLODED.value: "#aaaaaa",
    Form.BY_SECONDS.value: "#cccccc",
    "unshared paned": "#e69f00",
    "unshared paired": "#d55e00",
    "shared paned": "#56b4e9",
    "shared paired": "#0072b2",
    "slices": "#56b4e9",
    "fragments": "#cc79a7",
    "shards": "#009e73",
    "automatic": "#0072b2",
}
SELECT_COLOURS = ("#009e73", "#0072b2", "#d55e00", "#cc79a7", "#444444")
STYLE: dict[Any, Any] = {
    "font.size": 10,
    "axes.grid": True,
    "grid.alpha": 0.3,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "svg.hashsalt": "muntin",
}


def workload(contest: Workload, outcome: Outcome, directory: Path) -> None:
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(11, 5), layout="constrained")
        left, right = figure.subplots(1, 2)
        _times(left, contest, outcome)
        _aggregations(right, contest, outcome)
        _legend_below(figure, columns=4)
        save(figure, directory, contest.name)


def _times(axes: Axes, contest: Workload, outcome: Outcome) -> None:
    counts = outcome.setup.queries
    for name in names_of(contest):
        timings = [outcome.timing(name, count) for count in counts]
        axes.plot(counts, [one.seconds for one in timings], color=COLOURS[name], label=name)
        for one in timings:
            axes.plot(one.queries, one.seconds, "o", color=COLOURS[name], markerfacecolor="white" if one.scaled else COLOURS[name])
    axes.axhline(outcome.one_plain, color=COLOURS[PLAIN], linestyle=":", label="one plain Spark query")
    if paper.QUERIES in counts:
        for figure in contest.figures:
            axes.plot(paper.QUERIES, figure.seconds, "x", color=COLOURS[figure.ours], markersize=9, markeredgewidth=2)
        axes.plot([], [], "x", color="#888888", markeredgewidth=2, label="the paper's figures, 2006")
    axes.plot([], [], "o", color="#888888", markerfacecolor="white", label="multiplied from fewer queries")
    _log_axes(axes, counts, "seconds", f"{outcome.setup.rows:,} rows to all windows' results")


def _aggregations(axes: Axes, contest: Workload, outcome: Outcome) -> None:
    counts = outcome.setup.queries
    for strategy in contest.whole:
        work = [outcome.work_of(strategy.name, count) for count in counts]
        axes.plot(counts, [one.counted.final for one in work], "o-", color=COLOURS[strategy.name])
        axes.plot(counts, [one.performed for one in work], "s--", color=COLOURS[strategy.name], markersize=4)
    axes.axhline(outcome.setup.rows, color="#888888", linestyle=":")
    if paper.QUERIES in counts:
        for figure in contest.figures[1:]:
            axes.plot(paper.QUERIES, figure.final, "x", color=COLOURS[figure.ours], markersize=9, markeredgewidth=2)
    axes.plot([], [], "o-", color="#888888", label="final aggregations, by the paper's count")
    axes.plot([], [], "s--", color="#888888", markersize=4, label="combines as performed")
    axes.plot([], [], ":", color="#888888", label="rows of the hour")
    _log_axes(axes, counts, "aggregations", "aggregations of the shared strategies")


def _log_axes(axes: Axes, counts: Sequence[int], unit: str, title: str) -> None:
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.set_xticks(counts, [str(count) for count in counts])
    axes.xaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5), numticks=20))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: short(value)))
    axes.set_xlabel("queries")
    axes.set_ylabel(unit)
    axes.set_title(title, fontsize=10)


def short(value: float) -> str:
    """A tick's number: `0.2`, `50`, `20 k`, `1 M`."""
    scale, unit = (1e6, " M") if value >= 1e6 else (1e3, " k") if value >= 1e3 else (1, "")
    return f"{value / scale:.10g}{unit}"


def queries(outcome: Growth, directory: Path) -> None:
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(8, 4.5), layout="constrained")
        axes = figure.subplots()
        for kind, colour in zip(KINDS, ("#0072b2", "#d55e00"), strict=True):
            points = outcome.of(kind.name)
            counts, allowed = [one.queries for one in points], kind.allowed * points[0].seconds
            axes.plot(counts, [one.seconds for one in points], "o-", color=colour, label=f"run: {kind.name}")
            axes.plot(counts, [one.parsing for one in points], "s--", color=colour, markersize=4, label=f"parsing: {kind.name}")
            axes.plot(counts, [one.planning for one in points], "^:", color=colour, markersize=4, label=f"planning: {kind.name}")
            axes.plot(counts[-1], allowed, "_", color=colour, markersize=18, label=f"allowed: {kind.allowed} × one query")
        _log_axes(axes, outcome.setup.counts, "seconds", f"{outcome.setup.rows:,} rows from Parquet to all windows' results")
        axes.legend(frameon=False, fontsize=8)
        save(figure, directory, "queries")


def churn(outcome: ChurnOutcome, directory: Path) -> None:
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(11, 4.5), layout="constrained")
        left, right = figure.subplots(1, 2)
        colours = {Mode.ALONE: "#bbbbbb", Mode.STEADY: "#444444", Mode.CHURNING: "#0072b2"}
        for label, colour, runs in ((mode.value, colours[mode], runs) for mode, runs in outcome.runs.items()):
            for number, run in enumerate(runs):
                batches = range(1, len(run.ended) + 1)
                left.plot(batches, run.ended, color=colour, alpha=0.7, label=label if number == 0 else None)
            right.plot(batches, runs[-1].queries, color=colour)
        _batch_axes(left, "seconds since the start", "end of each micro-batch, every run")
        _batch_axes(right, "queries", "registered queries")
        _legend_below(figure, columns=2)
        save(figure, directory, "churn")


def _batch_axes(axes: Axes, unit: str, title: str) -> None:
    axes.set_ylim(bottom=0)
    axes.set_xlabel("micro-batch")
    axes.set_ylabel(unit)
    axes.set_title(title, fontsize=10)


def long_windows(found: Sequence[SteadyState], directory: Path) -> None:
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(11, 4.5), layout="constrained")
        left, right = figure.subplots(1, 2)
        selects = list(dict.fromkeys(one.case.select for one in found))
        for select, colour, mark in zip(selects, SELECT_COLOURS, "osD^v", strict=False):
            own = [one for one in found if one.case.select == select]
            hours = [one.case.hours for one in own]
            left.plot(hours, [one.nanoseconds_per_group for one in own], f"{mark}-", color=colour, label=select)
            right.plot(hours, [one.bytes_per_cell for one in own], f"{mark}-", color=colour)
            right.plot(hours, [8 * one.lanes for one in own], ":", color=colour)
        right.plot([], [], ":", color="#888888", label="8 bytes per lane")
        _range_axes(left, hours, "nanoseconds of CPU time, mean", f"time per slide and group, {found[0].case.groups:,} groups")
        _range_axes(right, hours, "bytes", "memory per slice and group, all lanes together")
        _legend_below(figure, columns=6)
        save(figure, directory, "long-windows")


def _range_axes(axes: Axes, hours: Sequence[int], unit: str, title: str) -> None:
    axes.set_xscale("log", base=2)
    axes.set_xticks(hours, [f"{hour} h" for hour in hours])
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_ylim(bottom=0)
    axes.set_xlabel("RANGE, SLIDE 1 minute")
    axes.set_ylabel(unit)
    axes.set_title(title, fontsize=10)


def restart(curve: RestartCurve, directory: Path) -> None:
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(8, 4.5), layout="constrained")
        axes = figure.subplots()
        batches, stops = [one.batch for one in curve.kept], [one.batch for one in curve.restarts]
        lines = {
            "all entries ever logged": ("#888888", [one.logged for one in curve.kept]),
            "kept: snapshot and entries after it": ("#0072b2", [one.log + one.snapshot for one in curve.kept]),
            "snapshot alone": ("#56b4e9", [one.snapshot for one in curve.kept]),
        }
        for label, (colour, sizes) in lines.items():
            axes.plot(batches, [size / 2**20 for size in sizes], color=colour, label=label)
        axes.plot(stops, [one.read / 2**20 for one in curve.restarts], "o", color="#d55e00", label="read at restart, measured")
        axes.plot(stops, [one.needed / 2**20 for one in curve.restarts], "_", color="#009e73", markersize=14, label="the windows' state")
        _batch_axes(axes, "MiB", f"{curve.setup.groups} groups, RANGE {curve.setup.minutes} min SLIDE 1 min, one minute a batch")
        axes.legend(frameon=False)
        save(figure, directory, page_of(curve.setup))


def _legend_below(figure: Figure, *, columns: int) -> None:
    """One legend for all panels."""
    found = [pair for axes in figure.axes for pair in zip(*axes.get_legend_handles_labels(), strict=True)]
    handles, labels = zip(*found, strict=True)
    figure.legend(handles, labels, loc="outside lower center", ncols=columns, frameon=False)


def save(figure: Figure, directory: Path, name: str) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    figure.savefig(directory / f"{name}.png", dpi=130)
    figure.savefig(directory / f"{name}.svg", metadata={"Date": None})
