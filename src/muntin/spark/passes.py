"""Which passes over a batch a plan asks for.

In: a stream and a plan. Out: `Pass`es, each for some groupings. Convention: groupings with the same joins, attribute and columns are one
aggregation together, unless nothing is to be shared; those of slide-by-tuple windows are sent row by row (`byrow`).
"""

from __future__ import annotations

from muntin.plan.divide import Sharing
from muntin.plan.shared import Grouping, SharedPlan
from muntin.query.model import StreamDefinition
from muntin.spark.byrow import RowPass, is_by_row
from muntin.spark.habits import Habits
from muntin.spark.partials import Pass


def passes(stream: StreamDefinition, plan: SharedPlan, *, merging: bool = False, held: Habits | None = None) -> list[Pass]:
    together: dict[object, list[Grouping]] = {}
    for at, grouping in enumerate(plan.groupings):
        alone = at if plan.sharing is Sharing.UNSHARED or grouping.by_tuple else None
        together.setdefault((grouping.family.joins, grouping.family.over, grouping.columns, alone), []).append(grouping)
    return [(RowPass if is_by_row(members[0]) else Pass)(stream, tuple(members), merging, held) for members in together.values()]
