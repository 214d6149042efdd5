"""The pages of windows that count tuples: slide-by-tuple, and tuple-based.

In: a `BySlide`, a `Counted`. Out: `Report`s. Convention: "grows at most logarithmically" means that the time, as a multiple of that of the
shortest RANGE, is at most the logarithm of the tuples per window as a multiple of that of the shortest.
"""

from __future__ import annotations

from dataclasses import asdict

from benchmarks import slide_by_tuple, tuple_windows
from benchmarks.report import Claim, Report, seconds, table, times, whole
from benchmarks.slide_by_tuple import BySlide
from benchmarks.ticks import APART
from benchmarks.tuple_windows import Counted


def slide_report(outcome: BySlide) -> Report:
    setup = outcome.setup
    method = (
        f"{setup.rows:,} tuples, {APART} µs apart, each with a time of its own, in Parquet files of {setup.file:,}, two files a "
        f"micro-batch, slack 5 s. `count(*), sum(vol), max(vol)` at every tuple over the last RANGE of time, written as Parquet, a part "
        f"per micro-batch: as many results as tuples. Out of order: {setup.percent} % of the tuples come up to 4 s late. Compared with: "
        f"the same job with the shortest RANGE, and in order. Medians of {setup.rounds} interleaved rounds after {setup.warmups} to warm "
        f"up; a time is that of the whole streaming job, from its start to the end of the input. All counts and sums and some of the "
        f"maxima were recomputed from the tuples first."
    )
    return Report(
        name="slide-by-tuple",
        title=f"Slide by tuple: a result for each of {setup.rows:,} tuples, from files to Parquet",
        claims=slide_claims(outcome),
        body=[method, slide_table(outcome)],
        raw=asdict(outcome),
    )


def slide_claims(outcome: BySlide) -> list[Claim]:
    main, disordered, rows = outcome.main, outcome.disordered, outcome.setup.rows
    grown = {point.case.name: outcome.growth(point) for point in outcome.ordered[1:]}
    late = disordered.seconds / main.seconds
    return [
        Claim(
            f"at least {slide_by_tuple.TARGET:,} tuples a second with {main.case.name}",
            rows / main.seconds >= slide_by_tuple.TARGET,
            f"{whole(rows / main.seconds)} a second, {seconds(main.seconds)} ({main.best:.2f}–{main.worst:.2f})",
        ),
        Claim(
            "time per tuple grows at most with the logarithm of the tuples per window",
            all(time <= allowed for time, allowed in grown.values()),
            ", ".join(f"{name}: {times(time)} of {times(allowed)} allowed" for name, (time, allowed) in grown.items()),
        ),
        Claim(
            f"{outcome.setup.percent} % out of order take at most {slide_by_tuple.DISORDERED} times as long",
            late <= slide_by_tuple.DISORDERED,
            f"{times(late)}, {seconds(disordered.seconds)} against {seconds(main.seconds)}",
        ),
        Claim(
            "every window's answer is that of its tuples", outcome.compared > 0, f"{whole(outcome.compared)} windows compared, then timed"
        ),
    ]


def slide_table(outcome: BySlide) -> str:
    rows = []
    for point in outcome.points:
        took = f"{seconds(point.seconds)} ({point.best:.2f}–{point.worst:.2f})"
        each = point.seconds / outcome.setup.rows
        growth = times(point.seconds / outcome.ordered[0].seconds)
        rows.append([point.case.name, whole(point.case.tuples), took, whole(1 / each), f"{each * 1e9:,.0f} ns", growth])
    return table(["window", "tuples per window", "time", "tuples/s", "per tuple", "÷ the shortest"], rows)


def counted_report(outcome: Counted) -> Report:
    setup = outcome.setup
    method = (
        f"{setup.rows:,} tuples in Parquet files of {setup.file:,}. Windows are `RANGE m rows SLIDE n rows`, all different, RANGE from "
        f"4,000 rows on, SLIDE 1,000 to 10,000, multiples of 100; `count(*), sum(vol), max(vol)` of each; the results of all go to one "
        f"sink in memory. Compared with: the same run with the fewest windows. Medians of {setup.rounds} interleaved rounds after "
        f"{setup.warmups} to warm up; a time is `engine.run()`. Of {setup.checked} queries all windows were recomputed from the tuples "
        f"first."
    )
    rows = [
        [
            whole(one.windows),
            f"{seconds(one.seconds)} ({one.best:.2f}–{one.worst:.2f})",
            whole(setup.rows / one.seconds),
            times(one.seconds / outcome.points[0].seconds),
        ]
        for one in outcome.points
    ]
    most, fewest = outcome.points[-1], outcome.points[0]
    return Report(
        name="tuple-windows",
        title=f"Tuple-based windows: {most.windows} shared against {fewest.windows}",
        claims=[
            Claim(
                f"{most.windows} windows take at most {tuple_windows.ALLOWED} times as long as {fewest.windows}",
                outcome.growth <= tuple_windows.ALLOWED,
                f"{times(outcome.growth)}, {seconds(most.seconds)} against {seconds(fewest.seconds)}",
            ),
            Claim("every window's answer is that of its tuples", outcome.compared > 0, f"{whole(outcome.compared)} windows compared"),
        ],
        body=[method, table(["windows", "time", "tuples/s", "÷ the fewest"], rows, words=0)],
        raw=asdict(outcome),
    )
