"""The plots of groups and of workers, in the manner of `plots`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import matplotlib as mpl
from matplotlib.figure import Figure

from benchmarks.groups import Curve
from benchmarks.plots import STYLE, save
from benchmarks.report_scale import MOST_MEMORY
from benchmarks.touched import Turned
from benchmarks.workers import SpeedUp

PLACES = {"driver": "#d55e00", "executors": "#0072b2"}


def groups(curve: Curve, directory: Path) -> None:
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(8, 4.5), layout="constrained")
        left, right = figure.subplots(1, 2)
        for place in curve.setup.places:
            found = [one for one in curve.found if one.place == place]
            numbers = [one.groups for one in found]
            left.plot(numbers, [one.mean for one in found], "o-", color=PLACES[place], label=place)
            right.plot(numbers, [one.peak / 2**30 for one in found], "o-", color=PLACES[place], label=place)
        for axes, label in ((left, "seconds a batch"), (right, "GiB, all processes")):
            axes.set_xscale("log")
            axes.set_xlabel("groups")
            axes.set_ylabel(label)
            axes.set_ylim(bottom=0)
            axes.legend(frameon=False)
        save(figure, directory, "groups")


def million(curve: Curve, directory: Path) -> None:
    """The batches of the largest number of groups, one by one, and its memory beside what is allowed."""
    largest = max(curve.found, key=lambda one: one.groups)
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(8, 4), layout="constrained")
        left, right = figure.subplots(1, 2, width_ratios=(3, 1))
        batches = range(curve.setup.warmups + 1, curve.setup.warmups + 1 + len(largest.seconds))
        left.bar(list(map(str, batches)), largest.seconds, color=PLACES[largest.place], width=0.6)
        left.set_xlabel(f"batch, a minute of {largest.groups:,} groups each")
        left.set_ylabel("seconds")
        right.bar(["at the most"], [largest.peak / 2**30], color=PLACES[largest.place], width=0.5)
        right.axhline(MOST_MEMORY / 2**30, color="black", linestyle="--")
        right.annotate("allowed", (0, MOST_MEMORY / 2**30), ha="center", va="bottom")
        right.set_ylim(0, 1.15 * max(MOST_MEMORY, largest.peak) / 2**30)
        right.set_xlim(-0.6, 0.6)
        right.set_ylabel("GiB, all processes")
        save(figure, directory, "million")


def workers(found: SpeedUp, directory: Path) -> None:
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(6, 4), layout="constrained")
        axes = figure.subplots()
        numbers = [str(one.workers) for one in found.found]
        axes.bar(numbers, [one.median for one in found.found], color=PLACES["executors"], width=0.5)
        axes.set_xlabel("workers, a core each")
        axes.set_ylabel("seconds a batch")
        save(figure, directory, "workers")


def touched(found: Sequence[Turned], directory: Path) -> None:
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(6, 4), layout="constrained")
        axes = figure.subplots()
        alive = [one.alive for one in found]
        axes.plot(alive, [one.closing * 1e3 for one in found], "o-", color=PLACES["driver"], label="close a window")
        for shade, number in enumerate(found[0].absorbing):
            milliseconds = [one.absorbing[number] * 1e3 for one in found]
            axes.plot(alive, milliseconds, "o-", color=PLACES["executors"], alpha=0.3 + 0.3 * shade, label=f"absorb {number:,} groups")
        axes.set_xlabel("groups alive in the window")
        axes.set_ylabel("ms of the processor")
        axes.set_ylim(bottom=0)
        axes.legend(frameon=False)
        save(figure, directory, "touched")
