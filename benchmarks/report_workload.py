"""The page of a workload: times, ratios and aggregations of all strategies, plain Spark's and the paper's beside them.

In: a `Workload` and its `Outcome`. Out: a `Report`. Convention: `*` marks a time that was multiplied from fewer queries.
"""

from __future__ import annotations

from dataclasses import asdict

from benchmarks.outcome import Outcome, Timing
from benchmarks.report import Report, seconds, table, times, whole
from benchmarks.targets import beside_the_paper, claims
from benchmarks.workloads import PLAIN, SELDOM, Form, Workload

WHAT_FORMS_ARE = {
    Form.CONDITIONAL: "`conditional sums`: grouped by window, a conditional sum for each query",
    Form.EXPLODED: "`one explode`: each row once for every query it satisfies and every window it is in, grouped by query and window",
    Form.BY_SECONDS: "`by seconds`: conditional sums for each second, then windows from seconds: panes, written by hand for these queries",
}


def report(workload: Workload, outcome: Outcome) -> Report:
    return Report(
        name=workload.name,
        title=workload.title.format(queries=outcome.most),
        claims=claims(workload, outcome),
        body=[
            method(workload, outcome),
            "## Times",
            times_table(workload, outcome),
            ratios_table(workload, outcome),
            once_table(workload, outcome),
            "## Aggregations",
            work_table(workload, outcome),
            *beside_the_paper(workload, outcome),
        ],
        raw=asdict(outcome),
    )


def names_of(workload: Workload) -> list[str]:
    """Every column of the times: plain Spark, its single jobs, then Muntin's strategies."""
    return [PLAIN, *(form.value for form in workload.forms), *(strategy.name for strategy in workload.strategies)]


def method(workload: Workload, outcome: Outcome) -> str:
    setup, measured = outcome.setup, min(outcome.setup.measured, outcome.most)
    parts = [
        f"{setup.rows:,} trades, cached in one Spark session; {workload.differing}.",
        f"Medians of {setup.rounds} rounds after {setup.warmups} warm-up rounds; in a round every task runs once, in random order.",
        f"Plain Spark is one sliding `window()` job per query, collected with `toArrow()`: {measured} queries, spread evenly over",
        "all, are run in every round, and one query is the median of these.",
        f"Strategies without any sharing run the same {measured} queries. Times with * are multiplied from those.",
        "The others run all queries: `engine.run()`, from the cached rows to the tables of all windows in memory.",
        f"Parsing and checking {outcome.most} queries, once, took {seconds(outcome.adding_seconds)} at the most and is not in the times.",
    ]
    if workload.forms:
        seldom = [*(form.value for form in workload.forms), *(strategy.name for strategy in workload.whole if strategy.every > 1)]
        parts += [
            f"What takes long is timed in every {SELDOM}rd round only: {', '.join(seldom)}.",
            "The static tables are cached as well; every job of either side joins them, by broadcast, while it is timed.",
            "What a careful user writes in plain Spark is one job for all queries.",
            "; ".join(WHAT_FORMS_ARE[form] for form in workload.forms) + ".",
        ]
    return " ".join(parts)


def times_table(workload: Workload, outcome: Outcome) -> str:
    """Medians, with the fastest and slowest round of the strategies that are not multiplied."""
    names = names_of(workload)
    rows = [[str(queries), *(cell(outcome.timing(name, queries)) for name in names)] for queries in outcome.setup.queries]
    return table(["queries", *names], rows)


def cell(one: Timing) -> str:
    return f"{seconds(one.seconds)}*" if one.scaled else f"{seconds(one.seconds)} ({one.best:.2f}–{one.worst:.2f})"


def ratios_table(workload: Workload, outcome: Outcome) -> str:
    main = workload.main
    others = [name for name in names_of(workload) if name != main]
    rows = []
    for queries in outcome.setup.queries:
        took = outcome.seconds(main, queries)
        rows.append([str(queries), times(took / outcome.one_plain), *(times(outcome.seconds(name, queries) / took) for name in others)])
    return table(["queries", f"{main} ÷ one plain query", *(f"{name} ÷ {main}" for name in others)], rows)


def once_table(workload: Workload, outcome: Outcome) -> str:
    """The single runs that the answers were checked with: what multiplied times can be held against."""
    checked = min(outcome.setup.checked, outcome.most)
    names = {PLAIN: PLAIN} | {strategy.name: f"{strategy.name} {checked}" for strategy in workload.sampled}
    rows = [[name, str(checked), seconds(outcome.once[key])] for name, key in names.items()]
    text = "Run once and in full, before the timing, to check the answers (the JVM still warms up in the first of them):"
    return f"{text}\n\n{table(['strategy', 'queries', 'time'], rows)}"


def work_table(workload: Workload, outcome: Outcome) -> str:
    order = [strategy.name for strategy in workload.strategies]
    found = sorted(outcome.work, key=lambda one: (one.queries, order.index(one.strategy)))
    rows = [
        [str(one.queries), one.strategy, *map(whole, (one.counted.slices, one.counted.partial, one.counted.final, one.performed))]
        for one in found
    ]
    text = (
        "By the paper's definition (partial: rows into slices or shards; final: shards into queries, slices into windows) of what each "
        "strategy did, and combines as assembly performed them, of two partial columns (a sum and a count): running totals and block "
        "prefixes make them independent of slices per window."
    )
    return f"{text}\n\n{table(['queries', 'strategy', 'slices', 'partial', 'final', 'combines performed'], rows, words=2)}"
