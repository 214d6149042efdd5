"""Holdings on disk: what an assembly holds, as a header and blobs of Arrow.

In: holdings, and the plan of the queries they are named by. Out: the form they have in a snapshot, and back. Convention: a holding of
queries that the plan does not have is passed over: it has moved elsewhere.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from muntin.plan.shared import QueryPlan, SharedPlan
from muntin.spark.encoding import decode_partials, encode_partials
from muntin.windows.snapshots import Holding, holding_layout


def holding_blobs(holdings: Sequence[Holding], plan: SharedPlan) -> tuple[dict[str, Any], list[memoryview]]:
    plans = by_name(plan)
    blobs = [encode_partials(one.partials, holding_layout(plans, one.predicates, one.columns)) for one in holdings]
    return {"holdings": [{"predicates": one.predicates, "columns": one.columns} for one in holdings]}, blobs


def holdings_from(header: Mapping[str, Any], blobs: Sequence[memoryview], plan: SharedPlan) -> list[Holding]:
    plans, found = by_name(plan), []
    for held, blob in zip(header["holdings"], blobs, strict=True):
        predicates, columns = tuple(held["predicates"]), tuple((name, at) for name, at in held["columns"])
        if predicates[0] in plans:
            partials = decode_partials(pa.py_buffer(blob), holding_layout(plans, predicates, columns))
            found.append(Holding(predicates, columns, partials))
    return found


def by_name(plan: SharedPlan) -> dict[str, QueryPlan]:
    return {one.query.name: one for one in plan.queries}
