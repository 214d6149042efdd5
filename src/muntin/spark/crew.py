"""The crew: the instances of one stream's job, as the driver sees them.

In: entries, as instances are told of them. Out: what came of each, all instances together. Convention: a cached DataFrame of one row an
instance ties each to the executor that has its row: Spark sends the instance's next task there as long as it can, and so the task finds
the instance's folder. The driver holds what instances are told, not what they hold.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from muntin.spark.instances import SCHEMA, Basis, Order, Outcome, SpreadWriter, Told, outcome_from, taking
from muntin.spark.parting import Parts
from muntin.spark.place import Place
from muntin.windows.life import QueryLife
from muntin.windows.turns import Report, together


@dataclass(frozen=True)
class Taken:
    """What came of an entry: the reports together, results for sinks that only the driver reaches, the parts of a snapshot."""

    report: Report
    results: Sequence[tuple[str, pa.Table]]
    snapshot: Parts
    anew: int


class Crew:
    """`directory` is the checkpoint's, which executors read and write as the driver does."""

    def __init__(self, spark: SparkSession, run: str, stream: str, directory: Place, instances: int, basis: Basis) -> None:
        self.spark, self.run, self.stream = spark, run, stream
        self.parts, self.snapshots = directory / "parts", directory / "snapshot-parts"
        self.instances = instances
        self.basis = basis
        self.before: list[Told] = []
        self._anchor: DataFrame | None = None

    @property
    def anchor(self) -> DataFrame:
        if self._anchor is None:
            self._anchor = self.spark.range(0, self.instances, 1, self.instances).persist()
            self._anchor.count()
        return self._anchor

    def take(self, told: Told, writers: Sequence[SpreadWriter], *, returned: bool, snapshot: bool) -> Taken:
        """Have all instances take an entry. If a query goes wrong in one of them, they take it again, and it ends alike in all."""
        outcomes = self._ordered(told, writers, returned=returned, snapshot=snapshot)
        report = together([one.report for one in outcomes])
        if dict(report.stops) != dict(told.turn.stops):
            return self.take(replace(told, turn=replace(told.turn, stops=report.stops)), writers, returned=returned, snapshot=snapshot)
        self.before.append(told)
        results = [(query, pa.ipc.open_stream(blob).read_all()) for one in outcomes for query, blob in one.results]
        names = tuple(one.snapshot for one in outcomes if one.snapshot)
        parts = Parts(self.instances, names, sum(one.size for one in outcomes))
        return Taken(report, results, parts, sum(one.anew for one in outcomes))

    def _ordered(self, told: Told, writers: Sequence[SpreadWriter], *, returned: bool, snapshot: bool) -> list[Outcome]:
        order = Order(
            self.run,
            self.stream,
            self.parts,
            self.snapshots,
            self.instances,
            self.basis,
            tuple(self.before),
            told,
            tuple(writers),
            returned,
            snapshot,
        )
        found = self.anchor.mapInArrow(taking(order), SCHEMA).toArrow()["outcome"].to_pylist()
        return sorted(map(outcome_from, found), key=lambda one: one.instance)

    def rest_on(self, parts: Parts, lives: Mapping[str, QueryLife], *, latest: int, punctuation: int) -> None:
        """A snapshot stands for all entries so far."""
        last = self.before[-1]
        self.basis = Basis(last.entry, last.turn.plan, latest, punctuation, dict(lives), parts)
        self.before.clear()

    def forgotten(self) -> Iterator[str]:
        """Parts of snapshots that the basis does not need."""
        needed = set(self.basis.parts.names)
        return (name for name in self.snapshots.files() if name not in needed)

    def release(self) -> None:
        if self._anchor is not None:
            self._anchor.unpersist()
            self._anchor = None
