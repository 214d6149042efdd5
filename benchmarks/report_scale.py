"""The pages of groups, workers and turns: assembly on executors, in figures.

In: a `Curve`, a `SpeedUp`, some `Turned`. Out: `Report`s. Convention: a claim about the planner's choice is about both ends of the curve;
in between, where the two are close, either will do.
"""

from __future__ import annotations

from dataclasses import asdict

from benchmarks.groups import Curve, Grown
from benchmarks.report import Claim, Report, seconds, size, table, times, whole
from benchmarks.touched import Turned
from benchmarks.workers import SpeedUp
from muntin.plan.placing import MANY_GROUPS

MOST_MEMORY = 6 * 2**30
AIM = 1.6
#: Two times that differ by no more are alike.
ALIKE = 1.5


def groups_report(curve: Curve) -> Report:
    return _groups_page(curve, "groups", "Driver or executors: what a batch costs as groups grow", placing_claims(curve))


def million_report(curve: Curve) -> Report:
    title = f"{max(curve.setup.groups):,} groups over {max(curve.setup.windows)} minutes: memory and restart"
    return _groups_page(curve, "million", title, size_claims(curve))


def _groups_page(curve: Curve, name: str, title: str, claims: list[Claim]) -> Report:
    setup = curve.setup
    windows = ", ".join(map(str, setup.windows))
    method = (
        "A streaming job over files, a row of every group each minute, a minute a batch; "
        f"RANGE {windows} min SLIDE 1 min, a query each, count, sum and max per group, to Parquet, with a checkpoint. "
        f"{setup.batches} batches, the first {setup.warmups} not timed; then one more file and a start on the same checkpoint, timed until "
        f"that batch is done. {whole(sum(one.checked for one in curve.found))} result rows were compared with the minutes they stand for."
    )
    rows = [
        [
            one.place,
            whole(one.groups),
            seconds(one.mean),
            seconds(one.median),
            seconds(max(one.seconds)),
            size(one.peak),
            seconds(one.restart),
        ]
        for one in curve.found
    ]
    head = ["assembled", "groups", "a batch, mean", "median", "longest", "memory of all processes", "restart and one batch"]
    return Report(name=name, title=title, claims=claims, body=[method, table(head, rows)], raw=asdict(curve))


def placing_claims(curve: Curve) -> list[Claim]:
    claims = []
    for groups in sorted({min(curve.setup.groups), max(curve.setup.groups)}):
        chosen = "executors" if groups >= MANY_GROUPS else "driver"
        there, other = _at(curve, groups, chosen), _at(curve, groups, "driver" if chosen == "executors" else "executors")
        figures = f"{chosen} {seconds(there.mean)} a batch, {other.place} {seconds(other.mean)}"
        claims.append(Claim(f"with {groups:,} groups the planner's choice is the faster one", there.mean <= other.mean, figures))
    return claims


def _at(curve: Curve, groups: int, place: str) -> Grown:
    return next(one for one in curve.found if (one.groups, one.place) == (groups, place))


def size_claims(curve: Curve) -> list[Claim]:
    largest = max(curve.found, key=lambda one: one.groups)
    text = f"{largest.groups:,} groups run within {size(MOST_MEMORY)} in all processes together"
    return [Claim(text, largest.peak <= MOST_MEMORY, size(largest.peak))]


def workers_report(found: SpeedUp) -> Report:
    setup, first, last = found.setup, found.found[0], found.found[-1]
    method = (
        f"A standalone cluster on this machine, each worker and its Python on one core. {setup.groups:,} groups, a row of each a minute, a "
        f"minute a batch, in {setup.files} files; {setup.queries} queries; results to Parquet. {setup.batches} batches, the first "
        f"{setup.warmups} not timed."
    )
    rows = [[str(one.workers), seconds(one.median), seconds(min(one.seconds)), times(first.median / one.median)] for one in found.found]
    claim = Claim(
        f"{last.workers} workers are {AIM} times as fast as {first.workers}",
        first.median >= AIM * last.median,
        times(first.median / last.median),
    )
    body = [method, table(["workers", "a batch, median", "best", "speed-up"], rows)]
    return Report(name="workers", title="Two workers against one", claims=[claim], body=body, raw=asdict(found))


def touched_report(found: list[Turned]) -> Report:
    least, most, numbers = found[0], found[-1], list(found[0].absorbing)
    few, many = min(numbers), max(numbers)
    method = (
        "What an instance does in a turn, in one process: take its state up from its folder, absorb partials or close a window, leave it "
        "there. count, sum and max per group, a full window; processor time, medians. Groups that a batch touches are spread evenly over "
        "those alive: where these are many, each is on a page of its own, which has to be mapped."
    )
    rows = [
        [whole(one.alive), *(milliseconds(one.absorbing[number]) for number in numbers), milliseconds(one.closing), nanoseconds(one)]
        for one in found
    ]
    claims = [
        Claim(
            f"absorbing a batch that touches {many:,} groups does not depend on the groups alive",
            most.absorbing[many] <= ALIKE * least.absorbing[many],
            f"{milliseconds(least.absorbing[many])} with {least.alive:,} alive, {milliseconds(most.absorbing[many])} with {most.alive:,}",
        ),
        Claim(
            "absorbing grows no faster than the groups touched",
            all(one.absorbing[many] <= ALIKE * one.absorbing[few] * many / few for one in found),
            f"{times(most.absorbing[many] / most.absorbing[few])} the time for {times(many / few)} the groups",
        ),
        Claim(
            "closing grows no faster than the groups alive",
            most.closing <= ALIKE * least.closing * most.alive / least.alive,
            f"{times(most.closing / least.closing)} the time for {times(most.alive / least.alive)} the groups",
        ),
    ]
    head = ["groups alive", *(f"absorb {number:,}" for number in numbers), "close a window", "per group"]
    title = "A turn of an instance: groups touched, groups alive"
    return Report(name="touched", title=title, claims=claims, body=[method, table(head, rows)], raw=[asdict(one) for one in found])


def milliseconds(value: float) -> str:
    return f"{value * 1e3:.1f} ms"


def nanoseconds(one: Turned) -> str:
    return f"{one.closing * 1e9 / one.alive:.0f} ns"
