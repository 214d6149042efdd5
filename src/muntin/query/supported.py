"""What a query can ask for and the engine does not run yet: refused when it is registered, with its place.

In: a checked query and the stream it reads. Out: nothing, or a refusal. `reference` evaluates all of them.
"""

from __future__ import annotations

from muntin.query.model import Query, StreamDefinition
from muntin.query.text import CreateQuery
from muntin.semantics import TupleSlide


def check_supported(statement: CreateQuery, query: Query, stream: StreamDefinition) -> None:
    window = query.window
    way_out = f"use a window over {stream.time}: [RANGE 10 minutes SLIDE 1 minute]"
    if window.pattr and query.counts_rows:
        law = "rows are counted for the whole stream; counts by PATTR are not supported by the engine yet"
        raise statement.refusal(statement.tree, law, values=str(window), way_out=way_out)
    if isinstance(window, TupleSlide) and query.joins:
        law = "slide-by-tuple windows over joined rows are not supported by the engine yet"
        raise statement.refusal(statement.tree, law, values=str(window), way_out=way_out)
