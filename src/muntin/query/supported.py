"""What a query can ask for and the engine does not run yet: refused when it is registered, with its place.

In: a checked query. Out: nothing, or a refusal. `reference` evaluates all of them.
"""

from __future__ import annotations

from muntin.query.model import Query
from muntin.query.text import CreateQuery
from muntin.schema import Kind


def check_supported(statement: CreateQuery, query: Query) -> None:
    counted = query.counter.pattr if query.counter else ()
    for group in query.group_by[: len(counted)]:
        type = group.expression.type
        if type.kind not in (Kind.STRING, Kind.BOOLEAN) and not type.integral:
            law, way_out = "rows are counted by strings, whole numbers or booleans", "make such a column where the stream is made"
            raise statement.refusal(statement.tree, law, values=f"PATTR {group.name} of type {type}", way_out=way_out)
    if query.window.attribute.pattr and query.marks:
        law, way_out = "windows over rows counted by PATTR have no early or corrected results yet", "leave EMIT EVERY and LATE REEMIT out"
        raise statement.refusal(statement.tree, law, values=str(query.window), way_out=way_out)
