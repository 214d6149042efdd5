"""Random well-typed expressions over a small table with NULLs and extreme values, each in our tree and in Spark SQL.

In: a seeded `Random`. Out: `Sample`s and the `rows()` to evaluate them on. Convention: the SQL has no implicit casts of ours.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from random import Random
from typing import Any

from muntin.errors import TypeMismatch
from muntin.expression.functions import call, cast, own_call
from muntin.expression.own import OwnFunction
from muntin.expression.tree import Call, Column, Expression, Literal, columns_of, walk
from muntin.schema import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    SMALLINT,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    TINYINT,
    Kind,
    Type,
    decimal,
)
from opaque import LETTERS, ODD, SHARE

COLUMNS: dict[str, Type] = {
    "boo": BOOLEAN, "ti": TINYINT, "si": SMALLINT, "i": INT, "l": BIGINT, "f": FLOAT, "d": DOUBLE,
    "m": decimal(10, 2), "w": decimal(38, 18), "z": decimal(38, 0), "s": STRING, "dt": DATE, "ts": TIMESTAMP, "tn": TIMESTAMP_NTZ,
}  # fmt: skip
FIRST, LAST = datetime(1, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=UTC)
TIMES = [FIRST, datetime(1969, 12, 31, 23, 59, 59, 999999, tzinfo=UTC), datetime(2026, 2, 28, 13, 14, 15, 160000, tzinfo=UTC), LAST]
POOLS: dict[str, list[Any]] = {
    "boo": [True, False],
    "ti": [-128, -127, -1, 0, 1, 2, 127],
    "si": [-32768, -1, 0, 1, 7, 32767],
    "i": [-(2**31), -1, 0, 1, 3, 45, 2**31 - 1],
    "l": [-(2**63), -(2**31), -1, 0, 1, 10, 2**53 + 1, 2**63 - 1],
    "f": [math.nan, -math.inf, -1.5, -0.0, 0.0, 0.10000000149011612, 2.5, 16777216.0, 3.4028234663852886e38],
    "d": [math.nan, math.inf, -math.inf, -2.5, -0.0, 0.0, 5e-324, 0.1, 2.345, 1e7, 1.7976931348623157e308, 2.0**63, -(2.0**63)],
    "m": [Decimal("-99999999.99"), Decimal("-0.01"), Decimal("0.00"), Decimal("0.05"), Decimal("1.00"), Decimal("99999999.99")],
    "w": [Decimal(f"-{'9' * 20}.{'9' * 18}"), Decimal("0.000000000000000001"), Decimal("0E-18"), Decimal("12.345678901234567890")],
    "z": [Decimal("-" + "9" * 38), Decimal(-1), Decimal(0), Decimal(3), Decimal(12345678901234567890123456789012345678)],
    "s": ["", " ", "a", "A%_", "é😀", "ß", "12", " -7 ", "1.5", "1e3", "true", "2026-02-28", "2026-02-28 13:14:15.16", "NaN", "x\ny"],
    "dt": [moment.date() for moment in TIMES],
    "ts": TIMES,
    "tn": TIMES,
}  # fmt: skip


@dataclass(frozen=True)
class Sample:
    """One expression in our tree and the same in Spark SQL, without our implicit casts."""

    expression: Expression
    sql: str


def rows() -> list[dict[str, Any]]:
    """Every value of every pool once or more, in combinations that differ, a NULL now and then."""
    return [
        {
            name: None if (7 * n + 3 * k) % 11 == 0 else pool[(n * (k + 1) + n // len(pool)) % len(pool)]
            for k, (name, pool) in enumerate(POOLS.items())
        }
        for n in range(48)
    ]


def literal_sql(value: Any, type_: Type) -> str:
    if isinstance(value, str):
        return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"
    if isinstance(value, float):
        return f"double('{value}')"
    if isinstance(value, datetime | date):
        return f"{type_.kind.value} '{value.replace(tzinfo=None) if isinstance(value, datetime) else value}'"
    suffix = {Kind.TINYINT: "Y", Kind.SMALLINT: "S", Kind.BIGINT: "L", Kind.DECIMAL: "BD"}.get(type_.kind, "")
    return f"{value}{suffix}"


def literal(value: Any, type_: Type) -> Sample:
    return Sample(Literal(value, type_), literal_sql(value, type_))


LITERALS = [
    literal(True, BOOLEAN), literal(0, INT), literal(1, INT), literal(-2, INT), literal(100, INT), literal(7, SMALLINT),
    literal(3, TINYINT),
    literal(2**40, BIGINT), literal(0.5, DOUBLE), literal(Decimal("1.5"), decimal(2, 1)),
    literal(Decimal("0.00"), decimal(2, 2)), literal("2026-02-28", STRING), literal("12", STRING), literal("a", STRING),
    literal(date(2026, 2, 28), DATE), literal(TIMES[2], TIMESTAMP), Sample(Literal(None, Type(Kind.NULL)), "NULL"),
]  # fmt: skip
LEAVES = [Sample(Column(name, type_), name) for name, type_ in COLUMNS.items()]
NUMBERS = [leaf for leaf in LEAVES + LITERALS if leaf.expression.type.numeric]

INFIX = ["+", "-", "*", "/", "%", "=", "<>", "<", "<=", ">", ">=", "<=>"]
PREFIX = ["abs", "floor", "ceil", "sign", "sqrt", "upper", "lower", "length", "trim", "ltrim", "rtrim", "year", "month", "day", "dayofweek",
          "hour", "minute", "second", "unix_seconds", "unix_millis", "unix_micros"]  # fmt: skip
TARGETS = [
    BOOLEAN,
    TINYINT,
    SMALLINT,
    INT,
    BIGINT,
    FLOAT,
    DOUBLE,
    decimal(5, 2),
    decimal(12, 0),
    decimal(38, 6),
    STRING,
    DATE,
    TIMESTAMP,
    TIMESTAMP_NTZ,
]
#: Names that Spark spells differently.
SPARK_NAMES = {"starts_with": "startswith", "ends_with": "endswith"}


def built(name: str, template: str) -> Callable[..., Sample | None]:
    """The call and its SQL; None where the arguments have no such types, which is not what is tested here."""

    def build(*args: Sample) -> Sample | None:
        try:
            expression = call(name, *(arg.expression for arg in args))
        except TypeMismatch:
            return None
        return Sample(expression, template.format(*(arg.sql for arg in args))) if comparable(expression) else None

    return build


def own(function: OwnFunction, template: str) -> Callable[..., Sample | None]:
    """A call of an own function, and SQL that means the same."""

    def build(*args: Sample) -> Sample | None:
        try:
            expression = own_call(function, *(arg.expression for arg in args))
        except TypeMismatch:
            return None
        return Sample(expression, template.format(*(arg.sql for arg in args))) if comparable(expression) else None

    return build


def cast_sample(arg: Sample, target: Type) -> Sample | None:
    try:
        expression = cast(arg.expression, target)
    except TypeMismatch:
        return None
    return Sample(expression, f"CAST({arg.sql} AS {target})") if comparable(expression) else None


def comparable(expression: Expression) -> bool:
    """Whether Spark is a fair judge: where we are stricter or more exact on purpose, or Java 17 differs from 21, other tests look.

    An expression without columns is left out, since Spark would evaluate it while it plans.
    """
    return bool(columns_of(expression)) and all(map(_comparable_call, walk(expression)))


def _comparable_call(node: Expression) -> bool:
    if not isinstance(node, Call):
        return True
    arg, target = node.args[0], node.type
    if target.kind is Kind.NULL:  # Spark need not evaluate what has only NULL to give
        return False
    if node.function in ("abs", "negative"):
        return arg.type.precision <= 34
    if node.function != "cast":
        return True
    reads_time = arg.type == STRING and (target == DATE or target.temporal) and not isinstance(arg, Column | Literal)
    writes_float = arg.type.fractional and target.kind in (Kind.STRING, Kind.DECIMAL) and not isinstance(arg, Column)
    rounds_twice = target == DOUBLE and arg.type == FLOAT and isinstance(arg, Call)  # Spark's optimizer may skip the cast to FLOAT
    return not (reads_time or writes_float or rounds_twice or (arg.type.numeric and target == TIMESTAMP))


def functional(name: str, count: int) -> Callable[..., Sample | None]:
    return built(name, f"{SPARK_NAMES.get(name, name)}({', '.join(['{}'] * count)})")


PLACES = [literal(n, INT) for n in (-2, -1, 0, 1, 3)]
UNITS = [literal(unit, STRING) for unit in ("year", "quarter", "MONTH", "week", "day", "hour", "minute", "second", "millisecond")]
PATTERNS = [literal(pattern, STRING) for pattern in ("%", "_", "a%", "%\\%\\_", "é_", "%.%", "")]
#: Own functions and what they mean in SQL: they do not see NULL, and arguments are evaluated from the left.
OWN = {
    ODD: "if(CAST({0} AS BIGINT) % 5 = 0, NULL, pmod(CAST({0} AS BIGINT), 2) = 1)",
    LETTERS: "if(CAST({0} AS STRING) = '', NULL, length(CAST({0} AS STRING)))",
    SHARE: "if(CAST({0} AS BIGINT) IS NULL, NULL, floor(pmod(CAST({0} AS BIGINT), 100) / CAST({1} AS INT)))",
}
#: How a larger expression is made of smaller ones: a builder and what it takes: any expression, a condition or one of a list.
ANY, CONDITION = "any", "condition"
OPERATIONS: list[tuple[Callable[..., Sample | None], list[Any]]] = [
    *((built(symbol, f"({{}} {symbol} {{}})"), [ANY, ANY]) for symbol in INFIX * 2),
    *((functional(name, 1), [ANY]) for name in PREFIX),
    *((functional(name, 2), [ANY, ANY]) for name in ("starts_with", "ends_with", "contains", "concat", "coalesce")),
    *((functional(name, 3), [ANY, ANY, ANY]) for name in ("greatest", "least", "substring", "coalesce", "concat")),
    (built("negative", "(- {})"), [ANY]),
    (functional("round", 1), [ANY]),
    (functional("round", 2), [ANY, PLACES]),
    (functional("date_trunc", 2), [UNITS, ANY]),
    (built("like", "({} LIKE {})"), [ANY, PATTERNS]),
    (built("ilike", "({} ILIKE {})"), [ANY, PATTERNS]),
    (built("and", "({} AND {})"), [CONDITION, CONDITION]),
    (built("or", "({} OR {})"), [CONDITION, CONDITION]),
    (built("not", "(NOT {})"), [CONDITION]),
    (built("is_null", "({} IS NULL)"), [ANY]),
    (built("in", "({} IN ({}, {}, {}))"), [ANY, ANY, ANY, ANY]),
    # BETWEEN and NULLIF as Spark rewrites them: it would evaluate their first argument outside `try_to_binary`.
    (built("between", "(({0} >= {1}) AND ({0} <= {2}))"), [ANY, ANY, ANY]),
    (built("nullif", "if({0} = {1}, NULL, {0})"), [ANY, ANY]),
    (built("case", "(CASE WHEN {} THEN {} WHEN {} THEN {} ELSE {} END)"), [CONDITION, ANY, CONDITION, ANY, ANY]),
    (built("case", "(CASE WHEN {} THEN {} END)"), [CONDITION, ANY]),
    (built("if", "if({}, {}, {})"), [CONDITION, ANY, ANY]),
    *[(own(function, sql), [ANY] * len(function.arguments)) for function, sql in OWN.items()] * 2,
    *[(cast_sample, [ANY, TARGETS])] * 8,
]


def random_sample(random: Random, depth: int) -> Sample:
    """A random expression at most so deep."""
    while depth > 0:
        build, takes = random.choice(OPERATIONS)
        made = build(*(argument(random, wanted, random.randrange(depth)) for wanted in takes))
        if made is not None:
            return made
    return random.choice(random.choice([LEAVES, NUMBERS, LITERALS]))


def argument(random: Random, wanted: Any, depth: int) -> Any:
    if isinstance(wanted, list):
        return random.choice(wanted)
    while True:
        made = random_sample(random, depth + (wanted is CONDITION))
        if wanted is ANY or made.expression.type == BOOLEAN:
            return made
