"""`explain`: the shared plan in words and numbers, for somebody who has not read the papers.

In: a stream and its shared plan. Out: text of at most a screen for a dozen queries: what is cut, what is stored, who uses it, what
sharing saves. Convention: numbers come from `cost` and are per second of stream time.
"""

from __future__ import annotations

from muntin.plan.cost import least_rate_to_share, shared_cost, slices_per_second, unshared_cost
from muntin.plan.shared import Grouping, QueryPlan, SharedPlan
from muntin.plan.slices import SliceManager, Slicing
from muntin.query.model import StreamDefinition
from muntin.semantics import TimeWindow
from muntin.timeline import Duration

#: Names listed before the rest is counted.
MOST_NAMES = 4


def explain(stream: StreamDefinition, plan: SharedPlan) -> str:
    lines = [
        f"stream {stream.name}: {counted(len(plan.queries), 'query')} in {counted(len(plan.groupings), 'grouping')}",
        f"  time {stream.time}, slack {stream.slack}; {plan.sharing.value} slices, {plan.slicing.value}",
    ]
    for number, grouping in enumerate(plan.groupings):
        lines += ["", *explain_grouping(number, grouping, plan.in_grouping(number))]
    return "\n".join(lines)


def explain_grouping(number: int, grouping: Grouping, plans: tuple[QueryPlan, ...]) -> list[str]:
    by = ", ".join(map(str, grouping.keys)) or "nothing"
    lines = [f"grouping {number + 1}: by {by}, for {names([plan.query.name for plan in plans])}"]
    lines += [f"  {line}" for line in explain_slices(grouping, [plan.query.window for plan in plans])]
    if grouping.axes:
        told = ", ".join(map(str, grouping.axes[:MOST_NAMES]))
        rest = f" and {len(grouping.axes) - MOST_NAMES} more" if len(grouping.axes) > MOST_NAMES else ""
        lines.append(f"  predicates told apart by cells, one search a row for each of: {told}{rest}")
    users: dict[int, list[str]] = {}
    for plan in plans:
        for used in {grouping.source(column, plan.query.where) for column in plan.columns} - {None}:
            users.setdefault(used or 0, []).append(plan.query.name)
    width = max(len(str(column)) for column in grouping.columns)
    lines.append("  partial columns, stored once each:")
    for at, column in enumerate(grouping.columns):
        everybody = len(users[at]) == len(plans) > 1
        lines.append(f"    {column!s:<{width}}  used by {'all' if everybody else names(users[at])}")
    return lines


def explain_slices(grouping: Grouping, windows: list[TimeWindow]) -> list[str]:
    """How time is cut, and what that costs against every query for itself."""
    slices = grouping.slice_manager()
    rate = slices_per_second(slices)
    paned = slices_per_second(SliceManager(windows, Slicing.PANED))
    alone, shared = unshared_cost(windows, rate=1), shared_cost(windows, rate=1, slices=rate)
    lines = [f"slices: {rate * 60:.4g} a minute (panes: {paned * 60:.4g}), every edge on a tick of {Duration(slices.tick.period)}"]
    if len(windows) == 1:
        return [*lines, f"cost: each row once, {shared.final * 60:.4g} combines a minute"]
    pays = least_rate_to_share(windows, slices=rate)
    lines.append(f"cost shared: each row once, {shared.final * 60:.4g} slices into windows a minute by the paper's count")
    lines.append(f"cost unshared: each row {len(windows)} times, {alone.final * 60:.4g} a minute; sharing pays from {pays:.3g} rows/s")
    return lines


def counted(number: int, noun: str) -> str:
    plural = f"{noun[:-1]}ies" if noun.endswith("y") else f"{noun}s"
    return f"{number:,} {noun if number == 1 else plural}"


def names(all_names: list[str]) -> str:
    shown = ", ".join(all_names[:MOST_NAMES])
    rest = len(all_names) - MOST_NAMES
    return f"{shown} and {rest} more" if rest > 0 else shown
