"""The page of `queries`: time against the number of queries, parsing and planning apart, and what Spark compiled.

In: a `Growth`. Out: a `Report`.
"""

from __future__ import annotations

from dataclasses import asdict

from benchmarks.compiling import Compilations
from benchmarks.many_queries import KINDS, Growth, Kind
from benchmarks.report import Claim, Report, seconds, table, times, whole


def report(outcome: Growth) -> Report:
    return Report(
        name="queries",
        title=f"From 1 to {max(outcome.setup.counts):,} queries over {outcome.setup.rows:,} rows",
        claims=[*(growth_claim(outcome, kind) for kind in KINDS), *compiled_claims(outcome), answers_claim(outcome)],
        body=[method(outcome), "## Times", times_table(outcome), "## Generated code", compiled_table(outcome.compiled)],
        raw=asdict(outcome),
    )


def growth_claim(outcome: Growth, kind: Kind) -> Claim:
    fewest, most = outcome.of(kind.name)[0], outcome.of(kind.name)[-1]
    text = f"{most.queries:,} queries ({kind.name}) take at most {kind.allowed} times as long as {fewest.queries}"
    figures = f"{times(outcome.growth(kind.name))}, {seconds(most.seconds)} against {seconds(fewest.seconds)}"
    return Claim(text, outcome.growth(kind.name) <= kind.allowed, figures)


def compiled_claims(outcome: Growth) -> list[Claim]:
    too_long = [line for one in outcome.compiled for line in one.too_long]
    settled = {one.case.workload: one.settled for one in outcome.compiled}
    batches = outcome.setup.batches
    return [
        Claim("no generated method is too long for the JVM to compile", not too_long, "; ".join(too_long) or "none above 8,000 bytes"),
        Claim(
            "a moving slice edge compiles nothing anew",
            not any(settled.values()),
            f"in the last {batches - batches // 2} of {batches} micro-batches " + ", ".join(f"{name}: {n}" for name, n in settled.items()),
        ),
    ]


def answers_claim(outcome: Growth) -> Claim:
    figures = f"{whole(outcome.rows_compared)} windows compared with plain Spark and with the same query among others"
    return Claim("answers do not depend on the number of queries", outcome.rows_compared > 0, figures)


def method(outcome: Growth) -> str:
    setup = outcome.setup
    return (
        f"{setup.rows:,} trades of {setup.seconds:,} seconds, read from Parquet files on disk; the results of all queries go to one "
        f"sink in memory. `windows`: RANGE uniform in 600 to 900 s, SLIDE in 300 to 600 s, no predicate. `predicates`: such windows, "
        f"each query with a predicate of its own over volume, value or change since the last close and membership in one of three "
        f"indexes, joined with two tables. All queries are different. Medians of {setup.rounds} interleaved rounds after "
        f"{setup.warmups} warm-up; parsing and planning are done once, before."
    )


def times_table(outcome: Growth) -> str:
    rows = []
    for kind in KINDS:
        fewest = outcome.of(kind.name)[0]
        for one in outcome.of(kind.name):
            spread = f"{seconds(one.seconds)} ({one.best:.2f}–{one.worst:.2f})"
            cells = [spread, times(one.seconds / fewest.seconds), seconds(one.parsing), seconds(one.planning), whole(one.results)]
            rows.append([kind.name, whole(one.queries), *cells])
    return table(["queries differ in", "queries", "time", "÷ the fewest", "parsing", "planning", "windows"], rows, words=1)


def compiled_table(found: list[Compilations]) -> str:
    rows = [
        [one.case.workload, whole(one.case.queries), " ".join(map(str, one.per_batch)), str(one.settled), str(len(one.too_long))]
        for one in found
    ]
    text = (
        "The same queries as a stream, in a JVM of its own: classes that Spark's code generator compiled in each micro-batch, from "
        "its log. The first batches compile the plan, and the better one chosen from what they showed. A method above 8,000 bytes "
        "would stand in the log too; a job that has one is run afterwards to see that it does."
    )
    head = ["workload", "queries", "compiled in each micro-batch", "in the second half", "methods too long"]
    return f"{text}\n\n{table(head, rows, words=1)}"
