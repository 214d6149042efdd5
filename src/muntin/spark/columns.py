"""Expressions as Spark Columns that never raise, with a second Column that says where they would have.

In: a typed expression over the columns of a stream, and `resolve`, which gives the Column of a name.
Out: `Compiled(value, failed)`: `value` is NULL where the expression failed; `failed` is true there and never NULL, and is None
for an expression that cannot fail, which is most of them. Reason: one query's overflow must not fail the shared batch.
Convention: only an argument that Spark's ANSI mode would have evaluated counts: after a NULL operand or a decided AND nothing fails.
The session runs in UTC and in ANSI mode. No SQL text is built: names go through `resolve`, literals through `lit`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date, datetime

import pyspark.sql.functions as F
from pyspark.sql import Column
from pyspark.sql import types as spark_types

from muntin.errors import Refusal
from muntin.expression import tree
from muntin.expression.functions import FUNCTIONS
from muntin.expression.signature import Evaluation, Function, LazyFunction, either, only_where
from muntin.schema import OTHER, Kind, Type, decimal
from muntin.spark.own_columns import own_column
from muntin.timeline import instant_of

_SPARK_TYPES: dict[Kind, spark_types.DataType] = {
    Kind.BOOLEAN: spark_types.BooleanType(),
    Kind.TINYINT: spark_types.ByteType(),
    Kind.SMALLINT: spark_types.ShortType(),
    Kind.INT: spark_types.IntegerType(),
    Kind.BIGINT: spark_types.LongType(),
    Kind.FLOAT: spark_types.FloatType(),
    Kind.DOUBLE: spark_types.DoubleType(),
    Kind.STRING: spark_types.StringType(),
    Kind.DATE: spark_types.DateType(),
    Kind.TIMESTAMP: spark_types.TimestampType(),
    Kind.TIMESTAMP_NTZ: spark_types.TimestampNTZType(),
    Kind.NULL: spark_types.NullType(),
}
_EPOCH_DAY = date(1970, 1, 1).toordinal()


@dataclass(frozen=True)
class Compiled:
    """A Column that never raises, and where it failed; None if it cannot."""

    value: Column
    failed: Column | None = None


def spark_type(type_: Type) -> spark_types.DataType:
    """The Spark type of one of ours. OTHER has none."""
    if type_.kind is Kind.DECIMAL:
        return spark_types.DecimalType(type_.precision, type_.scale)
    if type_ == OTHER:
        raise Refusal("a column used by a query has a scalar type", values=str(type_), way_out="leave the column out of the query")
    return _SPARK_TYPES[type_.kind]


def type_of_spark(data_type: spark_types.DataType) -> Type:
    """Our type for one of Spark's; OTHER for arrays, maps, structs, binary, intervals and strings with a collation."""
    if isinstance(data_type, spark_types.DecimalType):
        return decimal(data_type.precision, data_type.scale)
    return next((Type(kind) for kind, known in _SPARK_TYPES.items() if known == data_type), OTHER)


@dataclass(frozen=True)
class _Part:
    """A part of an expression while it is built. `leaks` says that `value` may be something else than NULL where it failed."""

    value: Column
    failed: Column | None = None
    leaks: bool = False


def compile_column(expression: tree.Expression, resolve: Callable[[str], Column]) -> Compiled:
    """The expression over rows of a stream. Aggregates, group keys and window bounds have no Column and are refused."""
    part = _compile(expression, resolve)
    if part.leaks and part.failed is not None:  # masked once, at the root: masking every part would double the size at each level
        return Compiled(F.when(~part.failed, part.value), part.failed)
    return Compiled(part.value, part.failed)


def _compile(expression: tree.Expression, resolve: Callable[[str], Column]) -> _Part:
    if isinstance(expression, tree.Column):
        return _Part(resolve(expression.name))
    if isinstance(expression, tree.Literal):
        return _Part(literal_column(expression))
    if isinstance(expression, tree.Call) and expression.function in ("and", "or"):
        return _compile_connected(expression, [_compile(operand, resolve) for operand in _operands(expression)])
    if isinstance(expression, tree.Call):
        return _compile_call(expression, [_compile(arg, resolve) for arg in expression.args])
    if isinstance(expression, tree.OwnCall):
        return _compile_own(expression, [_compile(arg, resolve) for arg in expression.args])
    raise Refusal(
        "an expression over rows stands on columns only",
        values=str(expression),
        way_out="use aggregates, group keys and window bounds in the select list or in HAVING",
    )


def literal_column(literal: tree.Literal) -> Column:
    """A constant, exact to the last digit and of exactly its type."""
    value = literal.value
    if isinstance(value, datetime):  # `lit` of a datetime goes through the calendar of java.sql
        column = F.timestamp_micros(F.lit(instant_of(value)).cast("bigint"))
        return column if literal.type.kind is Kind.TIMESTAMP else column.cast(str(literal.type))
    if isinstance(value, date):
        return F.date_from_unix_date(F.lit(value.toordinal() - _EPOCH_DAY))
    exact = literal.type.kind in (Kind.BOOLEAN, Kind.STRING, Kind.DOUBLE) and value is not None
    return F.lit(value) if exact or literal.type.kind is Kind.NULL else F.lit(value).cast(str(literal.type))


def _compile_call(call: tree.Call, args: Sequence[_Part]) -> _Part:
    row = FUNCTIONS[call.function]
    columns, failures = [arg.value for arg in args], [arg.failed for arg in args]
    value = row.column(F, call, *columns)
    if isinstance(row, Function) and row.evaluation is not Evaluation.ALL:
        failure = row.failure(F, call, value, *columns) if row.can_fail(call) else None
        from_right = row.evaluation is Evaluation.RIGHT_TO_NULL
        return _Part(value, _failed(failure, call.args, args, from_right=from_right), any(arg.leaks for arg in args))
    if all(failure is None for failure in failures):
        return _Part(value)
    failed = row.failed(F, columns, failures) if isinstance(row, LazyFunction) else either(*failures)
    return _Part(value, failed, leaks=True)  # it may make something of the NULL of an argument that failed


def _compile_own(call: tree.OwnCall, args: Sequence[_Part]) -> _Part:
    value, failure = own_column(call.function, [arg.value for arg in args])
    return _Part(value, _failed(failure, call.args, args), any(arg.leaks for arg in args))


def _failed(
    failure: Column | None, expressions: Sequence[tree.Expression], args: Sequence[_Part], *, from_right: bool = False
) -> Column | None:
    """Where an evaluated argument failed, or the function itself (`failure`), which needs all of them not to be NULL."""
    order = list(zip(expressions, args, strict=True))
    if from_right:
        order.reverse()
    for expression, arg in reversed(order):
        failure = _failed_before(arg, failure) if _may_be_null(expression) else failure
    return failure


def _failed_before(arg: _Part, later: Column | None) -> Column | None:
    """Where `arg` failed or, where it is not NULL, what comes later.

    The failure of `arg` stands in the ELSE branch, where Spark looks for no common subexpressions: a sum of 32 terms written
    with OR ran out of memory in the code generator, since every partial sum is common to the sums above it.
    """
    if later is None or arg.failed is None:
        return arg.failed if later is None else only_where(arg.value.isNotNull(), later)
    if arg.leaks:
        return arg.failed | (arg.value.isNotNull() & later)
    return F.when(arg.value.isNotNull(), later).otherwise(arg.failed)


def _may_be_null(expression: tree.Expression) -> bool:
    return not isinstance(expression, tree.Literal) or expression.value is None


def _operands(call: tree.Call) -> list[tree.Expression]:
    """What AND or OR connects, however it is nested, in order."""
    found: list[tree.Expression] = []
    waiting: list[tree.Expression] = [call]
    while waiting:
        one = waiting.pop()
        if isinstance(one, tree.Call) and one.function == call.function:
            waiting += reversed(one.args)
        else:
            found.append(one)
    return found


def _compile_connected(call: tree.Call, parts: Sequence[_Part]) -> _Part:
    """Any number of conditions, connected in halves: Spark goes down a tree by recursion, and a chain of 400 overflows its stack."""
    row = FUNCTIONS[call.function]
    assert isinstance(row, LazyFunction)
    values, failures = [part.value for part in parts], [part.failed for part in parts]
    level = list(values)
    while len(level) > 1:
        halves = [level[at : at + 2] for at in range(0, len(level), 2)]
        level = [row.column(F, call, *half) if len(half) == 2 else half[0] for half in halves]
    if all(failure is None for failure in failures):
        return _Part(level[0])
    return _Part(level[0], row.failed(F, values, failures), leaks=True)
