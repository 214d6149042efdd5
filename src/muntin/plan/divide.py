"""How queries are divided among groupings: predicates as columns of their own, joint cells, or marginals.

In: queries over one stream, and what is known of the load. Out: `Division`s, one grouping each, and the cost each choice would have
had. Convention: costs are nanoseconds per batch, from constants measured on this design (`benchmarks/`); only their ratios matter.
- conditional: every distinct predicate is evaluated on every row, and has partial columns of its own, so that one that comes needs new
  code in Spark;
- joint: one grouping over all axes: each row once, but as many shards as cells that occur;
- marginal: several groupings, each over the axes its queries touch: each row once per grouping, and shards add up instead of multiplying.
Besides, a family with coarser groups is rolled up from the partials of a finer one, where those are fewer than the rows.
Paper: on-the-fly-sharing-2006, section 4.3.3: sharing fragments pays while k, the fragments that occur, is far below |T|.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from enum import Enum
from functools import cached_property

from muntin.choice import named
from muntin.expression.tree import Expression
from muntin.plan.family import Family, family_of
from muntin.plan.fragments import Axis, Scale, axes_of, constants_in, touched
from muntin.plan.load import FIRST_LOAD, Load
from muntin.query.model import Query

__all__ = ["FIRST_LOAD", "Choice", "Division", "Load", "Sharing", "choices", "divisions"]

#: Nanoseconds: a row through one more grouping; one predicate's columns for a row; one step of a search; one shard through Spark,
#: Arrow and the slice log; one shard held against one predicate.
ROW_NS, PREDICATE_NS, STEP_NS, SHARD_NS, FOLD_NS = 160.0, 40.0, 6.0, 1800.0, 1.5
#: With so many predicates that have columns of their own, Spark no longer makes one code of the whole aggregation: a row costs so much
#: more, and each predicate beyond them.
MANY_PREDICATES, WIDE_ROW_NS, WIDE_PREDICATE_NS = 32, 1500.0, 40.0
#: Constants of predicates that have columns of their own are Columns that Python makes. Beyond so many: 0.7 ms each, over ten batches.
FEW_CONSTANTS, CONSTANT_NS = 100, 7e4
#: New code for columns that were not there before: to make, to compile, and to run before it is compiled well.
NEW_CODE_NS = 4e8
#: Cells are coded in 64 bits.
MOST_CELLS = 2**60


class Sharing(Enum):
    """What queries share. All but AUTOMATIC are for measurement and trust."""

    UNSHARED = "unshared"  # nothing: a grouping per query
    SLICES = "slices"  # slices; each predicate has columns of its own
    FRAGMENTS = "fragments"  # slices, and fragments among queries with the same window
    SHARDS = "shards"  # slices and fragments among all queries
    AUTOMATIC = "automatic"  # whatever costs least

    @classmethod
    def named(cls, name: str | Sharing) -> Sharing:
        return named(cls, name, "queries share by a strategy", found=f"sharing = {name!r}")


@dataclass(frozen=True)
class Division:
    """Queries of one grouping: told apart by cells, or each predicate with columns of its own; assembled once, or spread."""

    queries: tuple[Query, ...]
    by_cell: bool = False
    spread: bool = False

    @cached_property
    def family(self) -> Family:
        """The finest family among the queries: the others are rolled up from it."""
        return replace(max(map(family_of, self.queries), key=lambda family: len(family.keys)), spread=self.spread)

    def axes(self, known: Mapping[Expression, Axis]) -> tuple[Axis, ...]:
        """The axes that the queries touch, each with every cut that anybody asks for: a row is searched once for all groupings.

        The largest comes last: so the cells that occur are small numbers.
        """
        return tuple(sorted((known[expression] for expression in self.expressions), key=lambda axis: axis.scale.steps))

    @cached_property
    def expressions(self) -> AbstractSet[Expression]:
        """What the predicates test, in order of first appearance, if they are told apart by cells."""
        return dict.fromkeys(one for where in self.predicates if self.by_cell for one in touched(where)).keys()

    @cached_property
    def families(self) -> frozenset[Family]:
        """More than one, if some are rolled up."""
        return frozenset(map(family_of, self.queries))

    @cached_property
    def predicates(self) -> list[Expression]:
        """The distinct ones, in order of first appearance."""
        return list(dict.fromkeys(query.where for query in self.queries if query.where is not None))


@dataclass(frozen=True)
class Choice:
    """A way to divide a family, and what it would cost."""

    name: str
    divisions: tuple[Division, ...]
    nanoseconds: float


def nowhere(_: Family) -> bool:
    """No family is spread."""
    return False


def divisions(
    queries: Sequence[Query], sharing: Sharing, load: Load = FIRST_LOAD, spread: Callable[[Family], bool] = nowhere
) -> list[Division]:
    """The groupings of a set of queries. Only queries of one family can share one, unless one family is rolled up from another."""
    if sharing is Sharing.UNSHARED:
        return [Division((query,), spread=spread(family_of(query))) for query in queries]
    together: dict[object, list[Query]] = {}
    for query in queries:
        apart = sharing is Sharing.FRAGMENTS and not family_of(query).by_tuple
        together.setdefault((family_of(query), query.window if apart else None), []).append(query)
    parts: list[Division] = []
    by_tuple: list[Division] = []
    for members in together.values():
        family = family_of(members[0])
        if family.by_tuple:
            by_tuple.append(Division(tuple(members)))
        else:
            parts += family_divisions(members, sharing, load, spread=spread(family))
    return [*(rolled_up(parts, load) if sharing is Sharing.AUTOMATIC else parts), *by_tuple]


def family_divisions(members: Sequence[Query], sharing: Sharing, load: Load, *, spread: bool) -> tuple[Division, ...]:
    ways = choices(members, load, spread=spread)
    if sharing is Sharing.AUTOMATIC:
        return ways[0].divisions
    by_name = {way.name: way for way in ways}
    if sharing is Sharing.SLICES or "joint" not in by_name:
        return by_name["conditional"].divisions
    joint = by_name["joint"].divisions
    return joint if is_countable(sizes_of(all_axes(joint).values())) else by_name["marginal"].divisions


def choices(members: Sequence[Query], load: Load, *, spread: bool = False) -> list[Choice]:
    """Every way to share a family, cheapest first."""
    conditional, joint = (Division(tuple(members), spread=spread),), (Division(tuple(members), by_cell=True, spread=spread),)
    alone = Choice("conditional", conditional, cost(conditional, load))
    if not joint[0].predicates:
        return [alone]
    marginal = tuple(Division(tuple(part), by_cell=True, spread=spread) for part in merged(joint[0], load))
    ways = [alone, Choice("joint", joint, cost(joint, load))]
    ways += [Choice("marginal", marginal, cost(marginal, load))] if len(marginal) > 1 else []
    return sorted(ways, key=lambda way: way.nanoseconds)


def all_axes(parts: Sequence[Division]) -> dict[Expression, Axis]:
    """Every axis that some division's predicates touch."""
    predicates = dict.fromkeys(where for part in parts if part.by_cell for where in part.predicates)
    return {axis.expression: axis for axis in axes_of(tuple(predicates))}


def cost(parts: Sequence[Division], load: Load) -> float:
    """Rows through each grouping, one search per axis, and the shards."""
    axes = all_axes(parts)
    searching = load.rows * STEP_NS * sum(axis.scale.steps for axis in axes.values())
    constants = sum(constants_in(where) for part in parts if not part.by_cell for where in part.predicates)
    shares = (grouping_cost(part.family, sizes_of(part.axes(axes)), len(part.predicates), load) for part in parts)
    return searching + CONSTANT_NS * max(0, constants - FEW_CONSTANTS) + sum(shares)


def grouping_cost(family: Family, sizes: Mapping[Expression, int], predicates: int, load: Load) -> float:
    """What a grouping costs besides the searches: its rows, its shards, and each shard held against each predicate."""
    if not is_countable(sizes):
        return math.inf
    if sizes:
        return load.rows * ROW_NS + load.shards(family, sizes) * (SHARD_NS + FOLD_NS * predicates)
    each_row, beyond = ROW_NS + PREDICATE_NS * predicates, predicates - MANY_PREDICATES
    if beyond > 0:
        each_row += WIDE_ROW_NS + WIDE_PREDICATE_NS * beyond
    new_code = load.changes * NEW_CODE_NS if predicates else 0.0
    return load.rows * each_row + load.shards(family, sizes) * SHARD_NS + new_code


@dataclass
class Part:
    """Queries that touch these axes, on the way to a grouping of their own."""

    family: Family
    members: list[Query]
    sizes: dict[Expression, int]
    predicates: set[Expression | None]

    def cost(self, load: Load) -> float:
        return grouping_cost(self.family, self.sizes, len(self.predicates), load)

    def united(self, other: Part) -> Part:
        return Part(self.family, [*self.members, *other.members], self.sizes | other.sizes, self.predicates | other.predicates)


def merged(whole: Division, load: Load) -> list[list[Query]]:
    """Queries by the axes they touch; sets of axes are merged while that costs less than keeping them apart."""
    axes = all_axes([whole])
    together: dict[frozenset[Expression], Part] = {}
    for query in whole.queries:
        expressions = frozenset(touched(query.where) if query.where is not None else ())
        if expressions not in together:
            sizes = sizes_of(axis for expression, axis in axes.items() if expression in expressions)
            together[expressions] = Part(whole.family, [], sizes, set())
        part = together[expressions]
        part.members.append(query)
        part.predicates.add(query.where)
    alive = dict(enumerate(together.values()))
    costs = {at: part.cost(load) for at, part in alive.items()}

    def gain(a: int, b: int) -> float:
        """What two parts cost more apart than together; nothing is gained by cells too many to count."""
        united = alive[a].united(alive[b]).cost(load)
        return -math.inf if united == math.inf else costs[a] + costs[b] - united

    gains = {(a, b): gain(a, b) for a in alive for b in alive if b < a}
    while gains and max(gains.values()) >= 0:
        a, b = max(gains, key=gains.__getitem__)
        alive[a] = alive[a].united(alive.pop(b))
        costs[a] = alive[a].cost(load)
        gains = {pair: saved for pair, saved in gains.items() if b not in pair and a not in pair}
        gains |= {(a, other): gain(a, other) for other in alive if other != a}
    return [part.members for part in alive.values()]


def rolled_up(parts: Sequence[Division], load: Load) -> list[Division]:
    """Divisions with those families folded into a finer one that cost less so, the coarsest first."""
    kept = sorted(parts, key=lambda part: len(part.family.keys))
    done: list[Division] = []
    while kept:
        coarse = kept.pop(0)
        finer = next((at for at, fine in enumerate(kept) if is_worth_rolling_up(coarse, fine, load)), None)
        if finer is None:
            done.append(coarse)
        else:
            kept[finer] = both(kept[finer], coarse)
    place = {query: at for at, part in enumerate(parts) for query in part.queries}
    return sorted(done, key=lambda part: min(place[query] for query in part.queries))


def both(fine: Division, coarse: Division) -> Division:
    return Division((*fine.queries, *coarse.queries), fine.by_cell or coarse.by_cell)


def is_worth_rolling_up(coarse: Division, fine: Division, load: Load) -> bool:
    if not coarse.family.rolls_up(fine.family):
        return False
    together = both(fine, coarse)
    return cost([together], load) + roll_up_cost(together, load) < cost([fine], load) + cost([coarse], load)


def roll_up_cost(part: Division, load: Load) -> float:
    """Finer shards, gone over once more in Python."""
    return SHARD_NS / 4 * load.shards(part.family, sizes_of(part.axes(all_axes([part]))))


def sizes_of(axes: Iterable[Axis]) -> dict[Expression, int]:
    """How many positions the values of each expression can be in."""
    return {axis.expression: len(axis.cuts) + 1 for axis in axes}


def is_countable(sizes: Mapping[Expression, int]) -> bool:
    """Whether the cells on axes of these sizes can be told apart by one number, with all the room that their scales have."""
    return math.prod(Scale.of(size - 1).size for size in sizes.values()) <= MOST_CELLS


def adapted(parts: Sequence[Division], queries: Sequence[Query]) -> list[Division] | None:
    """The same groupings for queries of which some came or went; None if one that came fits into none of them."""
    place = {query: at for at, part in enumerate(parts) for query in part.queries}
    members: list[list[Query]] = [[] for _ in parts]
    for query in queries:
        fitting = [place[query]] if query in place else [at for at, part in enumerate(parts) if fits(query, part)]
        if not fitting:
            return None
        members[min(fitting, key=lambda at: len(parts[at].expressions))].append(query)
    changed = [Division(tuple(some), part.by_cell, part.spread) for some, part in zip(members, parts, strict=True) if some]
    axes = all_axes(changed)
    return changed if all(is_countable(sizes_of(part.axes(axes))) for part in changed) else None


def fits(query: Query, part: Division) -> bool:
    """Whether a query can come into a grouping without a new axis, group column or conditional column."""
    if family_of(query) not in part.families:
        return False
    tested = touched(query.where) if query.where is not None else ()
    return part.expressions >= set(tested) if part.by_cell else query.where is None or query.where in part.predicates
