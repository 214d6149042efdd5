"""Snapshots: what an assembly holds, as partials that another assembly takes back.

In: an assembly. Out: `Holding`s, some for each store. Convention: predicates and columns are named through queries that stand on them, so
that a snapshot means the same under any plan for the same queries.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from muntin.columnar import integers
from muntin.plan.shared import PartialColumn, QueryPlan
from muntin.windows.assembly import Assembly
from muntin.windows.household import Household
from muntin.windows.shards import Layout, Partials, key_names, key_types
from muntin.windows.store import Folded, SliceStore


@dataclass(frozen=True)
class Holding:
    """States of a store: the predicate is the first key of `partials`, as a position in `predicates`.

    A predicate is named by a query that has it, a column by a query and its position among the columns held for the query. Without columns
    it is the revisions of a query's results: where the window ends, the revision, the group.
    """

    predicates: tuple[str, ...]
    columns: tuple[tuple[str, int], ...]
    partials: Partials


def holding_layout(plans: dict[str, QueryPlan], predicates: Sequence[str], columns: Sequence[tuple[str, int]]) -> Layout:
    """The form of a holding's partials; of slide-by-tuple windows see `tupleassembly`, of partitions `counted`."""
    family = plans[predicates[0]].family
    own = ("kind", "marks") if family.by_tuple else ("kind",) if family.over.pattr else ("predicate",) if columns else ("revision",)
    names, types = (*own, *key_names(family)), (*(pa.int64() for _ in own), *key_types(family))
    return Layout(names, types, tuple(plans[name].held[at] for name, at in columns))


def snapshot(assembly: Assembly) -> Iterator[Holding]:
    for home in assembly.households.values():
        for store in home.stores:
            yield from holdings(store)
        yield from (revised(home, name) for name, held in home.revisions.items() if len(held))


def revised(home: Household, query: str) -> Holding:
    """The revisions of a query's results."""
    ends, groups, revisions = home.revisions[query].held()
    keys = (pa.array(revisions), *(column.take(pa.array(groups)) for column in home.groups.columns()))
    return Holding((query,), (), Partials(ends, keys, ()))


def holdings(store: SliceStore) -> Iterator[Holding]:
    by_predicate: dict[int, str] = {}
    by_column: dict[PartialColumn, tuple[str, int]] = {}
    for name, plan in store.plans.items():
        by_predicate.setdefault(store.predicates[plan.query.where], name)
        for at, column in enumerate(plan.held):
            by_column.setdefault(column, (name, at))
    numbers = np.array(sorted(by_predicate), dtype=np.int64)
    predicates, columns = tuple(by_predicate[number] for number in numbers.tolist()), tuple(by_column.values())
    for held in store.pieces():
        group = pa.array(held.group)
        keys = (pa.array(np.searchsorted(numbers, held.predicate)), *(column.take(group) for column in store.strands.groups.columns()))
        yield Holding(predicates, columns, Partials(held.start, keys, tuple(held.states[column] for column in by_column)))


def restore(assembly: Assembly, holdings: Iterable[Holding], punctuation: int) -> None:
    """Take a snapshot back, into an assembly of the same queries that has absorbed nothing."""
    assembly.punctuation = punctuation
    plans = {plan.query.name: plan for plan in assembly.plan.queries}
    for one in holdings:
        plan = plans[one.predicates[0]]
        home = assembly.households[assembly.home_of(plan)]
        group = home.groups.numbers(one.partials.keys[1:], len(one.partials))
        if not one.columns:
            home.revisions[one.predicates[0]].take_back(one.partials.at, group, integers(one.partials.keys[0], null=0))
            continue
        numbers = np.array([home.predicates[plans[name].query.where] for name in one.predicates], dtype=np.int64)
        starts, at = np.unique(one.partials.at, return_inverse=True)
        columns = [plans[name].held[place] for name, place in one.columns]
        states = dict(zip(columns, one.partials.states, strict=True))
        folded = Folded(starts, at, numbers[integers(one.partials.keys[0], null=0)], group, states)
        home.absorb(folded, punctuation=punctuation)
