"""The plots of windows that count tuples and of the papers' figures, in the manner of `plots`.

In: outcomes. Out: `NAME.png` and `NAME.svg` in a directory. Convention: what Muntin does is blue; the paper's model is dotted.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator

from benchmarks.buffering import IN_PLACE, MATERIALISED, SCAN, WINDOW_ID, Buffering
from benchmarks.latency import BLOCKS, BOUNDED, EXTERNAL, Latencies, Line, way_of
from benchmarks.panes import PAPER_CELL, PAPER_RATIO, Panes
from benchmarks.plots import STYLE, save
from benchmarks.slide_by_tuple import DISORDERED, TARGET, BySlide
from benchmarks.tuple_windows import ALLOWED, Counted
from muntin.query.model import Lateness

OURS, OTHER, THIRD, GREY = "#0072b2", "#d55e00", "#009e73", "#888888"
BY_PANES = ("#56b4e9", "#0072b2", "#009e73", "#d55e00", "#cc79a7", "#444444")
WAYS = {WINDOW_ID: OURS, MATERIALISED: OTHER, IN_PLACE: THIRD, SCAN: GREY}
PUNCTUATIONS = {EXTERNAL: OURS, way_of(Lateness.CONSISTENT): OTHER, way_of(Lateness.GENEROUS): THIRD}


def slide_by_tuple(outcome: BySlide, directory: Path) -> None:
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(8, 4.5), layout="constrained")
        axes = figure.subplots()
        rows, first, last = outcome.setup.rows, outcome.ordered[0], outcome.disordered
        ranges = [point.case.seconds for point in outcome.ordered]
        axes.plot(ranges, [each(point.seconds, rows) for point in outcome.ordered], "o-", color=OURS, label="in order")
        allowed = [each(first.seconds, rows) * outcome.growth(point)[1] for point in outcome.ordered]
        axes.plot(ranges, allowed, ":", color=GREY, label="log2(tuples per window), from the shortest")
        axes.plot(last.case.seconds, each(last.seconds, rows), "s", color=OTHER, label=f"{last.case.percent} % out of order")
        axes.plot(
            last.case.seconds, DISORDERED * each(outcome.main.seconds, rows), "_", color=OTHER, markersize=18, label="allowed out of order"
        )
        axes.axhline(1e9 / TARGET, color="#444444", linestyle="--", label=f"{TARGET:,} tuples a second")
        axes.set_xscale("log")
        ticked(axes, ranges, [f"{seconds} s" for seconds in ranges])
        labelled(axes, "RANGE", "nanoseconds per tuple", f"{rows:,} tuples from files to Parquet: count, sum and max at every tuple")
        axes.set_ylim(bottom=0)
        axes.legend(frameon=False)
        save(figure, directory, "slide-by-tuple")


def each(seconds: float, rows: int) -> float:
    return seconds / rows * 1e9


def tuple_windows(outcome: Counted, directory: Path) -> None:
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(6, 4), layout="constrained")
        axes = figure.subplots()
        names = [str(point.windows) for point in outcome.points]
        axes.bar(names, [point.seconds for point in outcome.points], color=OURS, width=0.5)
        axes.axhline(ALLOWED * outcome.points[0].seconds, color=GREY, linestyle="--", label=f"{ALLOWED} × the fewest")
        labelled(axes, "tuple-based windows", "seconds", f"{outcome.setup.rows:,} tuples from Parquet to all windows' results")
        axes.legend(frameon=False, loc="lower right")
        save(figure, directory, "tuple-windows")


def panes(outcome: Panes, directory: Path) -> None:
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(11, 4.5), layout="constrained")
        left, right = figure.subplots(1, 2, sharey=True)
        setup = outcome.setup
        width, places = 0.8 / len(setup.panes), np.arange(len(setup.tuples))
        for number, number_of_panes in enumerate(setup.panes):
            cells = [outcome.of(tuples, number_of_panes) for tuples in setup.tuples]
            at = places + (number - (len(setup.panes) - 1) / 2) * width
            left.bar(at, [cell.model for cell in cells], width, color=BY_PANES[number])
            right.bar(at, [cell.measured for cell in cells], width, color=BY_PANES[number], label=f"{number_of_panes} panes per window")
        if PAPER_CELL[0] in setup.tuples and PAPER_CELL[1] in setup.panes:
            at = places[setup.tuples.index(PAPER_CELL[0])] + (setup.panes.index(PAPER_CELL[1]) - (len(setup.panes) - 1) / 2) * width
            for axes in (left, right):
                axes.plot(at, PAPER_RATIO, "x", color="black", markersize=8, markeredgewidth=2)
            right.plot([], [], "x", color="black", markeredgewidth=2, label="the paper's text: about 0.30")
        for axes, title in (
            (left, "model: (3.1) over (3.3), all costs equal"),
            (right, "measured: Muntin with panes over Spark's window()"),
        ):
            axes.axhline(1, color=GREY, linestyle=":")
            axes.set_xticks(places, [str(tuples) for tuples in setup.tuples])
            labelled(axes, "tuples per pane", "cost ratio, paned over windowed", title)
        right.legend(frameon=False, fontsize=8)
        save(figure, directory, "panes")


def buffering(outcome: Buffering, directory: Path) -> None:
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(8, 4.5), layout="constrained")
        axes = figure.subplots()
        slides = [point.slide for point in outcome.points]
        for way, colour in WAYS.items():
            axes.plot(slides, [point.nanoseconds[way] for point in outcome.points], "o-", color=colour, label=way, markersize=4)
        axes.set_xscale("log")
        axes.set_yscale("log")
        ticked(axes, slides, [str(slide) for slide in slides])
        title = f"max over RANGE {outcome.setup.range:,} rows, {outcome.setup.rows:,} rows"
        labelled(axes, "SLIDE, rows", "nanoseconds of processor time per row", title)
        axes.legend(frameon=False)
        save(figure, directory, "buffering")


def latency(outcome: Latencies, directory: Path) -> None:
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(11, 4.8), layout="constrained")
        for axes, one, wrong in zip(
            figure.subplots(1, 2), (BOUNDED, BLOCKS), ("average error, per cent", "wrong answers, per cent"), strict=True
        ):
            for way, colour in PUNCTUATIONS.items():
                lines = [line for line in outcome.lines[one.name] if line.way == way]
                if not lines:
                    continue
                mark = "*" if way == EXTERNAL else "o-"
                size = 14 if way == EXTERNAL else 5
                axes.plot([line.wait for line in lines], [line.wrong for line in lines], mark, color=colour, markersize=size, label=way)
                for line, text in slack_labels(lines) if way == way_of(Lateness.CONSISTENT) else ():
                    axes.annotate(text, (line.wait, line.wrong), fontsize=7, xytext=(4, 4), textcoords="offset points")
            labelled(axes, "average wait after the extent was whole, seconds", wrong, one.name)
            axes.legend(frameon=False)
        save(figure, directory, "latency")


def slack_labels(lines: Sequence[Line]) -> list[tuple[Line, str]]:
    """A label for each slack; slacks that are always wrong lie on one spot and have one together."""
    hopeless = [line for line in lines if line.wrong == 100]
    labels = [(line, f"{line.slack:g} s") for line in lines if line not in hopeless]
    return [*labels, (hopeless[-1], f"{hopeless[0].slack:g} to {hopeless[-1].slack:g} s")] if hopeless else labels


def ticked(axes: Axes, places: list[int], names: list[str]) -> None:
    axes.set_xticks(places, names)
    axes.xaxis.set_minor_locator(NullLocator())


def labelled(axes: Axes, x: str, y: str, title: str) -> None:
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    axes.set_title(title, fontsize=10)
