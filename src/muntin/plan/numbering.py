"""Dense numbers for sparse codes.

In: int64 codes. Out: numbers from 0 on, in order of first appearance. Convention: looked up by binary search, all rows at once.
"""

from __future__ import annotations

import numpy as np

from muntin.aggregates.base import Array

_NOTHING = np.empty(0, dtype=np.int64)


class Numbering:
    def __init__(self, codes: Array = _NOTHING) -> None:
        self.codes = codes
        self._sort()

    def __len__(self) -> int:
        return len(self.codes)

    def _sort(self) -> None:
        self._number = np.argsort(self.codes, kind="stable")
        self._sorted = self.codes[self._number]

    def numbers(self, codes: Array) -> Array:
        """The number of each code; an unseen one gets the next."""
        at = np.searchsorted(self._sorted, codes)
        known = self._sorted[np.minimum(at, len(self) - 1)] == codes if len(self) else np.zeros(len(codes), dtype=bool)
        if not known.all():
            self.codes = np.concatenate([self.codes, np.unique(codes[~known])])
            self._sort()
            at = np.searchsorted(self._sorted, codes)
        return self._number[at]
