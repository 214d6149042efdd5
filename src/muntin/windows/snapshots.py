"""Snapshots: what an assembly holds, as partials that another assembly takes back.

In: an assembly. Out: a `Holding` per store. Convention: predicates and columns are named through queries that stand on them, so that a
snapshot means the same under any plan for the same queries.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from muntin.columnar import integers
from muntin.plan.shared import PartialColumn, QueryPlan
from muntin.windows.assembly import Assembly
from muntin.windows.shards import Layout, Partials, key_names, key_types
from muntin.windows.store import Folded, SliceStore


@dataclass(frozen=True)
class Holding:
    """The states of a store: the predicate is the first key of `partials`, as a position in `predicates`.

    A predicate is named by a query that has it, a column by a query and its position among the query's columns.
    """

    predicates: tuple[str, ...]
    columns: tuple[tuple[str, int], ...]
    partials: Partials


def holding_layout(plans: dict[str, QueryPlan], predicates: Sequence[str], columns: Sequence[tuple[str, int]]) -> Layout:
    """The form of a holding's partials; of slide-by-tuple windows see `tupleassembly`, of partitions `counted`."""
    family = plans[predicates[0]].family
    own = ("kind", "marks") if family.by_tuple else ("kind",) if family.over.pattr else ("predicate",)
    names, types = (*own, *key_names(family)), (*(pa.int64() for _ in own), *key_types(family))
    return Layout(names, types, tuple(plans[name].columns[at] for name, at in columns))


def snapshot(assembly: Assembly) -> list[Holding]:
    return [holding(store) for home in assembly.households.values() for store in home.stores]


def holding(store: SliceStore) -> Holding:
    held = store.held()
    by_predicate: dict[int, str] = {}
    by_column: dict[PartialColumn, tuple[str, int]] = {}
    for name, plan in store.plans.items():
        by_predicate.setdefault(store.predicates[plan.query.where], name)
        for at, column in enumerate(plan.columns):
            by_column.setdefault(column, (name, at))
    numbers = np.array(sorted(by_predicate), dtype=np.int64)
    group = pa.array(held.group)
    keys = (pa.array(np.searchsorted(numbers, held.predicate)), *(column.take(group) for column in store.strands.groups.columns()))
    partials = Partials(held.start, keys, tuple(held.states[column] for column in by_column))
    return Holding(tuple(by_predicate[number] for number in numbers.tolist()), tuple(by_column.values()), partials)


def restore(assembly: Assembly, holdings: Sequence[Holding], punctuation: int) -> None:
    """Take a snapshot back, into an assembly of the same queries that has absorbed nothing."""
    assembly.punctuation = punctuation
    plans = {plan.query.name: plan for plan in assembly.plan.queries}
    for one in holdings:
        plan = plans[one.predicates[0]]
        home = assembly.households[assembly.home_of(plan)]
        numbers = np.array([home.predicates[plans[name].query.where] for name in one.predicates], dtype=np.int64)
        starts, at = np.unique(one.partials.at, return_inverse=True)
        group = home.groups.numbers(one.partials.keys[1:], len(one.partials))
        columns = [plans[name].columns[place] for name, place in one.columns]
        states = dict(zip(columns, one.partials.states, strict=True))
        folded = Folded(starts, at, numbers[integers(one.partials.keys[0], null=0)], group, states)
        home.absorb(folded, punctuation=punctuation)
