"""The page of the cost model: constants, errors of fitted and held-out runs, and what it predicts for clusters nobody ran.

In: `Measured`. Out: a `Report`, and a plot. Convention: what is held against the model are runs it was not fitted to.
"""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import matplotlib as mpl
from matplotlib.figure import Figure

from benchmarks.model import TERMS, Load, Run, error
from benchmarks.plots import STYLE, save
from benchmarks.plots_scale import PLACES
from benchmarks.report import Claim, Report, seconds, table, whole
from benchmarks.scaling import Measured

AIM = 0.25
EXECUTORS = (10, 100, 1_000)
GROUPS = (10**6, 10**7, 10**8, 10**9)
#: Cores of each executor, and queries, in predictions.
CORES, QUERIES = 4, 10
#: Seconds that the driver's JVM has of the processor for the tasks of one instance, two in a batch: as measured on a cluster, where it is
#: a process of its own.
SCHEDULED = 8e-3
#: Bytes a second that an executor moves to and from others and its store; bytes of a shard in a shuffle, and of one in the log.
BANDWIDTH, SHUFFLED, LOGGED = 125e6, 60, 50


def report(measured: Measured) -> Report:
    method = (
        "Each run: a minute's file a batch, some rows of every group, each query closes one window of every group a batch, results to "
        f"Parquet, with a checkpoint; local mode, {measured.cores} cores. Processor time is that of all processes, averaged over "
        f"{measured.setup.batches - measured.setup.warmups} batches."
    )
    predictions = (
        f"Seconds a batch with a row of every group and {QUERIES} queries that close a window each, on executors with {CORES} cores and "
        f"{BANDWIDTH / 1e6:.0f} MB/s each, an instance a core. In brackets what of it the driver does for tasks and files, one by one."
    )
    body = [
        method,
        "## Constants",
        "Processor time for one of each; *serial*: the driver's Python, *parallel*: the JVM and Python workers.",
        constants_table(measured),
        "## Runs the model was fitted to",
        runs_table(measured, measured.fitted),
        "## Runs it was not fitted to",
        runs_table(measured, measured.held_out),
        "## Predictions",
        predictions,
        predictions_table(measured),
    ]
    title = "What a micro-batch costs: a model, and how far it is off"
    return Report(name="scaling", title=title, claims=claims(measured), body=body, raw=asdict(measured))


def claims(measured: Measured) -> list[Claim]:
    found = []
    for text, errors in (("processor time", processor_errors(measured)), ("time on the wall", wall_errors(measured))):
        worst = max(errors, key=abs)
        inside = sum(abs(one) <= AIM for one in errors)
        figures = f"{inside} of {len(errors)} runs, {worst:+.0%} at worst"
        found.append(Claim(f"the model's {text} is within {AIM:.0%} of held-out runs", abs(worst) <= AIM, figures))
    return found


def processor_errors(measured: Measured) -> list[float]:
    return [error(measured.models[run.load.place].processor(run.load), run.cost.processor) for run in measured.held_out]


def wall_errors(measured: Measured) -> list[float]:
    return [error(measured.models[run.load.place].wall(run.load, measured.cores), run.cost.wall) for run in measured.held_out]


def constants_table(measured: Measured) -> str:
    rows = []
    for place, model in measured.models.items():
        for part in ("serial", "parallel"):
            constants = getattr(model, part)
            rows.append([place, part, *(amount(constants[term]) for term in TERMS)])
        rows.append([place, "waiting", amount(model.wait), *[""] * (len(TERMS) - 1)])
    return table(["assembled", "part", *(f"a {term}" for term in TERMS)], rows, words=2)


def amount(value: float) -> str:
    """Seconds in the unit that leaves the fewest digits."""
    units = (("s", 1), ("ms", 1e3), ("µs", 1e6), ("ns", 1e9))
    return next((f"{value * scale:.3g} {unit}" for unit, scale in units if value * scale >= 0.1), "0")


def runs_table(measured: Measured, runs: list[Run]) -> str:
    rows = []
    for run in runs:
        model = measured.models[run.load.place]
        processor, wall = model.processor(run.load), model.wall(run.load, measured.cores)
        rows.append(
            [
                str(run.load),
                seconds(run.cost.processor), seconds(processor), f"{error(processor, run.cost.processor):+.0%}",
                seconds(run.cost.wall), seconds(wall), f"{error(wall, run.cost.wall):+.0%}",
            ]
        )  # fmt: skip
    return table(["run", "processor", "model", "error", "wall", "model", "error"], rows)


def predicted(measured: Measured, groups: int, executors: int) -> tuple[float, float]:
    """Seconds of a batch, and what of them is tasks and files."""
    cores, model = executors * CORES, measured.models["executors"]
    load = Load(groups, 1, QUERIES, cores, "executors")
    moved = groups * (SHUFFLED + LOGGED) / (executors * BANDWIDTH)
    scheduled = cores * SCHEDULED
    one_by_one = scheduled + sum(model.serial[term] * load.amounts[term] for term in ("task", "file"))
    return model.wall(load, cores) + moved + scheduled, one_by_one


def predictions_table(measured: Measured) -> str:
    rows = []
    for groups in GROUPS:
        cells = [predicted(measured, groups, executors) for executors in EXECUTORS]
        rows.append([whole(groups), *(f"{seconds(total)} ({seconds(one_by_one)})" for total, one_by_one in cells)])
    return table(["groups", *(f"{executors:,} executors" for executors in EXECUTORS)], rows)


def plot(measured: Measured, directory: Path) -> None:
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(6, 5), layout="constrained")
        axes = figure.subplots()
        most = max(run.cost.processor for run in [*measured.fitted, *measured.held_out])
        least = min(run.cost.processor for run in [*measured.fitted, *measured.held_out])
        axes.fill_between([least, most], [least * (1 - AIM), most * (1 - AIM)], [least * (1 + AIM), most * (1 + AIM)], color="#eeeeee")
        for label, runs, marker in (("fitted", measured.fitted, "o"), ("held out", measured.held_out, "D")):
            for place, colour in PLACES.items():
                own = [run for run in runs if run.load.place == place]
                points = [(run.cost.processor, measured.models[place].processor(run.load)) for run in own]
                axes.plot(
                    *zip(*points, strict=True),
                    marker,
                    color=colour,
                    fillstyle="none" if label == "fitted" else "full",
                    label=f"{label}, {place}",
                )
        for name in ("x", "y"):
            getattr(axes, f"set_{name}scale")("log")
        axes.set_xlabel("processor seconds a batch, measured")
        axes.set_ylabel("the model")
        axes.legend(frameon=False)
        save(figure, directory, "scaling")
