"""The allow-list: every scalar function and operator an expression may use, one row each, and the door to build calls.

In: a name and typed arguments, from `query.check`. Out: a typed `Call` with Spark's implicit casts made explicit.
Convention: what is not in `FUNCTIONS`, `ALIASES` or `REWRITES` does not exist; a row is the only place that knows its function.
Implicit casts of literals are carried out at once (`vol > 50000` holds a BIGINT literal), so a planner sees constants.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from muntin.errors import DataError, Span, TypeMismatch
from muntin.expression.arithmetic import ARITHMETIC
from muntin.expression.casts import CAST, cast_signature
from muntin.expression.coercion import as_parameter
from muntin.expression.comparison import COMPARISONS
from muntin.expression.logic import LOGIC
from muntin.expression.mathematics import MATHEMATICS
from muntin.expression.own import OwnFunction
from muntin.expression.rounding import ROUNDING
from muntin.expression.signature import Function, LazyFunction, undefined
from muntin.expression.text_functions import TEXT_FUNCTIONS
from muntin.expression.time_functions import TIME_FUNCTIONS
from muntin.expression.tree import Call, Expression, Literal, OwnCall
from muntin.schema import DATE, OTHER, TIMESTAMP, Type

FUNCTIONS: Mapping[str, Function | LazyFunction] = MappingProxyType(
    {row.name: row for row in (*ARITHMETIC, *MATHEMATICS, *ROUNDING, *COMPARISONS, *LOGIC, *TEXT_FUNCTIONS, *TIME_FUNCTIONS, CAST)}
)

ALIASES: Mapping[str, str] = MappingProxyType(
    {
        "!=": "<>", "==": "=", "mod": "%", "||": "concat", "nvl": "coalesce", "ifnull": "coalesce",
        "ceiling": "ceil", "power": "pow", "signum": "sign", "log": "ln",
        "ucase": "upper", "lcase": "lower", "substr": "substring", "char_length": "length", "character_length": "length", "len": "length",
        "startswith": "starts_with", "endswith": "ends_with", "dayofmonth": "day", "isnull": "is_null",
    }
)  # fmt: skip


def call(function: str, *args: Expression, at: Span | None = None) -> Call:
    """The typed call of a function, operator or alias. Raises `TypeMismatch` for a name or types that are not in the list."""
    name = ALIASES.get(function.lower(), function.lower())
    if name in REWRITES:
        return REWRITES[name](args, at)
    row = FUNCTIONS.get(name)
    if row is None:
        raise TypeMismatch(
            "a function is one of the allow-list",
            values=function,
            way_out=f"use one of {', '.join(sorted({*FUNCTIONS, *ALIASES, *REWRITES}))}",
        )
    if len(args) not in row.arity:
        raise undefined(function, args, takes=_counted(row.arity), way_out="give it as many")
    if any(arg.type == OTHER for arg in args):
        raise undefined(function, args, takes="scalar values", way_out="leave out columns of other types")
    signature = row.typed(args)
    cast_args = tuple(_coerced(arg, type_) for arg, type_ in zip(args, signature.arguments, strict=True))
    return Call(name, cast_args, signature.result, at)


def own_call(function: OwnFunction, *args: Expression, at: Span | None = None) -> OwnCall:
    """The typed call of a user's own function."""
    takes = ", ".join(str(type_).upper() for type_ in function.arguments)
    if len(args) != len(function.arguments):
        raise undefined(function.name, args, takes=f"{_counted_exactly(len(function.arguments))}: {takes}", way_out="give it as many")
    if not all(as_parameter(arg, type_) for arg, type_ in zip(args, function.arguments, strict=True)):
        raise undefined(function.name, args, takes=takes)
    cast_args = tuple(_coerced(arg, type_) for arg, type_ in zip(args, function.arguments, strict=True))
    return OwnCall(function, cast_args, function.result, at)


def cast(expression: Expression, type_: Type, at: Span | None = None) -> Expression:
    """CAST(expression AS type). A literal is cast at once where that does no harm: an integer literal would change
    how it meets decimals, and one that fails must fail when it is reached, not before."""
    signature = cast_signature(expression.type, type_)
    made = Call("cast", (expression,), signature.result, at)
    return made if type_.integral else _folded(made)


def _coerced(arg: Expression, type_: Type) -> Expression:
    if arg.type == type_:
        return arg
    return _folded(Call("cast", (arg,), cast_signature(arg.type, type_).result, arg.at))


def _folded(made: Call) -> Expression:
    """The literal that the cast of a literal gives, if it succeeds."""
    arg = made.args[0]
    if not isinstance(arg, Literal):
        return made
    try:
        return Literal(None if arg.value is None else CAST.value(made)(arg.value), made.type, made.at)
    except DataError:
        return made


def _counted_exactly(count: int) -> str:
    return _counted(range(count, count + 1))


def _counted(arity: range) -> str:
    least, most = arity.start, arity.stop - 1
    if least == most:
        return f"{least} argument{'s' if least > 1 else ''}"
    return f"{least} to {most} arguments" if most < 10 else f"{least} arguments or more"


Rewrite = Callable[[tuple[Expression, ...], Span | None], Call]


def _arguments(name: str, args: tuple[Expression, ...], count: int) -> tuple[Expression, ...]:
    if len(args) != count:
        raise undefined(name, args, takes=_counted_exactly(count), way_out="give it as many")
    return args


def _between(args: tuple[Expression, ...], at: Span | None) -> Call:
    value, low, high = _arguments("BETWEEN", args, 3)
    return call("and", call(">=", value, low, at=at), call("<=", value, high, at=at), at=at)


def _nullif(args: tuple[Expression, ...], at: Span | None) -> Call:
    value, unwanted = _arguments("nullif", args, 2)
    return call("case", call("=", value, unwanted, at=at), Literal(None, value.type), value, at=at)


def _if(args: tuple[Expression, ...], at: Span | None) -> Call:
    return call("case", *_arguments("if", args, 3), at=at)


def _is_not_null(args: tuple[Expression, ...], at: Span | None) -> Call:
    return call("not", call("is_null", *_arguments("IS NOT NULL", args, 1), at=at), at=at)


def _cast_to(name: str, type_: Type) -> Rewrite:
    def rewrite(args: tuple[Expression, ...], at: Span | None) -> Call:
        (value,) = _arguments(name, args, 1)
        return Call("cast", (value,), cast_signature(value.type, type_).result, at)

    return rewrite


#: Functions that are shorthand for others, so that equal things become equal expressions and are shared.
REWRITES: Mapping[str, Rewrite] = MappingProxyType(
    {
        "between": _between,
        "nullif": _nullif,
        "if": _if,
        "is_not_null": _is_not_null,
        "isnotnull": _is_not_null,
        "to_date": _cast_to("to_date", DATE),
        "date": _cast_to("date", DATE),
        "timestamp": _cast_to("timestamp", TIMESTAMP),
    }
)
