"""The registry: the versioned set of queries.

In: checked queries to add, names to drop. Out: a new registry with the next version; the old one stays as it was, so that a
micro-batch can be pinned to it. Convention: names are told apart without regard to case, since they become names of files.
"""

from __future__ import annotations

from dataclasses import dataclass

from muntin.errors import Refusal
from muntin.query.model import Query
from muntin.query.names import suggestion


@dataclass(frozen=True)
class Registry:
    """The queries of one version, in the order they came."""

    version: int = 0
    queries: tuple[Query, ...] = ()

    def __contains__(self, name: str) -> bool:
        return self.find(name) is not None

    def find(self, name: str) -> Query | None:
        wanted = name.lower()
        return next((query for query in self.queries if query.name.lower() == wanted), None)

    def add(self, query: Query) -> Registry:
        known = self.find(query.name)
        if known:
            raise Refusal(
                "a query's name is its own, whatever the case",
                values=f"{query.name}, and there is {known.name} already",
                way_out=f"choose another name, or drop {known.name} first",
            )
        return Registry(self.version + 1, (*self.queries, query))

    def replace(self, query: Query) -> Registry:
        """The query in the place of the one of its name."""
        known = self.known(query.name, "replaced")
        return Registry(self.version + 1, tuple(query if one is known else one for one in self.queries))

    def known(self, name: str, what: str = "asked for") -> Query:
        known = self.find(name)
        if known is None:
            names = [query.name for query in self.queries]
            raise Refusal(
                f"only a registered query can be {what}",
                values=name,
                way_out=suggestion(name, names) or f"the queries are: {', '.join(names) or 'none'}",
            )
        return known

    def drop(self, name: str) -> Registry:
        known = self.known(name, "dropped")
        return Registry(self.version + 1, tuple(query for query in self.queries if query is not known))
