"""What one row of `functions.FUNCTIONS` says: how a function is typed, built as a Spark Column, and evaluated on one row.

In: argument expressions at checking; Columns at planning; Python values at assembly. Out: types, Columns, values.
Convention: a Column never raises. A function that can fail gives NULL where it failed; where it also gives NULL otherwise, on
arguments that are not NULL, its row says how to tell. Columns are built with the module `pyspark.sql.functions`, handed in as
`functions`: this package does not import it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

from muntin.errors import TypeMismatch
from muntin.expression.tree import Call, Expression
from muntin.schema import Type

#: A compiled expression: takes the scope of one result row, gives its value.
Thunk = Callable[[Any], Any]

ONE = range(1, 2)
TWO = range(2, 3)
MANY = range(1, sys.maxsize)


@dataclass(frozen=True)
class Signature:
    """The types the arguments are cast to, and the type of the result."""

    arguments: tuple[Type, ...]
    result: Type


class Evaluation(Enum):
    """Which arguments Spark evaluates, and so which of their failures count."""

    LEFT_TO_NULL = "from the left up to the first NULL, which is then the result"
    RIGHT_TO_NULL = "from the right up to the first NULL, which is then the result"
    ALL = "all of them; the function takes NULLs itself"


def never(_: Call) -> bool:
    return False


def null_result(_functions: Any, _call: Call, value: Any, *_columns: Any) -> Any:
    return value.isNull()


@dataclass(frozen=True)
class Function:
    """A function whose arguments are evaluated before it is.

    `column(functions, call, *columns)` gives the Column; `value(call)` gives a Python function of the argument values.
    `failure(functions, call, result, *columns)` says where it failed, given that no argument is NULL.
    `beyond` says that its `value` takes times outside the years 1 to 9999.
    """

    name: str
    arity: range
    typed: Callable[[Sequence[Expression]], Signature]
    column: Callable[..., Any]
    value: Callable[[Call], Callable[..., Any]]
    can_fail: Callable[[Call], bool] = never
    failure: Callable[..., Any] = null_result
    evaluation: Evaluation = Evaluation.LEFT_TO_NULL
    beyond: bool = False


@dataclass(frozen=True)
class LazyFunction:
    """A function that decides itself which arguments are evaluated: AND, OR, CASE, COALESCE, IN.

    `lazily(thunks)` gives the compiled call; `failed(functions, columns, failures)` says on which rows an argument that is
    reached has failed: failures are boolean Columns without NULLs, or None for an argument that cannot fail.
    """

    name: str
    arity: range
    typed: Callable[[Sequence[Expression]], Signature]
    column: Callable[..., Any]
    lazily: Callable[[tuple[Thunk, ...]], Thunk]
    failed: Callable[[Any, Sequence[Any], Sequence[Any]], Any]


def undefined(name: str, args: Sequence[Expression], *, takes: str, way_out: str = "cast the arguments to such types") -> TypeMismatch:
    """The refusal of a call with arguments that the function is not defined on."""
    found = ", ".join(f"{arg} of type {arg.type}" for arg in args)
    return TypeMismatch(f"{name} takes {takes}", values=found, way_out=way_out)


def either(*failures: Any) -> Any:
    """Where one of the failures is; None if none can be."""
    found = [failure for failure in failures if failure is not None]
    result = found[0] if found else None
    for failure in found[1:]:
        result = result | failure
    return result


def only_where(condition: Any, failure: Any) -> Any:
    """A failure that counts only where `condition` holds; None stays None."""
    return None if failure is None else condition & failure
