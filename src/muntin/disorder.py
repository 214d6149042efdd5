"""The one place that makes punctuations; everything else only obeys them.

In: the greatest time seen in each batch. Out: the punctuation after it: no more rows below it are expected.
Convention: a punctuation never goes back. Paper: window-id-2005, sections 5.1 and 7.2 (slack as a bound on disorder).
"""

from __future__ import annotations

from dataclasses import dataclass

from muntin.timeline import BEGINNING


@dataclass(frozen=True)
class Slack:
    """A row comes at most `slack` microseconds after a row with a greater time."""

    slack: int

    def punctuation(self, greatest: int) -> int:
        return max(BEGINNING, greatest - self.slack)
