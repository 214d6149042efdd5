"""`explain`: the shared plan in words and numbers, for somebody who has not read the papers.

In: a stream, its shared plan, and the load it was chosen for. Out: text of at most a screen for a dozen queries: what is cut, what is
stored, who uses it, why it was chosen, what sharing saves. Convention: slices are per minute of stream time, costs are milliseconds per
batch as `divide` estimates them.
"""

from __future__ import annotations

from collections.abc import Sequence

from muntin.plan.cost import least_rate_to_share, shared_cost, slices_per_second, unshared_cost
from muntin.plan.divide import FIRST_LOAD, Load, Sharing, choices
from muntin.plan.family import Family
from muntin.plan.placing import Placing
from muntin.plan.shared import Grouping, PartialColumn, QueryPlan, SharedPlan
from muntin.plan.slices import SliceManager, Slicing
from muntin.query.model import StreamDefinition
from muntin.semantics import TIME, Context, SlidingWindow, Window, context_of, state_of
from muntin.timeline import Duration

#: Names listed before the rest is counted.
MOST_NAMES = 4


def explain(stream: StreamDefinition, plan: SharedPlan, load: Load = FIRST_LOAD, placing: Placing | None = None) -> str:
    queries, groupings = counted(len(plan.queries), "query"), counted(len(plan.groupings), "grouping")
    known = "guessed, before any batch" if load is FIRST_LOAD else "observed in the latest batch"
    kind = f"{plan.slicing.value} slices; sharing {plan.sharing.value}, for {load.rows:,} rows a batch ({known})"
    lines = [
        f"stream {stream.name}: {queries} in {groupings}, the source read once",
        f"  time {stream.time}, {', '.join(stream.disorder.described(stream.slack))}; {kind}",
    ]
    for number, grouping in enumerate(plan.groupings):
        lines += ["", *explain_grouping(number, plan, load)]
        lines += [f"  {placing.reason(grouping.family)}"] if placing else []
    return "\n".join(lines)


def explain_grouping(number: int, plan: SharedPlan, load: Load) -> list[str]:
    grouping, plans = plan.groupings[number], plan.in_grouping(number)
    lines = [f"grouping {number + 1}: {grouping.family}, for {names([plan.query.name for plan in plans])}"]
    lines += [f"  {line}" for line in explain_windows([plan.query.window for plan in plans])]
    lines += [f"  {line}" for line in explain_slices(grouping, [plan.query.window for plan in plans])]
    lines += [f"  {line}" for line in explain_emission(plans)]
    lines += [f"  {line}" for line in explain_predicates(grouping, plans, plan, load)]
    coarser: dict[Family, list[str]] = {}
    for one in plans:
        if one.family != grouping.family:
            coarser.setdefault(one.family, []).append(one.query.name)
    lines += [f"  rolled up from the same partials: {family}, for {names(members)}" for family, members in coarser.items()]
    return lines + [f"  {line}" for line in explain_columns(grouping, plans)]


def explain_predicates(grouping: Grouping, plans: Sequence[QueryPlan], whole: SharedPlan, load: Load) -> list[str]:
    """How predicates are told apart, and what the other ways would cost: for all queries that might have been in one grouping."""
    distinct = len({plan.query.where for plan in plans} - {None})
    if not distinct:
        return []
    count = counted(distinct, "predicate")
    if grouping.by_cell:
        told = ", ".join(map(str, grouping.axes[:MOST_NAMES]))
        rest = f" and {len(grouping.axes) - MOST_NAMES} more" if len(grouping.axes) > MOST_NAMES else ""
        lines = [f"{count}: a row is searched once on each of {told}{rest}; the predicates are evaluated per cell, not per row"]
    else:
        lines = [f"{count}: each evaluated on every row, with partial columns of its own"]
    if whole.sharing is not Sharing.AUTOMATIC:
        return [*lines, f"why: the strategy {whole.sharing.value} was asked for"]
    kin = [plan.query for plan in whole.queries if plan.family == grouping.family]
    ways = choices(kin, load, spread=grouping.family.spread)
    apart = sum(one.family == grouping.family for one in whole.groupings)
    members = "these queries" if apart == 1 else f"the {counted(len(kin), 'query')} of the {apart} groupings {grouping.family}"
    return [*lines, "why: " + ", ".join(f"{way.name} {duration(way.nanoseconds)}" for way in ways) + f" a batch for {members}"]


def explain_columns(grouping: Grouping, plans: Sequence[QueryPlan]) -> list[str]:
    """Partial columns by who uses them."""
    users: dict[PartialColumn, list[str]] = {column: [] for column in grouping.columns}
    for plan in plans:
        for used in {grouping.source(column, plan.query.where) for column in plan.columns}:
            if used is not None:
                users[grouping.columns[used]].append(plan.query.name)
    together: dict[tuple[str, ...], list[str]] = {}
    for column, used_by in users.items():
        together.setdefault(tuple(used_by), []).append(str(column))
    lines = ["partial columns, stored once each:"]
    for everyone, columns in together.items():
        used_by_all = len(everyone) == len(plans) > 1
        lines.append(f"  {names(columns, ' · ')}  used by {'all' if used_by_all else names(everyone)}")
    return lines


def explain_windows(windows: Sequence[Window]) -> list[str]:
    """The classes of the windows (window-id-2005, section 4), each with the state that the longest window of it needs."""
    classes: dict[Context, set[Window]] = {}
    for window in windows:
        classes.setdefault(context_of(window), set()).add(window)
    return [
        f"{counted(len(some), 'window')} {context.value} ({context.name}), holding {state_of(max(some, key=lambda one: one.reach))}"
        for context, some in classes.items()
    ]


def explain_emission(plans: Sequence[QueryPlan]) -> list[str]:
    """Who gives early results and who corrects what was emitted, and what that takes."""
    early: dict[Duration, list[str]] = {}
    corrected: dict[str, list[str]] = {}
    for query in (plan.query for plan in plans):
        if query.emit_every is not None:
            early.setdefault(query.emit_every, []).append(query.name)
        if query.is_corrected:
            corrected.setdefault(query.window.measure.text(query.late.horizon), []).append(query.name)
    lines = [f"early results every {every} on the clock, for {names(some)}: one more column" for every, some in early.items()]
    return lines + [f"corrected for {length} after they closed, state kept as long: {names(some)}" for length, some in corrected.items()]


def explain_slices(grouping: Grouping, windows: Sequence[Window]) -> list[str]:
    """How the attribute is cut and, over time, what that costs against every query for itself."""
    slices, measure = grouping.slice_manager(), grouping.family.over.measure
    if grouping.by_tuple:
        return [f"one partial per distinct {grouping.family.over}, shared by all these windows"]
    if measure != TIME:
        return [f"slices over {grouping.family.over}: every edge on a tick of {measure.text(slices.tick.period)}"]
    sliding = [one for one in windows if isinstance(one, SlidingWindow)]
    if not sliding:
        return [f"slices: {slices_per_second(slices) * 60:.4g} a minute, merged once they are closed"]
    rate = slices_per_second(slices)
    paned = slices_per_second(SliceManager(sliding, Slicing.PANED))
    alone, shared = unshared_cost(sliding, rate=1), shared_cost(sliding, rate=1, slices=rate)
    lines = [f"slices: {rate * 60:.4g} a minute (panes: {paned * 60:.4g}), every edge on a tick of {Duration(slices.tick.period)}"]
    if len(sliding) == 1:
        return [*lines, f"cost: each row once, {shared.final * 60:.4g} combines a minute"]
    pays = least_rate_to_share(sliding, slices=rate)
    lines.append(
        f"cost shared: each row once, {shared.final * 60:.4g} slices into windows a minute; unshared: each row {len(sliding)} times,"
        f" {alone.final * 60:.4g} a minute; sharing pays from {pays:.3g} rows/s"
    )
    return lines


def duration(nanoseconds: float) -> str:
    return f"{nanoseconds / 1e6:.3g} ms" if nanoseconds < 1e9 else f"{nanoseconds / 1e9:.3g} s"


def counted(number: int, noun: str) -> str:
    plural = f"{noun[:-1]}ies" if noun.endswith("y") else f"{noun}s"
    return f"{number:,} {noun if number == 1 else plural}"


def names(all_names: Sequence[str], separator: str = ", ") -> str:
    shown = separator.join(all_names[:MOST_NAMES])
    rest = len(all_names) - MOST_NAMES
    return f"{shown} and {rest} more" if rest > 0 else shown
