"""The registry as it changes: every version that a batch may be pinned to, in memory and, with a checkpoint, on disk.

In: registries, one after the other, and who brought their queries. Out: the newest one, and the queries of any version.
Convention: a pipeline that is started on an old checkpoint is applied as the difference to the one that was started before: what that
one brought and the new one has not is dropped, what a command brought or dropped stays so. Batches look versions up while others are put.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping

from muntin.errors import Refusal
from muntin.query.model import Query
from muntin.query.registry import Registry
from muntin.spark.registrylog import Origin, Registered, RegistryLog


class Versions:
    """`parsed` reads a registered query back from its text."""

    def __init__(self, parsed: Callable[[Registered], Query]) -> None:
        self.registry = Registry()
        self.origins: dict[str, Origin] = {}
        self._parsed = parsed
        self._known: dict[int, Registry] = {}
        self._read: dict[Registered, Query] = {}
        self._log: RegistryLog | None = None
        self._brought: list[Registered] = []
        self._as_registered: dict[str, Registered] = {}
        self._lock = threading.Lock()  #: the log has one reader or writer at a time

    def put(self, registry: Registry, origin: Origin) -> None:
        """The next version; its new queries are of this origin."""
        names = {query.name for query in registry.queries}
        origins = {name: known for name, known in self.origins.items() if name in names}
        before = {query.name: query for query in self.registry.queries}
        origins |= {query.name: origin for query in registry.queries if before.get(query.name) is not query}
        with self._lock:
            if self._log:
                self._log.append(registry.version, self._registered(registry, origins))
            self._known[registry.version] = self.registry = registry
            self.origins = origins

    @property
    def newest(self) -> tuple[Registry, dict[str, Origin]]:
        """The newest version, and who brought its queries."""
        with self._lock:
            return self.registry, self.origins

    def at(self, version: int) -> Registry:
        """A version; one that this process has not made is read from the log."""
        with self._lock:
            if version not in self._known:
                found = self._log.at(version) if self._log else ()
                self._known[version] = Registry(version, tuple(map(self._query, found)))
            return self._known[version]

    def merge(self, log: RegistryLog) -> None:
        """Take the versions of a checkpoint as one's own past. Nothing is written before `save`."""
        newest = log.newest()
        self._brought = [one for one in self._registered(self.registry, self.origins) if one.origin is Origin.PIPELINE]
        if newest is None:
            self.registry = Registry(1, self.registry.queries)
            return
        stored = log.at(newest)
        queries, origins = self._difference(stored, self._unedited(log))
        same = [one.name for one in stored] == [query.name for query in queries] and all(
            self._query(one) is query and origins[one.name] is one.origin for one, query in zip(stored, queries, strict=True)
        )
        self.origins = origins
        self.registry = Registry(newest if same else newest + 1, queries)

    def _unedited(self, log: RegistryLog) -> set[str]:
        """Names of queries that the pipeline of the run before had too, and that mean the same now."""
        before = {one.name: self._query(one) for one in log.pipeline()}
        return {query.name for query in self.registry.queries if before.get(query.name) == query}

    def save(self, log: RegistryLog) -> None:
        """From now on versions are durable; the newest one is, if it was not yet."""
        self._log = log
        self._known = {self.registry.version: self.registry}
        if log.newest() != self.registry.version:
            log.append(self.registry.version, self._registered(self.registry, self.origins))
        log.write_pipeline(self._brought)

    def close(self) -> None:
        self._log = None

    def forget_before(self, version: int) -> None:
        """No batch before this version will be computed again."""
        with self._lock:
            if self._log:
                self._log.forget_before(version)
            self._known = {number: registry for number, registry in self._known.items() if number >= version}

    def _difference(self, stored: tuple[Registered, ...], unedited: set[str]) -> tuple[tuple[Query, ...], dict[str, Origin]]:
        """Stored queries in their order, as far as they stay; then those that are new. What was not edited stays as commands left it."""
        wanted = {query.name.lower(): query for query in self.registry.queries}
        queries: list[Query] = []
        origins = dict(self.origins)
        for one in stored:
            query = wanted.pop(one.name.lower(), None)
            if query is None and one.origin is Origin.PIPELINE:
                continue
            kept = self._query(one)
            if query is not None and query != kept and query.name not in unedited:
                self._check_replaces(one, query)
                kept = query
            queries.append(kept)
            origins[kept.name] = one.origin if query is None or query.name in unedited else origins[query.name]
        wanted = {name: query for name, query in wanted.items() if query.name not in unedited}
        names = {query.name for query in (*queries, *wanted.values())}
        return (*queries, *wanted.values()), {name: origin for name, origin in origins.items() if name in names}

    @staticmethod
    def _check_replaces(stored: Registered, query: Query) -> None:
        if stored.origin is Origin.COMMAND:
            raise Refusal(
                "a pipeline replaces only queries that a pipeline brought",
                values=f"{query.name} was added by a command and means something else",
                way_out=f"rename the pipeline's, or drop {query.name} with muntin drop while the job runs",
            )

    def _query(self, one: Registered) -> Query:
        if one not in self._read:
            self._read[one] = self._parsed(one)
        return self._read[one]

    def _registered(self, registry: Registry, origins: Mapping[str, Origin]) -> list[Registered]:
        """As the log has it; queries that stay are the same objects, which makes differences quick to find."""
        before, self._as_registered = self._as_registered, {}
        for query in registry.queries:
            one, origin = before.get(query.name), origins[query.name]
            same = one is not None and one.text == query.text and one.origin is origin
            self._as_registered[query.name] = one if same and one else Registered(query.name, query.text, origin)
        return list(self._as_registered.values())
