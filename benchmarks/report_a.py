"""The page of workload A: times, ratios and aggregations of the five strategies, beside the paper's.

In: a `WorkloadA`. Out: a `Report`. Convention: `*` marks a time that was multiplied from fewer queries.
"""

from __future__ import annotations

from dataclasses import asdict

from benchmarks.counting import PAPER, PAPER_QUERIES, SETS, SPAN, mean_counted, most_final
from benchmarks.report import Claim, Report, seconds, table, times, whole
from benchmarks.workload_a import PLAIN, SHARED, STRATEGIES, UNSHARED, Work, WorkloadA
from muntin.spark.generator import ROWS
from muntin.timeline import END

PAIRED = "shared paired"
#: Done-when 5 of the issue: how many times less than as many plain queries the shared ones take.
LEAST_GAIN = 200


def report(outcome: WorkloadA) -> Report:
    return Report(
        name="workload-a",
        title=f"Workload A: {max(outcome.setup.queries)} windows over one hour of trades",
        claims=claims(outcome),
        body=[
            method(outcome),
            "## Times",
            times_table(outcome),
            ratios_table(outcome),
            once_table(outcome),
            "## Aggregations",
            work_table(outcome),
            *paper(outcome),
        ],
        raw=asdict(outcome),
    )


def claims(outcome: WorkloadA) -> list[Claim]:
    most, one = max(outcome.setup.queries), outcome.one_plain
    shared, plain = outcome.seconds(PAIRED, most), outcome.seconds(PLAIN, most)
    slices = {(work.strategy, work.queries): work.counted.slices for work in outcome.work}
    pairs = [(slices[PAIRED, queries], slices["shared paned", queries]) for queries in outcome.setup.queries]
    return [
        Claim(
            f"{most} queries shared take no longer than one plain Spark query", shared <= one, f"{seconds(shared)} against {seconds(one)}"
        ),
        Claim(f"at least {LEAST_GAIN} times less than {most} plain ones", plain >= LEAST_GAIN * shared, f"{times(plain / shared)} less"),
        every_count(outcome),
        Claim(
            "paired never has more slices than paned",
            all(paired <= paned for paired, paned in pairs),
            "; ".join(f"{whole(paired)} ≤ {whole(paned)}" for paired, paned in pairs),
        ),
        Claim(
            "every strategy gives the same answers",
            outcome.rows_compared > 0,
            f"{whole(outcome.rows_compared)} windows compared, then timed",
        ),
    ]


def every_count(outcome: WorkloadA) -> Claim:
    ratios = {queries: outcome.seconds(PAIRED, queries) / outcome.one_plain for queries in outcome.setup.queries}
    figures = ", ".join(f"{queries}: {times(ratio)}" for queries, ratio in ratios.items())
    return Claim("no number of queries shared takes longer than one plain Spark query", max(ratios.values()) <= 1, figures)


def method(outcome: WorkloadA) -> str:
    setup = outcome.setup
    return (
        f"{setup.rows:,} trades, cached in one Spark session; RANGE uniform in 600 to 900 s, SLIDE in 300 to 600 s, `sum(price * vol)`. "
        f"Medians of {setup.rounds} rounds after {setup.warmups} warm-up rounds; in a round every task runs once, in random order. "
        f"Plain Spark is one sliding `window()` job per query, collected with `toArrow()`: {setup.measured} queries are run in every "
        f"round, and one query is the median of these. Unshared strategies run {setup.measured} queries. Times with * are multiplied "
        f"from those. Shared strategies run all queries: `engine.run()`, from the cached rows to the tables of all windows in memory. "
        f"Parsing and checking {max(setup.queries)} queries, once, took {seconds(outcome.adding_seconds)} and is not in the times."
    )


def times_table(outcome: WorkloadA) -> str:
    """Medians, with the fastest and slowest round of the strategies that are not multiplied."""
    names = [PLAIN, *UNSHARED, *SHARED]
    rows = []
    for queries in outcome.setup.queries:
        cells = [str(queries)]
        for name in names:
            one = next(one for one in outcome.timings if (one.strategy, one.queries) == (name, queries))
            cells.append(f"{seconds(one.seconds)}*" if one.scaled else f"{seconds(one.seconds)} ({one.best:.2f}–{one.worst:.2f})")
        rows.append(cells)
    return table(["queries", *names], rows)


def ratios_table(outcome: WorkloadA) -> str:
    rows = []
    for queries in outcome.setup.queries:
        shared = outcome.seconds(PAIRED, queries)
        others = [outcome.seconds(name, queries) / shared for name in (PLAIN, *UNSHARED, "shared paned")]
        rows.append([str(queries), times(shared / outcome.one_plain), *map(times, others)])
    head = ["queries", "shared paired ÷ one plain query", f"{PLAIN} ÷ shared paired"]
    return table([*head, *(f"{name} ÷ shared paired" for name in (*UNSHARED, "shared paned"))], rows)


def once_table(outcome: WorkloadA) -> str:
    """The single runs that the answers were checked with: what multiplied times can be held against."""
    checked = outcome.setup.checked
    rows = [[PLAIN, str(checked), seconds(outcome.once[PLAIN])]]
    rows += [[name, str(checked), seconds(outcome.once[f"{name} {checked}"])] for name in UNSHARED]
    text = "Run once and in full, before the timing, to check the answers (the JVM still warms up in the first of them):"
    return f"{text}\n\n{table(['strategy', 'queries', 'time'], rows)}"


def work_table(outcome: WorkloadA) -> str:
    rows = []
    for one in sorted(outcome.work, key=lambda work: (work.queries, list(STRATEGIES).index(work.strategy))):
        rows.append([str(one.queries), one.strategy, *counts(one)])
    text = "By the paper's definition (partial: rows into slices; final: slices into windows), and combines as assembly performed them, "
    text += "of two partial columns (a sum and a count): running totals and block prefixes make them independent of slices per window.\n\n"
    return text + table(["queries", "strategy", "slices", "partial", "final", "combines performed"], rows, words=2)


def counts(work: Work) -> list[str]:
    return [whole(work.counted.slices), whole(work.counted.partial), whole(work.counted.final), whole(work.performed)]


def paper(outcome: WorkloadA) -> list[str]:
    """Its figures at 256 queries beside ours, averaged over as many sets of queries; only if that is what was run."""
    if outcome.setup.rows != ROWS or PAPER_QUERIES not in outcome.setup.queries:
        return []
    rows = []
    for figure in PAPER:
        ours, closed = (mean_counted(PAPER_QUERIES, *STRATEGIES[figure.strategy], rows=ROWS, upto=upto) for upto in (END, SPAN.end))
        time = f"{figure.seconds} s"
        cells = [
            whole(figure.partial) if figure.partial else "not given",
            whole(ours.partial),
            whole(figure.final),
            whole(ours.final),
            whole(closed.final),
        ]
        rows.append([figure.strategy, time, seconds(outcome.seconds(figure.strategy, PAPER_QUERIES)), *cells])
    head = ["strategy", "paper's time", "ours", "paper's partial", "ours", "paper's final", "ours", "ours, windows that end in the hour"]
    note = (
        f"Averages over {SETS} sets of {PAPER_QUERIES} queries, as the paper's; the times are of the first set, on machines twenty years "
        f"apart. Partial aggregations are equal. Shared final ones are fewer here: the paper does not give its sets, and with windows on "
        f"whole seconds, as here, no slicing can need more than {whole(most_final(PAPER_QUERIES))}, less than its figure for panes."
    )
    return ["## Beside the paper (on-the-fly-sharing-2006, section 6.2)", table(head, rows), note]
