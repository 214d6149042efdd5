"""Functions of strings, and LIKE.

In: values; any other scalar is first cast to its text, as Spark does. Out: rows of `functions.FUNCTIONS`.
Convention: positions and lengths count code points from 1; `trim` takes away spaces only; a LIKE pattern is a literal, so that
a bad one is refused before anything runs. Upper and lower case follow Unicode; scripts that are newer than Python's tables
(14.0 in Python 3.11) stay as they are in Python.
Not supported: RLIKE and other regular expressions: Java's and Python's differ.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from muntin.errors import TypeMismatch
from muntin.expression.signature import MANY, ONE, TWO, Function, Signature, undefined
from muntin.expression.tree import Call, Expression, Literal
from muntin.schema import BOOLEAN, INT, NULL, STRING, Type


def _typed(result: Type) -> Callable[[Sequence[Expression]], Signature]:
    return lambda args: Signature((STRING,) * len(args), result)


def _row(name: str, spark_name: str, value: Callable[..., Any], *, arity: range = ONE, result: Type = STRING) -> Function:
    def column(functions: Any, _: Call, *columns: Any) -> Any:
        return getattr(functions, spark_name)(*columns)

    return Function(name, arity, _typed(result), column, lambda _: value)


def _substring_typed(args: Sequence[Expression]) -> Signature:
    if all(arg.type.numeric or arg.type in (STRING, NULL) for arg in args[1:]):
        return Signature((STRING, *(INT,) * (len(args) - 1)), STRING)
    raise undefined("substring", args, takes="a string, a position and a length")


def _substring_column(functions: Any, _: Call, text: Any, start: Any, length: Any = None) -> Any:
    return functions.substring(text, start, functions.lit(2**31 - 1) if length is None else length)


def _substring(text: str, start: int, length: int = 2**31 - 1) -> str:
    """From position `start`, counted from 1, or from the end if negative; 0 is the same as 1."""
    first = start - 1 if start > 0 else start + len(text) if start < 0 else 0
    return text[max(first, 0) : max(first + length, 0)]


def _concatenated(*texts: str) -> str:
    return "".join(texts)


def _literal_text(name: str, arg: Expression) -> str:
    if isinstance(arg, Literal) and isinstance(arg.value, str):
        return arg.value
    raise undefined(name, (arg,), takes="a literal pattern and escape character", way_out="write the pattern as a string in quotes")


def _like_typed(name: str) -> Callable[[Sequence[Expression]], Signature]:
    def typed(args: Sequence[Expression]) -> Signature:
        texts = [_literal_text(name, arg) for arg in args[1:]]
        like_expression(*texts)  # refuses a bad pattern
        return Signature((STRING,) * len(args), BOOLEAN)

    return typed


def like_expression(pattern: str, escape: str = "\\") -> str:
    r"""The regular expression of a LIKE pattern.

    >>> like_expression(r"5\%_a%")
    '5%.a.*'
    """
    if len(escape) != 1:
        raise TypeMismatch("an escape is one character", values=repr(escape), way_out="write ESCAPE '!' or the like")
    pieces, characters = [], iter(pattern)
    for character in characters:
        if character == escape:
            escaped = next(characters, "")
            if escaped not in ("%", "_", escape):
                raise TypeMismatch(
                    "an escape character in a LIKE pattern stands before %, _ or itself",
                    values=repr(pattern),
                    way_out=f"double it: {escape}{escape}",
                )
            pieces.append(re.escape(escaped))
        else:
            pieces.append({"%": ".*", "_": "."}.get(character) or re.escape(character))
    return "".join(pieces)


def _like_value(call: Call) -> Callable[..., bool]:
    pattern, *escape = [_literal_text(call.function, arg) for arg in call.args[1:]]
    if call.function == "ilike":
        pattern = pattern.lower()
    matches = re.compile(like_expression(pattern, *escape), re.DOTALL).fullmatch
    if call.function == "ilike":
        return lambda text, *_: matches(text.lower()) is not None
    return lambda text, *_: matches(text) is not None


def _like_column(functions: Any, call: Call, *columns: Any) -> Any:
    return getattr(functions, call.function)(*columns)


TEXT_FUNCTIONS: tuple[Function, ...] = (
    _row("upper", "upper", str.upper),
    _row("lower", "lower", str.lower),
    _row("length", "length", len, result=INT),
    _row("trim", "trim", lambda text: text.strip(" ")),
    _row("ltrim", "ltrim", lambda text: text.lstrip(" ")),
    _row("rtrim", "rtrim", lambda text: text.rstrip(" ")),
    _row("starts_with", "startswith", str.startswith, arity=TWO, result=BOOLEAN),
    _row("ends_with", "endswith", str.endswith, arity=TWO, result=BOOLEAN),
    _row("contains", "contains", lambda text, part: part in text, arity=TWO, result=BOOLEAN),
    Function("substring", range(2, 4), _substring_typed, _substring_column, lambda _: _substring),
    _row("concat", "concat", _concatenated, arity=MANY),
    Function("like", range(2, 4), _like_typed("LIKE"), _like_column, _like_value),
    Function("ilike", range(2, 4), _like_typed("ILIKE"), _like_column, _like_value),
)
