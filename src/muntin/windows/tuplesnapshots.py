"""What a checkpoint keeps of slide-by-tuple windows, and the windows made from it again.

In: `TupleWindows`. Out: `Held`, arrays only. Convention: rows that wait and rows of the block in hand are as they came; those of the
block before are suffixes already, and stay so. What is carried per series follows from the block in hand.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from muntin.aggregates.base import Array
from muntin.windows.bytuple import TupleWindows
from muntin.windows.tuplerows import TupleRows


@dataclass(frozen=True)
class Held:
    punctuation: int
    partition: Array  #: of each series
    below: Array  #: tuples per partition below the punctuation
    waiting: TupleRows
    current: TupleRows
    previous: TupleRows


def held(windows: TupleWindows) -> Held:
    together = windows.columns.together
    return Held(
        windows.punctuation,
        windows.partition.copy(),
        windows.below.copy(),
        together([part.rows for part in windows.waiting]),
        together(windows.current),
        windows.previous,
    )


def restore(windows: TupleWindows, state: Held) -> None:
    """Put new windows into the state that was held."""
    windows.add_series(state.partition)
    windows.below = state.below.copy()
    windows.begin_at(state.punctuation)
    windows.previous = state.previous.at(np.lexsort((state.previous.ticks, state.previous.series)))  # series may have other numbers now
    windows.hold(state.current)
    windows.wait(state.waiting)
