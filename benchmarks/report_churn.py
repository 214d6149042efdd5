"""The page of churn: throughput with and without it, when changes were in effect, and what was compared.

In: a `ChurnOutcome`. Out: a `Report`. Convention: a run's time is from its start to the end of its last batch.
"""

from __future__ import annotations

import statistics
from dataclasses import asdict
from typing import Any

from benchmarks.churn import ChurnOutcome, Mode, Run
from benchmarks.report import Claim, Report, seconds, table, whole

#: How much of the throughput without churn may be lost.
ALLOWED_LOSS = 0.10


def report(outcome: ChurnOutcome) -> Report:
    setup = outcome.setup
    return Report(
        name="churn",
        title=f"Churn: {setup.changes:,} joins and leaves over {setup.queries} standing queries",
        claims=[*throughput_claims(outcome), *change_claims(outcome), answers_claim(outcome)],
        body=[method(outcome), "## Runs", runs_table(outcome)],
        raw=raw(outcome),
    )


def rate(outcome: ChurnOutcome, mode: Mode) -> float:
    """Rows per second, by the median run."""
    return outcome.setup.rows / statistics.median(run.seconds for run in outcome.runs[mode])


def change_seconds(outcome: ChurnOutcome) -> float:
    """How much longer a run takes for each change, by the median runs."""
    return (outcome.setup.rows / rate(outcome, Mode.CHURNING) - outcome.setup.rows / rate(outcome, Mode.STEADY)) / outcome.setup.changes


def throughput_claims(outcome: ChurnOutcome) -> list[Claim]:
    """The run without churn is read both ways: the standing queries alone, and as many queries as there are with churn."""
    churning, change = rate(outcome, Mode.CHURNING), change_seconds(outcome) * 1e3
    compared = {
        f"the {outcome.setup.queries} standing queries alone": (Mode.ALONE, ""),
        "as many queries that stay": (Mode.STEADY, f"; a change costs {change:.1f} ms"),
    }
    return [
        Claim(
            f"throughput is within {ALLOWED_LOSS:.0%} of that of {whom}",
            churning >= (1 - ALLOWED_LOSS) * rate(outcome, mode),
            f"{whole(churning)} against {whole(rate(outcome, mode))} rows/s, {churning / rate(outcome, mode) - 1:+.1%}{more}",
        )
        for whom, (mode, more) in compared.items()
    ]


def change_claims(outcome: ChurnOutcome) -> list[Claim]:
    wanted = 2 * (outcome.setup.changes // 2)
    made = [run.in_effect for run in outcome.runs[Mode.CHURNING]]
    waited = [wait for run in outcome.runs[Mode.CHURNING] for wait in run.waited()]
    asked = [one.seconds for run in outcome.runs[Mode.CHURNING] for one in run.applied]
    return [
        Claim("every change is made during the run", min(made) == wanted, f"{whole(min(made))} of {whole(wanted)}"),
        Claim(
            "a change is in effect within one micro-batch",
            max(waited) == 0,
            f"from the batch after the one in hand: {sum(1 for wait in waited if wait == 0):,} of {len(waited):,}; "
            f"asking took {statistics.median(asked) * 1000:.0f} ms, the batch in hand included, {max(asked) * 1000:.0f} ms at the most",
        ),
    ]


def answers_claim(outcome: ChurnOutcome) -> Claim:
    figures = f"{whole(outcome.rows_compared)} windows of {outcome.queries_compared} queries compared with plain Spark"
    return Claim("answers are those of each query alone, from its join to its leave", outcome.rows_compared > 0, figures)


def method(outcome: ChurnOutcome) -> str:
    setup = outcome.setup
    return (
        f"A streaming job on a checkpoint over {setup.rows:,} trades in {setup.batches} files, one a micro-batch, joined with two tables. "
        f"{setup.queries} queries of workload C regular are there from the start. With churn, {setup.changes // 2} visitors join by "
        f"`engine.add` and leave by `engine.drop` {setup.stay} batches later, each with a window (RANGE 60 to 120 s, SLIDE 30 to 60 s) and "
        f"a predicate of its own, {setup.changes / setup.batches:.1f} changes a batch. Without churn, the first {setup.at_a_time} of them, "
        f"as many as are there at a time, are there from the start and stay; the standing queries alone are run too. Another run checks "
        f"the answers. Times are medians over {setup.processes} processes: what the JVM's compiler makes of the same code differs between "
        f"them by as much as churn costs. In each process every kind runs once to warm up, then in turns, {setup.rounds} of each. What a "
        "change costs does not depend on the rows of a batch: with as many changes in batches half as long, twice as much of the "
        "throughput is lost."
    )


def runs_table(outcome: ChurnOutcome) -> str:
    rows = []
    for mode, runs in outcome.runs.items():
        for number, run in enumerate(runs):
            process = number // outcome.setup.rounds + 1
            speed = whole(outcome.setup.rows / run.seconds)
            rows.append([mode.value, str(process), seconds(run.seconds), speed, str(max(run.queries)), str(run.in_effect)])
    return table(["", "process", "time", "rows/s", "queries at the most", "changes"], rows)


def raw(outcome: ChurnOutcome) -> dict[str, Any]:
    return {
        "setup": asdict(outcome.setup),
        "rows_compared": outcome.rows_compared,
        "queries_compared": outcome.queries_compared,
        **{mode.name.lower(): list(map(raw_run, runs)) for mode, runs in outcome.runs.items()},
    }


def raw_run(run: Run) -> dict[str, Any]:
    kept = {"seconds": run.seconds, "ended": run.ended, "queries": run.queries, "in_effect": run.in_effect}
    return kept | {"waited": run.waited(), "asked": [one.seconds for one in run.applied]}
