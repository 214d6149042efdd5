"""The door for users' own scalar functions: opaque predicates, and values that the built-in functions do not compute.

In: `spark_function(…)`, `python_function(…)`. Out: `OwnFunction`s for WHERE, ON, GROUP BY, FILTER, aggregates' arguments and, where
they have a Python meaning, select lists and HAVING. Convention: types are written as in CREATE STREAM, `args="BIGINT, DOUBLE"`;
arguments are cast to them as those of built-in functions are. A name is the user's own: one that hides a built-in is refused.
Not supported: functions without arguments, with a varying number of them, or of arrays, maps and structs.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from sqlglot import exp
from sqlglot.errors import ParseError

from muntin.aggregates.base import Aggregate
from muntin.errors import Refusal, TypeMismatch
from muntin.expression.own import OwnFunction, PythonFunction, SparkFunction
from muntin.query import datatypes
from muntin.query.calls import SCALARS
from muntin.query.dialect import Muntin
from muntin.query.text import parse_query
from muntin.schema import Type

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,99}")
_COMMA = re.compile(r",(?![^()]*\))")


def spark_function(
    name: str, build: Callable[..., Any], *, args: str, returns: str, python: Callable[..., Any] | None = None
) -> SparkFunction:
    """A function made of Spark Columns: `build(*columns)` returns one, of exactly the type `returns`. Rows stay in the JVM.

    Its Column must never raise, since that would fail the batch of all queries: use Spark's `try_` functions, which give NULL.
    `python` is what it means for one row of Python values. Without it the function stands only where rows are: in WHERE, ON,
    GROUP BY, FILTER and aggregates' arguments, not over aggregates.
    """
    return SparkFunction(_checked_name(name), _types(name, args), _type(name, returns), build, python)


def python_function(name: str, function: Callable[..., Any], *, args: str, returns: str) -> PythonFunction:
    """A function of Python values: int, float, Decimal, str, bool, date, datetime in UTC.

    On Spark it is called once per row in Python workers, which need Muntin: rows leave the JVM for it. A comparison of two columns
    took 500 ns a row on two cores; as a `spark_function` it took 45. A call that raises counts as failed for its row, like a
    division by zero.
    """
    return PythonFunction(_checked_name(name), _types(name, args), _type(name, returns), function)


def functions_by_name(functions: Iterable[OwnFunction], aggregates: Mapping[str, Aggregate]) -> dict[str, OwnFunction]:
    """The functions by their names in lower case; refuses one that hides an aggregate or another function."""
    found: dict[str, OwnFunction] = {}
    for function in functions:
        name = function.name.lower()
        if name in found or name in {known.lower() for known in aggregates}:
            kind = "a function" if name in found else "an aggregate"
            law = "functions and aggregates have names of their own, whatever the case"
            raise Refusal(law, values=f"{function.name}, and there is {kind} of that name", way_out="choose another name")
        found[name] = function
    return found


def _checked_name(name: str) -> str:
    if not _NAME.fullmatch(name):
        law = "a function's name is a letter or _, then up to 99 letters, digits or _"
        raise Refusal(law, values=repr(name), way_out="choose a plain name such as is_odd")
    if name.lower() in {*SCALARS, "cast", "try_cast", "window"}:
        raise Refusal("an own function hides no built-in one", values=name, way_out="choose another name")
    if not _is_call(name):
        raise Refusal("a function's name is no word of the SQL", values=name, way_out="choose another name")
    return name


def _is_call(name: str) -> bool:
    """Whether SQL reads `name(x)` as a call of a function of that name."""
    try:
        (item,) = parse_query(f"SELECT {name}(x) FROM s", "q").query.expressions  # noqa: S608 the name is plain, and nothing runs it
    except Refusal:
        return False
    return isinstance(item, exp.Anonymous) and item.name == name


def _types(name: str, text: str) -> tuple[Type, ...]:
    if not text.strip():
        raise Refusal(f"{name} takes one argument or more", values="none", way_out="write args='BIGINT', say")
    return tuple(_type(name, one) for one in _COMMA.split(text))


def _type(name: str, text: str) -> Type:
    try:
        return datatypes.scalar_type_of(exp.DataType.build(text.strip(), dialect=Muntin))
    except TypeMismatch as mismatch:
        raise Refusal(f"{name}: {mismatch.law}", values=mismatch.values, way_out=mismatch.way_out) from None
    except (ParseError, ValueError):
        raise Refusal(f"{name}: a type is one of Spark's scalar types", values=text.strip(), way_out="write BIGINT, say") from None
