"""The crew: the instances of one stream's job, as the driver sees them.

In: entries, as instances are told of them. Out: what came of each, all instances together. Convention: a cached DataFrame of one row an
instance ties each to the executor that has its row: Spark sends the instance's next task there as long as it can, and so the task finds
the instance's folder. The driver holds what instances are told, not what they hold: `parts/<entry>/` has what they get of entries,
`snapshot-parts/` what they held at a snapshot.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from muntin.spark.instances import SCHEMA, Basis, Order, Outcome, Told, clearing, outcome_from, taking
from muntin.spark.partials import bucket_of
from muntin.spark.parting import Parting
from muntin.spark.parts import NO_PARTS, Parts
from muntin.spark.place import Place
from muntin.spark.shipping import check_executors
from muntin.spark.sinks.base import EntryId
from muntin.spark.sinks.spread import SpreadWriter, Written
from muntin.spark.slicelog import MOST_ENTRIES, SMALLEST_SNAPSHOT
from muntin.windows.turns import Report, together


@dataclass(frozen=True)
class Asked:
    """What is asked of instances with an entry: to write to sinks, to return results to the driver, to write a snapshot."""

    writers: Sequence[SpreadWriter] = ()
    returned: bool = False
    snapshot: bool = False


@dataclass(frozen=True)
class Taken:
    """What came of an entry: the reports together, what each writer wrote, results for the driver, the parts of a snapshot."""

    report: Report
    written: Sequence[Sequence[Written]]
    returned: Sequence[tuple[str, pa.Table]]
    snapshot: Parts


class Crew:
    """`directory` is one that executors read and write as the driver does; a `temporary` one goes with the job.

    `guard` raises if another job has taken over the directory. `rebuilt` counts states that were made again from the log.
    """

    def __init__(
        self,
        spark: SparkSession,
        run: str,
        stream: str,
        directory: Place,
        instances: int,
        guard: Callable[[], None] = lambda: None,
        *,
        temporary: bool = False,
    ) -> None:
        self.spark, self.run, self.stream = spark, run, stream
        self.parts, self.snapshots = directory.everywhere / "parts", directory.everywhere / "snapshot-parts"
        self.instances = instances
        self._guard = guard
        self._temporary = directory if temporary else None
        self.basis: Basis | None = None
        self.lineage = ""
        self.before: list[Told] = []
        self.rebuilt = 0
        self._anchor: DataFrame | None = None

    def parting(self, entry: EntryId) -> Parting:
        """How the partials of an entry come to the instances."""
        return Parting(self.parts / str(entry), self.instances)

    def muster(self) -> None:
        """Tie instances to executors. Refuses those that cannot assemble, before anything is sent to them."""
        if self._anchor is None:
            check_executors(self.spark, self.instances)
            self._anchor = self.spark.range(0, self.instances, 1, self.instances).persist()
            self._anchor.count()

    # -- entries ----------------------------------------------------------------------------------------------------------------

    def take(self, told: Told, asked: Asked) -> Taken:
        """Have all instances take an entry. If a query goes wrong in one of them, they take it again, and it ends alike in all."""
        outcomes = self._ordered(told, asked)
        report = together([one.report for one in outcomes if one.report])
        if dict(report.stops) != dict(told.turn.stops):
            return self.take(replace(told, turn=replace(told.turn, stops=report.stops)), asked)
        self.tell(told)
        returned = [(query, pa.ipc.open_stream(blob).read_all()) for one in outcomes for query, blob in one.returned]
        written = [[each for one in outcomes for each in one.written[at]] for at in range(len(asked.writers))]
        return Taken(report, written, returned, self._snapshot(outcomes))

    def tell(self, told: Told) -> None:
        """An entry is done; whoever makes a state again goes over it."""
        self.before.append(told)

    def held(self) -> Parts:
        """What instances hold now, written as parts of a snapshot."""
        return self._snapshot(self._ordered(None, Asked(snapshot=True)))

    def _ordered(self, told: Told | None, asked: Asked) -> list[Outcome]:
        assert self.basis is not None
        order = Order(
            run=self.run,
            stream=self.stream,
            lineage=self.lineage,
            log=self.parts,
            snapshots=self.snapshots,
            instances=self.instances,
            basis=self.basis,
            before=tuple(self.before),
            now=told,
            writers=tuple(asked.writers),
            returned=asked.returned,
            snapshot=asked.snapshot,
        )
        outcomes = sorted(self.carried_out(order), key=lambda one: one.instance)
        for one in outcomes:
            if one.refused is not None:
                raise one.refused
        self.rebuilt += sum(one.anew for one in outcomes)
        return outcomes

    def carried_out(self, order: Order) -> list[Outcome]:
        """What came of an order in each instance: a Spark job with a task for each."""
        assert self._anchor is not None, "a state was rested on"
        found = self._anchor.mapInArrow(taking(order), SCHEMA).toArrow()
        return list(map(outcome_from, found["outcome"].to_pylist()))

    def buckets(self, groups: Sequence[pa.Array]) -> pa.Array:
        """The bucket of each group, as Spark computes it for the rows to come."""
        names = [f"k{at}" for at in range(len(groups))]
        table = pa.table([pa.array(range(len(groups[0])), type=pa.int64()), *groups], names=["number", *names])
        frame = self.spark.createDataFrame(table).select("number", bucket_of([F.col(name) for name in names]).alias("bucket"))
        return frame.toArrow().sort_by("number")["bucket"].combine_chunks()

    def _snapshot(self, outcomes: Sequence[Outcome]) -> Parts:
        return sum((one.snapshot for one in outcomes), Parts(self.instances))

    # -- snapshots --------------------------------------------------------------------------------------------------------------

    def wants_snapshot(self) -> bool:
        """Where there is no slice log to say so."""
        grown, held = sum(told.parts.size for told in self.before), self.basis.parts.size if self.basis else 0
        return grown >= max(held, SMALLEST_SNAPSHOT) or len(self.before) >= MOST_ENTRIES

    def rest_on(self, basis: Basis) -> None:
        """A state stands for all entries so far."""
        self.muster()
        self.basis = basis
        self.before.clear()

    def retire(self) -> None:
        """No query is spread any more."""
        self.basis = None
        self.before.clear()

    def forget(self, upto: EntryId) -> None:
        """Delete parts of entries up to one, and of snapshots that no state begins with.

        What is there is listed before the look at who owns the directory: a job that takes over later begins with the snapshot at
        `upto` or a newer one, whose parts are not on the list or are needed here too.
        """
        needed = set((self.basis.parts if self.basis else NO_PARTS).names)
        passed = [self.parts / name for name in self.parts.folders() if EntryId.parse(name) <= upto]
        unused = [self.snapshots / name for name in self.snapshots.files() if name not in needed]
        if passed or unused:
            self._guard()
        for folder in passed:
            folder.remove_tree()
        for part in unused:
            part.remove()

    def release(self) -> None:
        """The job has ended: executors keep nothing for it. What is left where Spark cannot be reached goes with the executor."""
        if self._anchor is not None:
            with suppress(Exception):
                self._anchor.mapInArrow(clearing(self.run, self.stream), SCHEMA).toArrow()
            self._anchor.unpersist()
            self._anchor = None
        if self._temporary is not None:
            self._temporary.remove_tree()
