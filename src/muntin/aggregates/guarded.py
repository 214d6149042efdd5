"""What the `lift` of a user's own aggregate is written with: Spark's functions and Columns that do not raise, and say where they would.

In: `pyspark.sql.functions` and the Columns of the arguments. Out: `Guarded` Columns with the same methods and operators, and a
functions module that takes and gives them. Convention: where Spark's ANSI mode would raise, a guarded Column is NULL and `failed` is
true; both are of rows until an aggregate function takes them, then of shards. Reason: one query's overflow must not fail the batch of
all. Guarded are + - * / %, the minus sign, `cast`, `sum` and `avg`; what WHEN, AND and OR do not reach does not count. Not guarded:
`expr`, and other functions that raise on some rows; most have a twin, `try_to_number` say, that gives NULL instead.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from muntin.expression.signature import either, only_where

#: Functions that make one value of the rows of a shard, of those that can end in a number.
_AGGREGATES = {
    "any_value", "approx_count_distinct", "approx_percentile", "bit_and", "bit_or", "bit_xor", "bool_and", "bool_or", "corr", "count",
    "countDistinct", "count_distinct", "count_if", "covar_pop", "covar_samp", "every", "first", "first_value", "kurtosis", "last",
    "last_value", "max", "max_by", "mean", "median", "min", "min_by", "mode", "percentile", "percentile_approx", "product", "regr_avgx",
    "regr_avgy", "regr_count", "regr_intercept", "regr_r2", "regr_slope", "regr_sxx", "regr_sxy", "regr_syy", "skewness", "some", "std",
    "stddev", "stddev_pop", "stddev_samp", "sumDistinct", "sum_distinct", "try_avg", "try_sum", "var_pop", "var_samp", "variance",
}  # fmt: skip
#: Aggregates that raise, and their twins that give NULL.
_TRIED = {"sum": "try_sum", "avg": "try_avg", "mean": "try_avg"}


@dataclass(frozen=True, eq=False)
class Guarded:
    """A Column and where it failed; None if it cannot have. `functions` is Spark's module."""

    functions: Any = field(repr=False)
    column: Any
    failed: Any = None

    def __getattr__(self, name: str) -> Callable[..., Any]:
        """Any other method of a Column: it fails where what it takes failed."""
        method = getattr(self.column, name)

        def call(*args: Any, **options: Any) -> Guarded:
            made = method(*map(plain, args), **{key: plain(value) for key, value in options.items()})
            return Guarded(self.functions, made, either(self.failed, *map(failure_of, (*args, *options.values()))))

        return call

    def cast(self, type_: Any) -> Guarded:
        return self._tried(self.column.try_cast(type_), self)

    astype = cast

    def _tried(self, made: Any, *operands: Any) -> Guarded:
        """A Column that is NULL where an operand is, and also where it failed."""
        columns = [one.column for one in operands if isinstance(one, Guarded)]
        failed = made.isNull()
        for column in columns:
            failed = failed & column.isNotNull()
        return Guarded(self.functions, made, either(*map(failure_of, operands), failed))

    def _operated(self, name: str, left: Any, right: Any) -> Guarded:
        return self._tried(getattr(self.functions, name)(self._column(left), self._column(right)), left, right)

    def _column(self, value: Any) -> Any:
        return value.column if isinstance(value, Guarded) else self.functions.lit(value)

    def __add__(self, other: Any) -> Guarded:
        return self._operated("try_add", self, other)

    def __radd__(self, other: Any) -> Guarded:
        return self._operated("try_add", other, self)

    def __sub__(self, other: Any) -> Guarded:
        return self._operated("try_subtract", self, other)

    def __rsub__(self, other: Any) -> Guarded:
        return self._operated("try_subtract", other, self)

    def __mul__(self, other: Any) -> Guarded:
        return self._operated("try_multiply", self, other)

    def __rmul__(self, other: Any) -> Guarded:
        return self._operated("try_multiply", other, self)

    def __truediv__(self, other: Any) -> Guarded:
        return self._operated("try_divide", self, other)

    def __rtruediv__(self, other: Any) -> Guarded:
        return self._operated("try_divide", other, self)

    def __mod__(self, other: Any) -> Guarded:
        return self._operated("try_mod", self, other)

    def __rmod__(self, other: Any) -> Guarded:
        return self._operated("try_mod", other, self)

    def __neg__(self) -> Guarded:
        return 0 - self

    def _compared(self, name: str, other: Any) -> Guarded:
        return Guarded(self.functions, getattr(self.column, name)(plain(other)), either(self.failed, failure_of(other)))

    def __eq__(self, other: object) -> Guarded:  # type: ignore[override]  # a Column, as Spark's is
        return self._compared("__eq__", other)

    __hash__ = object.__hash__

    def __ne__(self, other: object) -> Guarded:  # type: ignore[override]
        return self._compared("__ne__", other)

    def __lt__(self, other: Any) -> Guarded:
        return self._compared("__lt__", other)

    def __le__(self, other: Any) -> Guarded:
        return self._compared("__le__", other)

    def __gt__(self, other: Any) -> Guarded:
        return self._compared("__gt__", other)

    def __ge__(self, other: Any) -> Guarded:
        return self._compared("__ge__", other)

    def __invert__(self) -> Guarded:
        return Guarded(self.functions, ~self.column, self.failed)

    def __and__(self, other: Any) -> Guarded:
        reached = self.functions.coalesce(self.column, self.functions.lit(True))
        return Guarded(self.functions, self.column & plain(other), either(self.failed, only_where(reached, failure_of(other))))

    def __or__(self, other: Any) -> Guarded:
        reached = ~self.functions.coalesce(self.column, self.functions.lit(False))
        return Guarded(self.functions, self.column | plain(other), either(self.failed, only_where(reached, failure_of(other))))

    def __bool__(self) -> bool:
        raise ValueError("a Column has no truth of its own: write & for and, | for or, ~ for not")


@dataclass(frozen=True, eq=False)
class Case(Guarded):
    """WHEN … THEN … so far; `rest` is where no condition has held."""

    rest: Any = field(default=None, repr=False)

    def when(self, condition: Guarded, value: Any) -> Case:
        made = self.column.when(plain(condition), plain(value))
        holds = self.functions.coalesce(plain(condition), self.functions.lit(False))
        failed = either(condition.failed, only_where(holds, failure_of(value)))
        return Case(self.functions, made, either(self.failed, only_where(self.rest, failed)), self.rest & ~holds)

    def otherwise(self, value: Any) -> Guarded:
        failed = either(self.failed, only_where(self.rest, failure_of(value)))
        return Guarded(self.functions, self.column.otherwise(plain(value)), failed)


class GuardedFunctions:
    """Spark's functions over guarded Columns."""

    def __init__(self, functions: Any) -> None:
        self._functions = functions

    def guarded(self, column: Any) -> Guarded:
        return column if isinstance(column, Guarded) else Guarded(self._functions, column)

    def when(self, condition: Any, value: Any) -> Case:
        """A CASE without branches is the module itself: both have `when`."""
        return Case(self._functions, self._functions, rest=self._functions.lit(True)).when(self.guarded(condition), value)

    def __getattr__(self, name: str) -> Callable[..., Guarded]:
        function = getattr(self._functions, _TRIED.get(name, name))

        def call(*args: Any, **options: Any) -> Guarded:
            made = function(*map(plain, args), **{key: plain(value) for key, value in options.items()})
            failed = either(*map(failure_of, (*args, *options.values())))
            if name in _TRIED or name in _AGGREGATES:
                failed = self._of_shard(failed)
            if name in _TRIED:
                failed = either(failed, made.isNull() & (self._functions.count(plain(args[0])) > 0))
            return Guarded(self._functions, made, failed)

        return call

    def _of_shard(self, failed: Any) -> Any:
        """Whether a row of the shard failed."""
        return None if failed is None else self._functions.count_if(failed) > 0


def plain(value: Any) -> Any:
    """What Spark is given."""
    if isinstance(value, list | tuple):
        return [plain(one) for one in value]
    return value.column if isinstance(value, Guarded) else value


def failure_of(value: Any) -> Any:
    """Where a value failed, or one of a list; None if it cannot have."""
    if isinstance(value, list | tuple):
        return either(*map(failure_of, value))
    return value.failed if isinstance(value, Guarded) else None
