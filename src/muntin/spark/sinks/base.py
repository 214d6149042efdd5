"""What every sink is asked: take the results of an entry, and say whether you have them already.

In: an `EntryId` and an iterator of (query name, Arrow table) chunks. Out: nothing; the results are where the sink puts them.
Shape of a chunk: window_start, window_end (timestamp[us, UTC]), then the select list by name; the chunks of one query come in order
of window end, and chunks of different queries may alternate. Convention: the entries of a stream come in rising order; an entry is
written once, unless the run was interrupted while writing it: then it is written again, whole. Streams number their entries each for
itself, so where a sink takes the results of several, possibly at the same time, `stream` says whose entry it is.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, ClassVar, Self

import pyarrow as pa

from muntin.query.model import Query

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from muntin.spark.place import Place

Results = Iterable[tuple[str, pa.Table]]


@dataclass(frozen=True, order=True)
class EntryId:
    """The number of a log entry: a micro-batch, or the n-th timer after one (a heartbeat, the end of the input).

    >>> str(EntryId(12)), str(EntryId(12, 1)), EntryId.parse("00000012.001")
    ('00000012', '00000012.001', EntryId(batch=12, timer=1))
    """

    batch: int
    timer: int = 0

    def __str__(self) -> str:
        return f"{self.batch:08d}.{self.timer:03d}" if self.timer else f"{self.batch:08d}"

    @classmethod
    def parse(cls, text: str) -> EntryId:
        """The inverse of `str`; a ValueError for anything else."""
        batch, _, timer = text.partition(".")
        entry = cls(int(batch), int(timer or 0))
        if str(entry) != text:
            raise ValueError(f"{text!r} is not the number of an entry")
        return entry

    def next_batch(self) -> EntryId:
        return EntryId(self.batch + 1)

    def next_timer(self) -> EntryId:
        return EntryId(self.batch, self.timer + 1)


class Sink(ABC):
    """Where results go. As a context manager it is closed at the end, or abandoned if the run failed.

    `promise` says in one sentence what a reader of the output can rely on when a run crashes and is resumed.
    """

    promise: ClassVar[str]

    def equip(self, spark: SparkSession, directory: Place | None) -> None:  # noqa: B027 - most sinks need neither
        """Before `open`: the job's session, and a directory of its checkpoint for what sinks keep there, if it has one. A sink uses a
        directory in it that is named for its output.
        """

    @abstractmethod
    def open(self, run: str, queries: Sequence[Query]) -> None:
        """Get ready for the results of a run; refuses an output of another run that it would mix with."""

    def admit(self, query: Query) -> None:  # noqa: B027 - most sinks take any query
        """A query joins the run, or takes the place of the one of its name; a sink that cannot name its output refuses it. Results of a
        batch in hand may be written meanwhile.
        """

    def expect(self, queries: Sequence[Query], stream: str = "") -> None:  # noqa: B027 - most sinks look at tables only
        """The queries that the next entry may have results of, as they were when it was begun: some may be dropped or replaced since."""

    @abstractmethod
    def holds(self, entry: EntryId, stream: str = "") -> bool:
        """Whether the sink has all results of this entry already, so that a replay skips it."""

    @abstractmethod
    def write(self, entry: EntryId, results: Results, stream: str = "") -> None:
        """Take the results of one entry, one chunk at a time; what an interrupted write of the same entry left is replaced."""

    @abstractmethod
    def close(self) -> None:
        """The run has ended as it should."""

    def abandon(self) -> None:
        """The run has failed: let go of everything, publish nothing that is not whole."""
        self.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if kind is None:
            self.close()
        else:
            self.abandon()
