"""The page of Figures 9 and 10 of window-id-2005: latency against accuracy.

In: `Latencies`. Out: a `Report`. Convention: a claim is what the paper says of its figures, held against those made here.
"""

from __future__ import annotations

from dataclasses import asdict
from itertools import pairwise

from benchmarks.latency import BLOCK, BLOCKS, BOUNDED, EXTERNAL, HELD_UP, RATE, Figure, Latencies, Line, way_of
from benchmarks.report import Claim, Report, table
from muntin.query.model import Lateness
from muntin.timeline import SECOND

#: Above the optimal slack the wait "jumps" if it is this many times as long.
JUMP = 5.0


def latency_report(outcome: Latencies) -> Report:
    method = (
        f"The engine's punctuators and assembly over generated streams of {RATE} tuples a second, batch by batch. *Wait*: from the arrival "
        "of the last tuple of an extent to the batch that closed its window, averaged; a result from before the extent was whole has "
        "waited for nothing, and is wrong. *After the end*: from the window's end. The paper does not define its latency; measured as a "
        "wait, it shows what the paper says of its figures. Truth: recomputed from the tuples of each extent."
    )
    bounded = (
        f"`{BOUNDED.select}`, RANGE 64 s SLIDE 6.4 s; {outcome.windows[BOUNDED.name]} windows. Ten sequences, in which {HELD_UP:.0%} of "
        f"the tuples come late, within a bound of 0.32 s in the first to 3.2 s in the last; copies of them follow each other at random, as "
        f"the paper does with traces of a network. Wrong: average error."
    )
    blocks = (
        f"`{BLOCKS.select}`, RANGE 600 s SLIDE 60 s; {outcome.windows[BLOCKS.name]} windows. Tuples of each block of {BLOCK // SECOND} s "
        f"come at random positions of it, the block while the next one is collected. Wrong: share of answers that are not right."
    )
    return Report(
        name="latency",
        title="Figures 9 and 10 of the window-id paper: latency against accuracy",
        claims=[*bounded_claims(outcome), *block_claims(outcome)],
        body=[
            method,
            f"## {BOUNDED.name}",
            bounded,
            lines_table(outcome, BOUNDED),
            f"## {BLOCKS.name}",
            blocks,
            lines_table(outcome, BLOCKS),
        ],
        raw=asdict(outcome),
    )


def lines_table(outcome: Latencies, figure: Figure) -> str:
    rows = [
        [
            line.way,
            "" if line.way == EXTERNAL else f"{line.slack:g} s",
            f"{line.wait:.3f} s",
            f"{line.after_end:.2f} s",
            f"{line.wrong:.5f} %" if figure is BOUNDED else f"{line.wrong:.1f} %",
            str(line.sooner),
            "optimal" if figure is BLOCKS and line is optimal(outcome) else "",
        ]
        for line in outcome.lines[figure.name]
    ]
    return table(["punctuations", "slack", "wait", "after the end", "wrong", "right answers sooner than external", ""], rows)


def bounded_claims(outcome: Latencies) -> list[Claim]:
    outside = outcome.external(BOUNDED)
    consistent, generous = (outcome.slacks(BOUNDED, policy) for policy in (Lateness.CONSISTENT, Lateness.GENEROUS))
    slacks = [*consistent, *generous]
    errors = ", ".join(f"{a.slack:g} s: {a.wrong:.5f} and {b.wrong:.5f} %" for a, b in zip(consistent, generous, strict=True))
    return [
        Claim(
            "Figure 9: external punctuation beats both slacks, in latency and in accuracy",
            all(outside.wait < line.wait and outside.wrong <= line.wrong for line in slacks) and outside.wrong < 1e-9,
            f"waits {outside.wait:.3f} s and is exact; slacks wait {min(line.wait for line in slacks):.3f} s at the least",
        ),
        Claim(
            "Figure 9: with more slack the error falls and the latency grows",
            all(falls_and_grows(lines) for lines in (consistent, generous)),
            ", ".join(f"{line.slack:g} s waits {line.wait:.2f} s" for line in generous),
        ),
        Claim(
            "Figure 9: generous slack is more accurate than consistent slack at the same latency",
            all(b.wrong <= a.wrong for a, b in zip(consistent, generous, strict=True)) and generous[0].wrong < consistent[0].wrong,
            errors,
        ),
    ]


def falls_and_grows(lines: list[Line]) -> bool:
    return all(a.wait < b.wait and a.wrong >= b.wrong for a, b in pairwise(lines)) and lines[-1].wrong < lines[0].wrong


def optimal(outcome: Latencies) -> Line:
    """The slack with the least wait among those that are right most often."""
    slacks = outcome.slacks(BLOCKS, Lateness.CONSISTENT)
    return min(slacks, key=lambda line: (line.wrong, line.wait))


def block_claims(outcome: Latencies) -> list[Claim]:
    outside, best = outcome.external(BLOCKS), optimal(outcome)
    slacks = outcome.slacks(BLOCKS, Lateness.CONSISTENT)
    below, above = ([line for line in slacks if (line.slack < best.slack) is side and line is not best] for side in (True, False))
    exact = [line for line in slacks if line.wrong == 0]
    worst = ", ".join(f"{line.wrong:.0f} %" for line in slacks if line.wrong)
    return [
        Claim(
            "Figure 10: external punctuation is exact, and no slack gives a right answer before it",
            outside.wrong == 0 and not any(line.sooner for line in slacks),
            f"{len(slacks) - len(exact)} of {len(slacks)} slacks give wrong answers, {worst} of the windows",
        ),
        Claim(
            "Figure 10: a slack that is exact waits longer",
            all(line.wait > outside.wait for line in exact),
            f"{outside.wait:.2f} s; " + ", ".join(f"{line.slack:g} s: {line.wait:.2f} s" for line in exact),
        ),
        Claim(
            f"Figure 10: one slack stands out, {BLOCK // SECOND + 1} s: the least that is exact, and no exact one waits less",
            best.slack == BLOCK // SECOND + 1 and all(line.wrong > 0 for line in below),
            f"{way_of(Lateness.CONSISTENT)} {best.slack:g} s: {best.wrong:.1f} % wrong, waits {best.wait:.2f} s",
        ),
        Claim(
            "Figure 10: no slack below it waits longer, and above it the latency jumps",
            max(line.wait for line in below) <= best.wait and max(line.wait for line in above) >= JUMP * best.wait,
            f"below: {min(line.wait for line in below):.2f} to {max(line.wait for line in below):.2f} s; above: "
            + ", ".join(f"{line.slack:g} s: {line.wait:.1f} s" for line in above),
        ),
    ]
