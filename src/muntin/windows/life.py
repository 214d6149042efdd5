"""What one query went through: from which window on it takes part, what it emitted, and why it stopped, if it did.

In: counted by `assembly` and `closing`. Out: goes into the slice log with every entry, and to whoever asks for progress.
"""

from __future__ import annotations

from dataclasses import dataclass

from muntin.errors import DataError
from muntin.timeline import BEGINNING


@dataclass
class QueryLife:
    """`since`: windows that start before it are none of this query's. `begun`: EMIT EMPTY has had its first window.

    `late` rows missed a window that had closed; `dropped` ones missed all of theirs.
    """

    since: int = BEGINNING
    windows: int = 0
    results: int = 0
    late: int = 0
    dropped: int = 0
    begun: bool = False
    stopped: str = ""


@dataclass(frozen=True, order=True)
class Stop:
    """A query went wrong on its data: it has no results of windows that end at `end` or later. The rest says why."""

    end: int
    law: str
    values: str
    way_out: str

    @classmethod
    def at(cls, end: int, error: DataError) -> Stop:
        return cls(end, error.law, error.values, error.way_out)

    @property
    def error(self) -> DataError:
        return DataError(self.law, values=self.values, way_out=self.way_out)
