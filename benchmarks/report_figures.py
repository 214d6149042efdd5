"""The pages of two figures: Figure 3 of panes-2005, Figure 8 of window-id-2005.

In: `Panes`, `Buffering`. Out: `Report`s. Convention: a claim is what the paper says of its figure, held against the one made here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict

from benchmarks import buffering
from benchmarks.buffering import Buffering
from benchmarks.panes import PAPER_CELL, PAPER_RATIO, Cell, Panes
from benchmarks.report import Claim, Report, seconds, table, times, whole

# -- panes-2005, Figure 3 -----------------------------------------------------------------------------------------------------------


def panes_report(outcome: Panes) -> Report:
    setup = outcome.setup
    method = (
        f"A sliding max over {setup.rows:,} cached rows, one a millisecond. Windowed: Spark's own sliding `window()`, which takes a row "
        f"once for every window it is in. Paned: Muntin with panes, in the same session over the same rows. Both end with all windows in "
        f"an Arrow table; all {whole(outcome.compared)} windows were compared first. As in the paper, the scan is subtracted: of either "
        f"side, the same query with one window around all rows (paned {seconds(outcome.cells[0].paned.scan)}, windowed "
        f"{seconds(outcome.cells[0].windowed.scan)}). Medians of {setup.rounds} interleaved rounds. The model is formula (3.1) over (3.3) "
        f"with all costs equal and one group: (tuples + 1 + panes) / (tuples × panes)."
    )
    note = (
        f"The paper's text gives one cell: {PAPER_CELL[0]} tuples per pane, {PAPER_CELL[1]} panes per window, about {PAPER_RATIO:.2f}. "
        f"Muntin makes windows of panes with at most two combines, not one per pane, so that its ratio goes on falling where the model's "
        f"has come to its 1 / tuples."
    )
    return Report(
        name="panes",
        title="Figure 3 of the panes paper: the cost of panes over that of windows without",
        claims=panes_claims(outcome),
        body=[method, "## Ratio, measured and (model)", ratios(outcome), note, "## Times above the scan, paned / windowed", above(outcome)],
        raw=asdict(outcome),
    )


def panes_claims(outcome: Panes) -> list[Claim]:
    cell = outcome.of(*PAPER_CELL) if PAPER_CELL[0] in outcome.setup.tuples and PAPER_CELL[1] in outcome.setup.panes else outcome.cells[-1]
    better = [one for one in outcome.cells if one.measured < 1]
    most = max(outcome.setup.panes)
    falling = [outcome.of(tuples, most).measured for tuples in outcome.setup.tuples]
    return [
        Claim("panes are better in most cases", 2 * len(better) > len(outcome.cells), f"in {len(better)} of {len(outcome.cells)} cells"),
        Claim(
            f"{cell.tuples} tuples per pane and {cell.panes} panes per window take about {PAPER_RATIO:.0%} of the time, or less",
            cell.measured <= PAPER_RATIO + 0.05,
            f"{cell.measured:.2f} measured, {cell.model:.2f} by the model",
        ),
        Claim(
            f"the gain grows with tuples per pane, at {most} panes per window",
            falling[-1] < falling[0],
            ", ".join(f"{tuples}: {ratio:.2f}" for tuples, ratio in zip(outcome.setup.tuples, falling, strict=True)),
        ),
    ]


def ratios(outcome: Panes) -> str:
    return by_cell(outcome, lambda cell: f"{cell.measured:.2f} ({cell.model:.2f})")


def above(outcome: Panes) -> str:
    return by_cell(outcome, lambda cell: f"{seconds(cell.paned.above)} / {seconds(cell.windowed.above)}")


def by_cell(outcome: Panes, shown: Callable[[Cell], str]) -> str:
    rows = [[whole(tuples), *(shown(outcome.of(tuples, panes)) for panes in outcome.setup.panes)] for tuples in outcome.setup.tuples]
    return table(["tuples per pane", *(f"{panes} panes per window" for panes in outcome.setup.panes)], rows, words=0)


# -- window-id-2005, Figure 8 -------------------------------------------------------------------------------------------------------


def buffering_report(outcome: Buffering) -> Report:
    setup, first = outcome.setup, outcome.points[0]
    method = (
        f"max over RANGE {setup.range:,} rows, {setup.rows:,} rows in order, in batches of {setup.batch:,}, in one process without Spark; "
        f"processor time, medians of {setup.rounds} interleaved rounds; all {whole(outcome.compared)} windows of the three ways are the "
        f"same. **window-id**: rows into slices, slices into windows by the engine's assembly. **materialised**: the paper's buffering, "
        f"each extent is copied out of the buffer and aggregated. **in place**: the same buffer, each extent gone over where it lies."
    )
    note = (
        f"At SLIDE {first.slide} a window-id evaluation combines each of its {setup.range:,} slices a few times, buffering goes over "
        f"{setup.range:,} rows for every window. In place that is {setup.range:,} numbers side by side in the processor's nearest cache, "
        f"and arithmetic on whole vectors of them, for which a window of this size is no work: nothing is cheaper here, as long as rows "
        f"are numbers, in order, all kept, and one group. Window-ids keep slices, not rows, need no order, and do not grow with RANGE."
    )
    ways = list(buffering.WAYS)
    rows = [
        [whole(one.slide), *(nanoseconds(one.nanoseconds[way]) for way in ways), times(gain(one)), whole(one.slices), whole(one.rows)]
        for one in outcome.points
    ]
    head = ["SLIDE", *(f"{way}, per row" for way in ways), "materialised ÷ window-id", "slices held", "rows held"]
    return Report(
        name="buffering",
        title=f"Figure 8 of the window-id paper: window-ids against buffering, RANGE {setup.range:,} rows",
        claims=buffering_claims(outcome),
        body=[method, table(head, rows, words=0), note],
        raw=asdict(outcome),
    )


def gain(point: buffering.Point) -> float:
    return point.nanoseconds[buffering.MATERIALISED] / point.nanoseconds[buffering.WINDOW_ID]


def nanoseconds(value: float) -> str:
    return f"{value:,.1f} ns" if value < 100 else f"{value:,.0f} ns"


def buffering_claims(outcome: Buffering) -> list[Claim]:
    gains = {one.slide: gain(one) for one in outcome.points}
    shown = ", ".join(f"{slide}: {times(one)}" for slide, one in gains.items())
    winning = [slide for slide, one in gains.items() if one > 1]
    return [
        Claim("the comparison favours window-ids as RANGE/SLIDE grows", min(gains) == max(gains, key=gains.__getitem__), shown),
        Claim(
            "window-ids take less time than buffering in most cases",
            2 * len(winning) > len(gains),
            f"at {len(winning)} of {len(gains)} slides, up to SLIDE {max(winning, default=0)}; not against an extent in place",
        ),
        Claim(
            "what is held is fewer slices than rows",
            all(one.slices <= one.rows for one in outcome.points),
            f"{whole(outcome.points[-1].slices)} to {whole(outcome.points[0].slices)} slices, "
            f"{whole(min(one.rows for one in outcome.points))} to {whole(max(one.rows for one in outcome.points))} rows",
        ),
    ]
