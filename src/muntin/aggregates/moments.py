"""The partial of variances: count, mean and sum of squared deviations (n, mean, M2).

Two of them combine by the pairwise update of Chan, Golub and LeVeque, which does not cancel the way Σx² − (Σx)²/n does.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from muntin.aggregates.base import LaneType, Partial, State
from muntin.columnar import floats, integers
from muntin.schema import Type


@dataclass(frozen=True)
class Moments(Partial):
    """n, mean and M2 of the values, in double precision."""

    name: str = "moments"

    def lanes(self, *types: Type) -> tuple[LaneType, ...]:
        return LaneType.INT64, LaneType.FLOAT64, LaneType.FLOAT64

    def lift(self, functions: Any, *columns: Any) -> tuple[Any, ...]:
        value = columns[0].cast("double")
        count = functions.count(value)
        return count, functions.avg(value), functions.var_pop(value) * count

    def decode(self, *columns: Any) -> State:
        return integers(columns[0], null=0), floats(columns[1], null=0.0), floats(columns[2], null=0.0)

    def identity(self) -> tuple[Any, ...]:
        return 0, 0.0, 0.0

    def combine(self, a: State, b: State) -> State:
        (na, mean_a, m2_a), (nb, mean_b, m2_b) = a, b
        n = na + nb
        with np.errstate(all="ignore"):
            share = nb / np.maximum(n, 1)
            delta = mean_b - mean_a
            mean = mean_a + delta * share
            m2 = m2_a + m2_b + delta * delta * (na * share)
        # An empty side changes nothing, not even where the other holds NaN or infinity.
        mean = np.where(nb == 0, mean_a, np.where(na == 0, mean_b, mean))
        m2 = np.where(nb == 0, m2_a, np.where(na == 0, m2_b, m2))
        return n, mean, m2
