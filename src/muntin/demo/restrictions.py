"""The predicates of on-the-fly-sharing-2006, Table 8: is the stock in an index, and is the trade large, or far from the last close?

In: a number and a seed. Out: that many different `Restriction`s, as SQL over `trades T, close C, index X`, and as something that any
arrays or columns with operators can be put into. Convention: the first n of a longer list are the list of n.
The paper does not give its constants. Those of `DRAWN` reproduce what it says of them at 256 queries: 40 % of the tuples satisfy a query
(116 M aggregations unshared), 11,400 fragments in ten minutes and 34,000 in the hour.
"""

from __future__ import annotations

import operator
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

INDEXES = ("r3000", "r2000", "r1000")


class Quantity(Enum):
    """What a restriction compares with a constant."""

    VOLUME = "T.vol"
    VALUE = "T.vol * T.price"
    CHANGE = "abs(T.price - C.cp) / C.cp"

    def of(self, row: Mapping[str, Any], absolute: Callable[[Any], Any]) -> Any:
        """The quantity of a row, or of columns or arrays of rows; `absolute` is their `abs`."""
        if self is Quantity.VOLUME:
            return row["vol"]
        if self is Quantity.VALUE:
            return row["vol"] * row["price"]
        return absolute(row["price"] - row["cp"]) / row["cp"]


COMPARISONS: dict[str, Callable[[Any, Any], Any]] = {">": operator.gt, "<": operator.lt}

#: The range a constant is drawn from, logarithmically for volumes and values, and the digits after its decimal point.
DRAWN: dict[tuple[Quantity, str], tuple[float, float]] = {
    (Quantity.VOLUME, ">"): (20, 200),
    (Quantity.VOLUME, "<"): (200, 2_000),
    (Quantity.VALUE, ">"): (500, 5_000),
    (Quantity.VALUE, "<"): (5_000, 50_000),
    (Quantity.CHANGE, ">"): (0, 0.015),
    (Quantity.CHANGE, "<"): (0.015, 0.03),
}
CHANGE_DIGITS = 4


@dataclass(frozen=True)
class Restriction:
    """Member AND Value: the stock is in an index or not, and a quantity is above or below a constant."""

    index: str
    inside: bool
    quantity: Quantity
    comparison: str
    constant: float

    @property
    def sql(self) -> str:
        return f"X.{self.index} = {str(self.inside).upper()} AND {self.quantity.value} {self.comparison} {self.constant:.10g}"

    def member(self, row: Mapping[str, Any]) -> Any:
        return row[self.index] == self.inside

    def value(self, row: Mapping[str, Any], absolute: Callable[[Any], Any]) -> Any:
        return COMPARISONS[self.comparison](self.quantity.of(row, absolute), self.constant)

    def holds(self, row: Mapping[str, Any], absolute: Callable[[Any], Any] = abs) -> Any:
        """Whether a row satisfies it; for columns or arrays, which rows do.

        >>> big = Restriction("r1000", True, Quantity.VOLUME, ">", 500)
        >>> big.sql, big.holds({"r1000": True, "vol": 501}), big.holds({"r1000": True, "vol": 500})
        ('X.r1000 = TRUE AND T.vol > 500', True, False)
        """
        return self.member(row) & self.value(row, absolute)


def restrictions(count: int, seed: int = 1) -> list[Restriction]:
    """So many different ones, each part drawn with equal chances (section 6.1)."""
    chance = random.Random(seed)  # noqa: S311 - a workload, not a secret
    found: dict[Restriction, None] = {}
    while len(found) < count:
        found.setdefault(drawn(chance))
    return list(found)


def drawn(chance: random.Random) -> Restriction:
    index, inside = chance.choice(INDEXES), chance.choice((True, False))
    quantity, comparison = chance.choice(list(Quantity)), chance.choice(list(COMPARISONS))
    low, high = DRAWN[quantity, comparison]
    if quantity is Quantity.CHANGE:
        return Restriction(index, inside, quantity, comparison, round(chance.uniform(low, high), CHANGE_DIGITS))
    return Restriction(index, inside, quantity, comparison, round(low * (high / low) ** chance.random()))
