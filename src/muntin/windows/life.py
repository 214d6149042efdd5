"""What one query went through: from which window on it takes part, what it emitted, and why it stopped, if it did.

In: counted by `assembly` and `closing`. Out: goes into the slice log with every entry, and to whoever asks for progress.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from muntin.errors import DataError
from muntin.timeline import BEGINNING, END


@dataclass
class QueryLife:
    """`since`: windows that start before it are none of this query's. `first`: where the first window ends that EMIT EMPTY emitted.

    `late` rows came after a window of theirs had closed; `dropped` ones count in none. Among the `results` there are `early` ones and
    `corrected` ones.
    """

    since: int = BEGINNING
    windows: int = 0
    results: int = 0
    early: int = 0
    corrected: int = 0
    late: int = 0
    dropped: int = 0
    first: int = END
    stopped: str = ""

    @property
    def begun(self) -> bool:
        """Whether EMIT EMPTY has had its first window."""
        return self.first < END


def stopped(lives: Mapping[str, QueryLife]) -> dict[str, str]:
    """Queries that stopped on their data, with the error of each."""
    return {name: life.stopped for name, life in lives.items() if life.stopped}


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
