"""Aggregates by name. `AGGREGATES` is what a query may call; a user's own are added to a copy of it."""

from __future__ import annotations

from collections.abc import Mapping

from muntin.aggregates.base import Aggregate
from muntin.aggregates.bounded import (
    AvgAggregate,
    CountAggregate,
    ExtremumAggregate,
    SumAggregate,
    VarianceAggregate,
    WeightedAvgAggregate,
)
from muntin.aggregates.extrema import Direction

_BUILT_IN: tuple[Aggregate, ...] = (
    CountAggregate(),
    SumAggregate(),
    AvgAggregate(),
    ExtremumAggregate("min", Direction.MIN),
    ExtremumAggregate("max", Direction.MAX),
    VarianceAggregate("var_pop", freedom=0, root=False),
    VarianceAggregate("var_samp", freedom=1, root=False),
    VarianceAggregate("stddev_pop", freedom=0, root=True),
    VarianceAggregate("stddev_samp", freedom=1, root=True),
    WeightedAvgAggregate(),
)
#: Other names users know the same aggregates by.
_SYNONYMS = {"mean": "avg", "variance": "var_samp", "stddev": "stddev_samp", "std": "stddev_samp"}

_BY_NAME = {aggregate.name: aggregate for aggregate in _BUILT_IN}
AGGREGATES: Mapping[str, Aggregate] = _BY_NAME | {synonym: _BY_NAME[name] for synonym, name in _SYNONYMS.items()}
