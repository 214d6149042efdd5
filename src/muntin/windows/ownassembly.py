"""Assembly of windows that each query holds by itself: what slide-by-tuple windows and rows counted by partition have in common.

In: plans that change as queries come and go; chunks of results. Out: the queries there are, what each went through, a `Holding` per query.
Convention: what `assembly` is for windows whose slices queries share. How rows come to a query's windows is told by who derives from it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Generic, Protocol, TypeVar

from muntin.plan.shared import QueryPlan, SharedPlan
from muntin.timeline import BEGINNING
from muntin.windows.assembly import Aggregations
from muntin.windows.bypartition import PartitionWindows
from muntin.windows.bytuple import TupleWindows
from muntin.windows.life import QueryLife
from muntin.windows.lowering import ResultChunk
from muntin.windows.shards import Partials
from muntin.windows.snapshots import Holding
from muntin.windows.substreams import NO_SUBSTREAMS, Substreams


class OwnQuery(Protocol):
    """A query with windows of its own."""

    plan: QueryPlan

    @property
    def windows(self) -> TupleWindows | PartitionWindows: ...


Own = TypeVar("Own", bound=OwnQuery)


@dataclass
class OwnAssembly(ABC, Generic[Own]):
    """`latest` is the greatest tick so far, `substreams` how far each partition is."""

    plan: SharedPlan
    punctuation: int = BEGINNING
    latest: int = BEGINNING
    lives: dict[str, QueryLife] = field(default_factory=dict)
    aggregations: Aggregations = field(default_factory=Aggregations)
    substreams: Substreams = NO_SUBSTREAMS
    slices_seen: ClassVar[int] = 0

    def __post_init__(self) -> None:
        self.queries: dict[str, Own] = {}
        self.use(self.plan)

    # -- queries come and go ----------------------------------------------------------------------------------------------------

    def use(self, plan: SharedPlan) -> None:
        """Go on with another plan. A query that the old one had not takes part in windows that start after every row so far."""
        wanted = {one.query.name: one for one in plan.queries}
        for name, known in list(self.queries.items()):
            if name not in wanted or wanted[name].query != known.plan.query:
                del self.queries[name], self.lives[name]
        for name, one in wanted.items():
            if name not in self.queries:
                self.lives.setdefault(name, QueryLife(self._since()))
                self.queries[name] = self._joined(one, plan)
            self.queries[name].plan = one
        self.plan = plan

    def _since(self) -> int:
        """From when on a query that joins now takes part."""
        return BEGINNING if self.latest == BEGINNING else self.latest + 1

    @abstractmethod
    def _joined(self, one: QueryPlan, plan: SharedPlan) -> Own:
        """A query that joins."""

    # -- rows come in, windows close --------------------------------------------------------------------------------------------

    @abstractmethod
    def step(
        self, partials: Sequence[Partials], punctuation: int, latest: int, substreams: Substreams, early: Collection[int] = ()
    ) -> Iterator[ResultChunk]:
        """Absorb the partials of one batch, close, and give early results, as `Assembly.step` does. Exhaust it before the next step."""

    def _recorded(self, name: str, chunks: Iterable[ResultChunk]) -> Iterator[ResultChunk]:
        """Results of a query, in what it went through, until it stops."""
        for chunk in chunks:
            chunk.count(self.lives[name])
            if chunk.table.num_rows or chunk.error:
                yield chunk

    def _counted(self, name: str, chunks: Iterable[ResultChunk]) -> Iterator[ResultChunk]:
        """The same, and the combines it took."""
        before = self.queries[name].windows.work.combines
        yield from self._recorded(name, chunks)
        self.aggregations.final += self.queries[name].windows.work.combines - before

    # -- snapshots --------------------------------------------------------------------------------------------------------------

    def snapshot(self) -> list[Holding]:
        return [self._holding(name, query) for name, query in self.queries.items() if not self.lives[name].stopped]

    @abstractmethod
    def _holding(self, name: str, query: Own) -> Holding:
        """What is held for a query."""

    @abstractmethod
    def restore(self, holdings: Sequence[Holding], punctuation: int, substreams: Substreams) -> None:
        """Take a snapshot back, into an assembly of the same queries that has absorbed nothing."""

    # -- what there is ----------------------------------------------------------------------------------------------------------

    @property
    def slices(self) -> int:
        """Ticks in hand, or slices of all partitions."""
        return sum(query.windows.ticks_held for query in self.queries.values())

    @property
    @abstractmethod
    def groups(self) -> int: ...

    @property
    def cells(self) -> int:
        return self.slices
