"""The pages of long windows and of restarts.

In: `SteadyState`s, a `RestartCurve`. Out: `Report`s. Convention: "does not grow" means at most half as much again over a RANGE
24 times as long, which leaves room for the noise of the machine and the cache, and none for a cost proportional to RANGE.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

from benchmarks.long_windows import SteadyState, growth
from benchmarks.report import Claim, Report, seconds, size, table, whole
from benchmarks.restart import RestartCurve, page_of
from muntin.spark.slicelog import SMALLEST_SNAPSHOT

MOST_RESTART_SECONDS = 20.0

#: The most that a cost may be multiplied by from the shortest to the longest RANGE and still be called the same.
SAME = 1.5

TIME_NOTE = """\
The longest slides are those in which a full matrix is moved, or the suffixes of a complete block are built: each once in half to a whole
RANGE. They grow with RANGE, and the mean has its share of them; the median has none."""
MEMORY_NOTE = """\
Cells are 8 bytes per lane, slice and group. Reserved: a matrix that is full grows by half. Blocks: suffixes of the blocks that windows
start in, for floating sums and extrema only. Process: how much the resident memory grew."""


def long_report(found: Sequence[SteadyState]) -> Report:
    first, compared = found[0].case, sum(one.checked for one in found)
    method = (
        f"{first.groups:,} groups, SLIDE 1 minute, rows in order, all groups in every minute. Assembly alone, in a process of its own per "
        f"line, fed with one minute of partials a step: the window is filled, checked, slid on {first.slides:,} times, each slide giving "
        f"{first.groups:,} result rows as an Arrow table, and checked again ({whole(compared)} rows compared)."
    )
    return Report(
        name="long-windows",
        title="Long windows: what a slide costs as RANGE grows",
        claims=long_claims(found),
        body=[method, "## Time", time_table(found), TIME_NOTE, "## Memory", memory_table(found), MEMORY_NOTE],
        raw=[asdict(one) for one in found],
    )


def long_claims(found: Sequence[SteadyState]) -> list[Claim]:
    selects = list(dict.fromkeys(one.case.select for one in found))
    grown = {select: growth(found, select) for select in selects}
    heads = {select: [one.overhead for one in found if one.case.select == select] for select in selects}
    longest, shortest = max(one.case.hours for one in found), min(one.case.hours for one in found)
    return [
        Claim(
            f"time per slide and group does not grow from RANGE {shortest} h to {longest} h",
            max(grown.values()) <= SAME,
            ", ".join(f"{select} {factor:.2f} ×" for select, factor in grown.items()),
        ),
        Claim(
            "memory is proportional to slices × groups",
            all(max(some) <= SAME * min(some) for some in heads.values()),
            "times 8 bytes per lane, slice and group: "
            + ", ".join(f"{select} {min(some):.1f} to {max(some):.1f}" for select, some in heads.items()),
        ),
    ]


def time_table(found: Sequence[SteadyState]) -> str:
    rows = [
        [
            one.case.select,
            f"{one.case.hours} h",
            f"{one.nanoseconds_per_group:,.0f} ns",
            f"{one.cpu * 1e3:.2f} ms",
            f"{one.mean * 1e3:.2f} ms",
            f"{one.median * 1e3:.2f} ms",
            f"{one.longest * 1e3:.1f} ms",
            f"{one.combines:.2f}",
        ]
        for one in found
    ]
    return table(
        [
            "select",
            "RANGE",
            "CPU per slide and group",
            "CPU per slide",
            "time per slide, mean",
            "median",
            "longest",
            "combines per slide and group",
        ],
        rows,
        words=2,
    )


def memory_table(found: Sequence[SteadyState]) -> str:
    rows = [
        [
            one.case.select,
            f"{one.case.hours} h",
            whole(one.slices),
            str(one.lanes),
            size(one.cells),
            size(one.reserved),
            size(one.blocks),
            f"{one.bytes_per_cell:.0f} B",
            f"{one.overhead:.2f} ×",
            f"{size(one.process)} (peak {size(one.peak)})",
        ]
        for one in found
    ]
    head = ["select", "RANGE", "slices", "lanes", "cells", "reserved", "blocks", "per slice and group", "÷ 8 B per lane", "process"]
    return table(head, rows, words=2)


def restart_report(curve: RestartCurve) -> Report:
    setup = curve.setup
    method = (
        f"A streaming job over files, one minute of {setup.groups} groups a batch, RANGE {setup.minutes} min SLIDE 1 min, count, sum and "
        f"max per group, assembly: {setup.assembly}, with a checkpoint; stopped and started again {setup.restarts} times, each time "
        f"with one new file. All {whole(curve.checked)} result rows were compared with the minutes they stand for. Bytes read are those "
        f"that Python processes read until the new file's results were there."
    )
    rows = [
        [
            str(one.batch),
            size(one.read),
            size(one.needed),
            size(curve.kept[one.batch - 1].logged),
            str(curve.kept[one.batch - 1].entries),
            f"{one.seconds * 1e3:.0f} ms",
            seconds(one.first),
        ]
        for one in curve.restarts
    ]
    return Report(
        name=page_of(setup),
        title=f"Restart: what is read after {setup.batches} batches, assembly: {setup.assembly}",
        claims=restart_claims(curve),
        body=[
            method,
            table(
                [
                    "after batch",
                    "read at restart",
                    "the windows' state",
                    "all entries ever logged",
                    "entries kept",
                    "start",
                    "first result",
                ],
                rows,
            ),
        ],
        raw=asdict(curve),
    )


def restart_claims(curve: RestartCurve) -> list[Claim]:
    setup, last, most = curve.setup, curve.restarts[-1], max(one.read for one in curve.restarts)
    kept, bound = max(one.log + one.snapshot for one in curve.kept), most_to_read(curve)
    read = (
        f"{size(last.read)} at the end, {size(most)} at the most, of {size(curve.kept[-1].logged)} logged; the state is {size(last.needed)}"
    )
    return [
        Claim("a restart reads what the windows need, not the history", most <= bound, read),
        Claim(
            f"the first new result comes within {MOST_RESTART_SECONDS:.0f} s",
            max(one.first for one in curve.restarts) <= MOST_RESTART_SECONDS,
            f"{seconds(max(one.first for one in curve.restarts))} at most, with {whole(setup.groups * setup.minutes)} partials of state",
        ),
        Claim(
            "the log and its snapshot stay as short as the windows need", kept <= bound, f"{size(kept)} at the most, {size(bound)} allowed"
        ),
    ]


def most_to_read(curve: RestartCurve) -> float:
    """A snapshot of the state, entries of at most the same size again or of the smallest log worth a snapshot, and the latest entry."""
    state = max(one.needed for one in curve.restarts)
    entry = curve.kept[-1].logged / len(curve.kept)
    return 1.05 * state + max(1.05 * state, SMALLEST_SNAPSHOT) + 2 * entry
