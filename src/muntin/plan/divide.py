"""How queries are divided among groupings: predicates as columns of their own, joint cells, or marginals.

In: queries with the same GROUP BY, and what is known of the load. Out: `Division`s, one grouping each, and the cost each choice would
have had. Convention: costs are nanoseconds per batch, from constants measured on this design (`benchmarks/`); only their ratios matter.
- conditional: every distinct predicate is evaluated on every row, and has partial columns of its own;
- joint: one grouping over all axes: each row once, but as many shards as cells that occur;
- marginal: several groupings, each over the axes its queries touch: each row once per grouping, and shards add up instead of multiplying.
Paper: on-the-fly-sharing-2006, section 4.3.3: sharing fragments pays while k, the fragments that occur, is far below |T|.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum

from muntin.expression.tree import Expression
from muntin.plan.fragments import Axis, Predicate, axes_of, decomposed
from muntin.query.model import Query

#: Nanoseconds: a row through one more grouping; one predicate's columns for a row; one step of a search; one shard through Spark and Arrow.
ROW_NS, PREDICATE_NS, STEP_NS, SHARD_NS = 60.0, 25.0, 6.0, 1500.0
#: Cells are coded in 64 bits with room for the group.
MOST_CELLS = 2**60
#: Cells × groups a grouping may be expected to have: the state holds every slice for each of them.
MOST_FRAGMENTS = 200_000
#: Groups of a GROUP BY before any were counted.
UNKNOWN_GROUPS = 1_000


class Sharing(Enum):
    """What queries share. All but AUTOMATIC are for measurement and trust."""

    UNSHARED = "unshared"  # nothing: a grouping per query
    SLICES = "slices"  # slices; each predicate has columns of its own
    FRAGMENTS = "fragments"  # slices, and fragments among queries with the same window
    SHARDS = "shards"  # slices and fragments among all queries
    AUTOMATIC = "automatic"  # whatever costs least


@dataclass(frozen=True)
class Load:
    """What is known of a batch: rows, slices, groups per GROUP BY, and the cells that occurred per set of axes.

    Defaults stand for the first batch.
    """

    rows: int = 200_000
    slices: int = 60
    groups: int = UNKNOWN_GROUPS
    cells: Mapping[frozenset[Expression], int] = field(default_factory=dict)


@dataclass(frozen=True)
class Division:
    """Queries of one grouping; `axes` is empty where predicates have columns of their own."""

    queries: tuple[Query, ...]
    axes: tuple[Axis, ...] = ()


@dataclass(frozen=True)
class Choice:
    """A way to divide a family, and what it would cost."""

    name: str
    divisions: tuple[Division, ...]
    nanoseconds: float


def divisions(queries: Sequence[Query], sharing: Sharing, load: Load) -> list[Division]:
    """The groupings of a set of queries. Only queries with the same GROUP BY expressions, in the same order, can share one."""
    if sharing is Sharing.UNSHARED:
        return [Division((query,)) for query in queries]
    together: dict[object, list[Query]] = {}
    for query in queries:
        window = query.window if sharing is Sharing.FRAGMENTS else None
        together.setdefault((tuple(group.expression for group in query.group_by), window), []).append(query)
    return [part for family in together.values() for part in family_divisions(family, sharing, load)]


def family_divisions(family: Sequence[Query], sharing: Sharing, load: Load) -> tuple[Division, ...]:
    ways = choices(family, load)
    if sharing is Sharing.AUTOMATIC:
        return ways[0].divisions
    by_name = {way.name: way for way in ways}
    if sharing is Sharing.SLICES or "joint" not in by_name:
        return by_name["conditional"].divisions
    joint = by_name["joint"].divisions
    return joint if cell_count(joint[0].axes) <= MOST_CELLS else by_name.get("marginal", by_name["conditional"]).divisions


def choices(family: Sequence[Query], load: Load) -> list[Choice]:
    """Every way to share a family, cheapest first."""
    load = load if family[0].group_by else replace(load, groups=1)
    predicates = {query: decomposed(query.where) for query in family if query.where is not None}
    alone = Choice("conditional", (Division(tuple(family)),), load.rows * (ROW_NS + PREDICATE_NS * len({q.where for q in predicates})))
    if not predicates or (family[0].group_by and not load.cells):
        return [alone] if not predicates else [alone, *(Choice("joint", (division(family, predicates),), math.inf),)]
    joint = (division(family, predicates),)
    marginal = tuple(division(members, predicates) for members in merged(family, predicates, load))
    ways = [alone, Choice("joint", joint, cost(joint, load))]
    if len(marginal) > 1:
        ways.append(Choice("marginal", marginal, cost(marginal, load)))
    return sorted(ways, key=lambda way: way.nanoseconds)


def division(members: Sequence[Query], predicates: Mapping[Query, Predicate]) -> Division:
    return Division(tuple(members), axes_of(predicates[query] for query in members if query in predicates))


def cell_count(axes: Sequence[Axis]) -> int:
    return math.prod(axis.size for axis in axes)


def cost(divisions: Sequence[Division], load: Load) -> float:
    """Rows through each grouping, one search per axis, and the shards."""
    searches = {axis.expression: max(1, len(axis.cuts)).bit_length() for division in divisions for axis in division.axes}
    if any(cell_count(division.axes) > MOST_CELLS or expected_fragments(division.axes, load) > MOST_FRAGMENTS for division in divisions):
        return math.inf
    shards = sum(expected_shards(division.axes, load) for division in divisions)
    return load.rows * (ROW_NS * len(divisions) + STEP_NS * sum(searches.values())) + SHARD_NS * shards


def expected_fragments(axes: Sequence[Axis], load: Load) -> float:
    """Cells × groups: as observed, or every cell that a row could be in."""
    observed = load.cells.get(frozenset(axis.expression for axis in axes))
    return load.groups * (observed if observed is not None else min(cell_count(axes), load.rows / load.groups))


def expected_shards(axes: Sequence[Axis], load: Load) -> float:
    """Slices × groups × the cells that occur in one: as observed, or as if rows fell into cells at random."""
    places = max(1, load.slices * load.groups)
    rows = load.rows / places
    observed = load.cells.get(frozenset(axis.expression for axis in axes))
    cells = float(min(cell_count(axes), 10**9)) if observed is None else float(observed)
    return places * min(rows, cells * -math.expm1(-rows / cells))


def merged(family: Sequence[Query], predicates: Mapping[Query, Predicate], load: Load) -> list[list[Query]]:
    """Queries by the axes they touch; sets of axes are merged while that costs less than keeping them apart."""
    together: dict[frozenset[Expression], list[Query]] = {}
    for query in family:
        touched = axes_of([predicates[query]]) if query in predicates else ()
        together.setdefault(frozenset(axis.expression for axis in touched), []).append(query)
    parts = list(together.values())
    while len(parts) > 1:
        now = cost([division(part, predicates) for part in parts], load)
        pairs = [(first, second) for first in range(len(parts)) for second in range(first)]
        trials = [(cost([division(part, predicates) for part in united(parts, pair)], load), pair) for pair in pairs]
        best, pair = min(trials)
        if best > now:
            break
        parts = united(parts, pair)
    return parts


def united(parts: Sequence[list[Query]], pair: tuple[int, int]) -> list[list[Query]]:
    first, second = pair
    rest = [part for at, part in enumerate(parts) if at not in pair]
    return [*rest, [*parts[second], *parts[first]]]
