"""Are two answers the same? By the design's definition: the same rows; sums of doubles within 1e-12 × Σ|x| of each other.

In: result tables with window_start, window_end and one value. Out: how many rows were compared, or `WrongAnswer`.
Convention: every value of a trade is positive, so Σ|x| of a window is the sum itself; `check_same` insists on it.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa

from muntin.errors import Refusal

TOLERANCE = 1e-12


class WrongAnswer(Refusal):
    """Two strategies disagree: no time of theirs means anything."""


def check_all_same(name: str, ours: Mapping[str, pa.Table], truth: Mapping[str, pa.Table]) -> int:
    """Compare the queries that both have; there must be some."""
    common = [query for query in truth if query in ours]
    if not common:
        raise WrongAnswer(
            "strategies are compared on the queries both ran", values=f"{name}: none in common", way_out="run the same queries"
        )
    return sum(check_same(f"{name}, {query}", ours[query], truth[query]) for query in common)


def check_same(name: str, ours: pa.Table, truth: pa.Table) -> int:
    """The number of rows, all of which are the same."""
    if ours.num_rows != truth.num_rows:
        raise differing(name, f"{ours.num_rows} windows, expected {truth.num_rows}")
    mine, theirs = ours.sort_by("window_end"), truth.sort_by("window_end")
    for bound in ("window_start", "window_end"):
        if not np.array_equal(micros(mine[bound]), micros(theirs[bound])):
            raise differing(name, f"the {bound} of some window")
    check_close(name, mine["value"].to_numpy(), theirs["value"].to_numpy())
    return int(ours.num_rows)


def check_close(name: str, ours: np.ndarray, truth: np.ndarray) -> None:
    """Sums of positive doubles, added in another order."""
    if (truth <= 0).any():
        raise differing(name, "a sum that is not positive: Σ|x| is not known")
    wrong = np.nonzero(~(np.abs(ours - truth) <= TOLERANCE * truth))[0]
    if len(wrong):
        at = int(wrong[0])
        raise differing(name, f"{len(wrong)} values, first {ours[at]!r}, expected {truth[at]!r}")


def micros(column: pa.ChunkedArray) -> np.ndarray:
    return np.asarray(column.cast(pa.timestamp("us", tz="UTC")).cast(pa.int64()).to_numpy())


def differing(name: str, values: str) -> WrongAnswer:
    return WrongAnswer(
        "every strategy gives the same answer", values=f"{name}: {values}", way_out="find out which is wrong before timing any"
    )
