"""The slow, obvious truth: every window evaluated by itself over the rows that belong to it.

In: a query, rows as mappings with the punctuation in force when each came, static tables by name. Out: result rows as dictionaries.
Convention: quadratic on purpose; nothing is shared, sliced or combined. Everything else is tested against this.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from muntin.aggregates.base import Aggregate
from muntin.errors import DataError
from muntin.expression import functions
from muntin.expression.evaluate import Scope, evaluate, holds
from muntin.expression.tree import Expression
from muntin.query.model import Query
from muntin.semantics import extent, wids, wids_after
from muntin.timeline import BEGINNING, END, Interval, datetime_of, instant_of

Row = Mapping[str, Any]
Tables = Mapping[str, Sequence[Row]]


@dataclass(frozen=True)
class Arrival:
    """A row and the punctuation that was in force when it came."""

    row: Row
    punctuation: int = BEGINNING


def arrivals(batches: Iterable[Sequence[Row]], *, time: str, slack: int) -> tuple[list[Arrival], int]:
    """Rows of batches under slack: after each batch the punctuation is the greatest time seen less the slack."""
    out: list[Arrival] = []
    punctuation = BEGINNING
    for batch in batches:
        out += [Arrival(row, punctuation) for row in batch]
        punctuation = max([punctuation] + [instant_of(row[time]) - slack for row in batch])
    return out, punctuation


class Results(list[dict[str, Any]]):
    """Result rows, up to the first window whose data fails; `error` is what failed there."""

    error: DataError | None = None


def results(
    query: Query, rows: Sequence[Arrival], aggregates: Mapping[str, Aggregate], *, since: int = BEGINNING, punctuation: int = END,
    tables: Tables | None = None,
) -> Results:  # fmt: skip
    """What it emits for windows that start at `since` or later and end at the punctuation or before, in order of end and group."""
    time, every, out = query.window.wattr, joined(query, rows, tables or {}), Results()
    touched = {w for one in every for w in open_wids(query, one, since)}
    if query.emit_empty and touched:
        latest = max(instant_of(one.row[time]) for one in rows)
        touched = set(range(min(touched), max(*touched, wids_after(latest, query.window) - 1) + 1))
    for window in (extent(w, query.window) for w in sorted(touched)):
        inside = [one.row for one in every if instant_of(one.row[time]) in window and window.end > one.punctuation]
        try:
            out += emitted(query, window, inside, aggregates) if window.end <= punctuation else []
        except DataError as error:
            out.error = error
            break
    return out


def emitted(query: Query, window: Interval, rows: Sequence[Row], aggregates: Mapping[str, Aggregate]) -> list[dict[str, Any]]:
    """What one window gives: its rows that pass WHERE, by group."""
    out, passing = [], [row for row in rows if query.where is None or value(query.where, row) is True]
    for key, members in sorted(grouped(query, passing), key=lambda item: [sort_key(part) for part in item[0]]):
        args = {call: [tuple(value(arg, row) for arg in call.args) for row in members] for call in query.aggregate_calls}
        values = {call: aggregates[call.aggregate].evaluate(given, call.type) for call, given in args.items()}
        scope = Scope(groups=key, aggregates=values, start=window.start, end=window.end)
        if query.having is None or evaluate(query.having, scope) is True:
            bounds = {"window_start": datetime_of(window.start), "window_end": datetime_of(window.end)}
            out.append(bounds | {output.name: evaluate(output.expression, scope) for output in query.outputs})
    return out


def joined(query: Query, rows: Sequence[Arrival], tables: Tables) -> Sequence[Arrival]:
    """Each row once for every row of the joined tables that it matches; a pair that is NULL or fails is no match."""
    for join in query.joins:
        equalities = [functions.call("=", *pair) for pair in join.on]
        others = [{f"{join.name}.{name}": part for name, part in other.items()} for other in tables[join.table]]
        both = [Arrival({**one.row, **other}, one.punctuation) for one in rows for other in others]
        rows = [one for one in both if all(holds(equality, Scope(one.row)) for equality in equalities)]
    return rows


def open_wids(query: Query, arrival: Arrival, since: int) -> list[int]:
    """The windows a row belongs to that were still open when it came."""
    found = wids(instant_of(arrival.row[query.window.wattr]), query.window)
    return [w for w in found if extent(w, query.window).end > arrival.punctuation and extent(w, query.window).start >= since]


def value(expression: Expression, row: Row) -> Any:
    return evaluate(expression, Scope(columns=row))


def grouped(query: Query, rows: Sequence[Row]) -> Iterable[tuple[tuple[Any, ...], list[Row]]]:
    """Rows by group values; without GROUP BY one group, there only if it has rows or EMIT EMPTY asks for it."""
    groups: dict[Any, tuple[tuple[Any, ...], list[Row]]] = {(): ((), [])} if query.emit_empty else {}
    for row in rows:
        parts = (value(group.expression, row) for group in query.group_by)
        key = tuple(part + 0.0 if isinstance(part, float) else part for part in parts)  # zero and negative zero are one group
        groups.setdefault(tuple(map(repr, key)), (key, []))[1].append(row)
    return groups.values()


def sort_key(part: Any) -> tuple[bool, bool, Any]:
    """NULL first, NaN last."""
    return part is not None, part != part, part if part == part and part is not None else 0
