"""Names in an output directory: those of our own files, and which names of queries can stand beside them.

In: names of queries. Out: nothing, or a refusal.
"""

from __future__ import annotations

from collections.abc import Iterable

from muntin.errors import SinkError
from muntin.spark.claims import OWNERS

OWNER, ENTRIES, ASIDE, HIDDEN = "_muntin.json", "_entries", "_aside", "_hidden"
OWN_NAMES = {OWNER, ENTRIES, ASIDE, HIDDEN, OWNERS}


def check_names(queries: Iterable[str]) -> None:
    """Queries have checked names. Still: no name may lead out of the directory, hide a file of ours, or be another's on some disks."""
    by_case: dict[str, str] = {}
    for query in queries:
        if not query or query.startswith(".") or set(query) & set("/\\:\0") or query in OWN_NAMES:
            raise SinkError("a query's name can name a file", values=repr(query), way_out="use letters, digits and underscores")
        other = by_case.setdefault(query.casefold(), query)
        if other != query:
            raise SinkError("names of queries differ in more than case", values=f"{other}, {query}", way_out="rename one of them")
