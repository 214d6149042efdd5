"""A stand-in for `pyspark.sql.functions` over Python lists, so that the laws can lift thousands of small inputs without Spark.

In: columns as lists of values of one shard. Out: single values. Only what the built-in partials call; the Spark tests use the real one.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import Any


@dataclass(frozen=True)
class Values:
    """A column: the values of the rows of one shard."""

    values: tuple[Any, ...]

    def each(self, change: Any) -> Values:
        return Values(tuple(None if value is None else change(value) for value in self.values))

    def cast(self, _double: str) -> Values:
        return self.each(float)

    def bitwiseAND(self, mask: int) -> Values:  # noqa: N802 - Spark's name
        return self.each(lambda value: value & mask)

    def isNotNull(self) -> Values:  # noqa: N802 - Spark's name
        return Values(tuple(value is not None for value in self.values))

    def __mul__(self, other: Values) -> Values:
        return Values(tuple(None if a is None or b is None else a * b for a, b in zip(self.values, other.values, strict=True)))

    @property
    def present(self) -> list[Any]:
        return [value for value in self.values if value is not None]


@dataclass(frozen=True)
class Single:
    """An aggregate's value."""

    value: Any

    def __mul__(self, other: Single) -> Single:
        return Single(None if self.value is None or other.value is None else self.value * other.value)


class RowFunctions:
    """Spark's aggregate functions, the obvious way. `rows` is how many rows the shard has, for `count(lit(1))`."""

    def __init__(self, rows: int) -> None:
        self.rows = rows

    def lit(self, value: Any) -> Any:
        return value

    def count(self, column: Any) -> Single:
        return Single(len(column.present) if isinstance(column, Values) else self.rows)

    def sum(self, column: Values) -> Single:
        return Single(sum(column.present[1:], column.present[0]) if column.present else None)

    def try_sum(self, column: Values) -> Single:
        total = self.sum(column).value
        return Single(None if total is not None and len(Decimal(total).as_tuple().digits) > 38 else total)

    def min(self, column: Values) -> Single:
        return Single(min(column.present, key=_nan_last, default=None))

    def max(self, column: Values) -> Single:
        return Single(max(column.present, key=_nan_last, default=None))

    def avg(self, column: Values) -> Single:
        return Single(sum(column.present) / len(column.present) if column.present else None)

    def var_pop(self, column: Values) -> Single:
        if not column.present:
            return Single(None)
        mean = sum(column.present) / len(column.present)
        return Single(sum((value - mean) ** 2 for value in column.present) / len(column.present))

    def shiftright(self, column: Values, bits: int) -> Values:
        return column.each(lambda value: value >> bits)

    def when(self, condition: Values, column: Values) -> Values:
        return Values(tuple(value if true else None for true, value in zip(condition.values, column.values, strict=True)))


def _nan_last(value: Any) -> tuple[bool, Any]:
    return value != value, 0 if value != value else value
