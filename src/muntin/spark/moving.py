"""Moving queries between the driver and the instances: what is held for them, in the form that it has on the other side.

In: holdings. Out: holdings for the driver, or parts for instances. Convention: a family moves whole. On the side of the instances its
groups have one more column, their bucket.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa

from muntin.plan.family import family_of
from muntin.plan.shared import SharedPlan
from muntin.spark.parts import Parts, own_rows, part_name, read_holdings, write_holdings
from muntin.spark.place import Place
from muntin.windows.groups import GroupIndex
from muntin.windows.shards import key_types
from muntin.windows.snapshots import Holding

if TYPE_CHECKING:
    from muntin.spark.crew import Crew

#: The number of a part that came from the driver.
_FROM_DRIVER = 1


def moved(old: SharedPlan, new: SharedPlan) -> SharedPlan:
    """The queries of the old plan where the new one has their families; the old plan itself, if nothing moves."""
    known = {one.query.name: one for one in old.queries}
    goes = {
        family_of(one.query): one.spread
        for one in new.queries
        if one.query.name in known and known[one.query.name].query == one.query and known[one.query.name].spread is not one.spread
    }
    return (
        replace(old, queries=tuple(replace(one, spread=goes.get(family_of(one.query), one.spread)) for one in old.queries)) if goes else old
    )


def taken_out(place: Place, parts: Parts, plan: SharedPlan, queries: Collection[str]) -> list[Holding]:
    """What instances hold for queries, as the driver holds it."""
    held = [one for one in read_holdings(place, parts, plan.part(spread=True)) if one.predicates[0] in queries]
    return [replace(one, partials=replace(one.partials, keys=one.partials.keys[:-1])) for one in held]


def brought_in(crew: Crew, holdings: Sequence[Holding], old: SharedPlan, new: SharedPlan) -> Parts:
    """What the driver holds for queries under the old plan, written as parts for instances under the new one."""
    families = {one.query.name: one.family for one in old.queries}
    placed = []
    for one in holdings:
        groups = GroupIndex(key_types(families[one.predicates[0]]))
        number = groups.numbers(one.partials.keys[1:], len(one.partials))
        bucket = crew.buckets(groups.columns()).take(pa.array(number))
        placed.append(replace(one, partials=replace(one.partials, keys=(*one.partials.keys, bucket))))
    found = Parts(crew.instances)
    for instance in range(crew.instances):
        own = [replace(one, partials=own_rows(one.partials, instance, crew.instances)) for one in placed]
        name = part_name(instance, _FROM_DRIVER)
        size = write_holdings(crew.snapshots / name, own, new.part(spread=True))
        found += Parts(crew.instances, (name,), size)
    return found
