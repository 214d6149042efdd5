"""What one query went through: from which window on it takes part, what it emitted, and why it stopped, if it did.

In: counted by `assembly` and `closing`. Out: goes into the slice log with every entry, and to whoever asks for progress.
"""

from __future__ import annotations

from dataclasses import dataclass

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
