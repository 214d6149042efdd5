"""Users' own functions as Spark Columns.

In: an `OwnFunction` and the Columns of its arguments, cast to the declared types. Out: the Column of its value, NULL where an argument
is, and, for a Python function, one that is true where it failed. Convention: a Python function runs as an Arrow UDF over batches of
rows, one call a row; it gives a struct of value and failure, so an exception is data and fails no batch. Times go to Python and
back as microseconds: the time zone of a worker cannot change them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache, reduce
from operator import and_
from typing import Any

import pyarrow as pa
from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T
from pyspark.sql.functions import arrow_udf  # type: ignore[attr-defined]  # public, but PySpark's types leave it out

from muntin.columnar import arrow_type
from muntin.errors import DataError, Refusal
from muntin.expression.beyond import Beyond, is_time, values_of
from muntin.expression.own import OwnFunction, PythonFunction, SparkFunction
from muntin.schema import BIGINT
from muntin.spark.file_schema import spark_type
from muntin.timeline import datetime_of, instant_of


def own_column(function: OwnFunction, columns: Sequence[Column]) -> tuple[Column, Column | None]:
    """The value, and where the function failed on arguments that are not NULL; None if it cannot."""
    if isinstance(function, PythonFunction):
        sent = [_as_micros(column) if type_.temporal else column for column, type_ in zip(columns, function.arguments, strict=True)]
        made = _udf(function, application())(*sent)
        value = made["value"]
        temporal = function.result.temporal
        return F.timestamp_micros(value).cast(str(function.result)) if temporal else value, made["failed"]
    assert isinstance(function, SparkFunction)
    present = reduce(and_, [column.isNotNull() for column in columns])
    return F.when(present, function.build(*columns)), None


def check_spark_function(spark: SparkSession, function: SparkFunction) -> None:
    """Refuses a function whose Column has another type than it declares, before a row is read."""
    names = [f"a{at}" for at in range(len(function.arguments))]
    nulls = [F.lit(None).cast(str(type_)).alias(name) for name, type_ in zip(names, function.arguments, strict=True)]
    try:
        made = spark.range(0).select(*nulls).select(function.build(*map(F.col, names))).schema[0].dataType
    except Exception as error:  # a user's function may raise anything, and Spark for what it builds
        found, way_out = f"{type(error).__name__}: {error}".splitlines()[0], "let it return a Column over its arguments"
        raise Refusal(f"{function.name} builds a Column of the columns it is given", values=found, way_out=way_out) from error
    if made != spark_type(function.result):
        raise Refusal(
            f"{function.name} builds a Column of the type it declares",
            values=f"declared {str(function.result).upper()}, and the Column is {made.simpleString().upper()}",
            way_out=f"declare returns='{made.simpleString().upper()}', or cast the Column",
        )


def _as_micros(column: Column) -> Column:
    return F.unix_micros(column.cast("timestamp"))


def application() -> str:
    """Which Spark application a UDF belongs to: it does not outlive it."""
    active = SparkSession.getActiveSession()
    return active.sparkContext.applicationId if active else ""


@lru_cache(maxsize=256)
def _udf(function: PythonFunction, application: str) -> Callable[..., Column]:  # noqa: ARG001 the application is part of the key
    """One UDF for all uses of a function: Spark calls it once for the uses on the same arguments in one place of a plan."""
    result = BIGINT if function.result.temporal else function.result
    struct = T.StructType([T.StructField("value", spark_type(result)), T.StructField("failed", T.BooleanType())])
    made: Callable[..., Column] = arrow_udf(_over_arrays(function, arrow_type(result)), struct)
    return made


def _over_arrays(function: PythonFunction, arrow: pa.DataType) -> Callable[..., pa.Array]:
    """The function on Arrow arrays, one call for each row without NULLs."""
    call = _on_values(function)

    def over_arrays(*arrays: pa.Array) -> pa.Array:
        values, failed = [], []
        for row in zip(*map(values_of, arrays), strict=True):
            try:
                values.append(None if None in row else call(*row))
                failed.append(False)
            except (DataError, KeyboardInterrupt):  # no Ctrl-C: it goes to the driver, and a worker's interrupt is the function's own
                values.append(None)
                failed.append(True)
        return pa.StructArray.from_arrays([pa.array(values, arrow), pa.array(failed, pa.bool_())], ["value", "failed"])

    return over_arrays


def _on_values(function: PythonFunction) -> Callable[..., Any]:
    """The function on values as they are sent: times are microseconds."""
    value = function.value()
    if not any(is_time(type_) for type_ in (*function.arguments, function.result)):
        return value
    received = [datetime_of if type_.temporal else _of_years for type_ in function.arguments]

    def call(*sent: Any) -> Any:
        try:
            result = value(*(receive(one) for receive, one in zip(received, sent, strict=True)))
        except OverflowError:  # no time of the years that Python has
            raise _out_of_years(function, sent) from None
        return instant_of(result) if function.result.temporal and result is not None else result

    return call


def _of_years(value: Any) -> Any:
    if isinstance(value, Beyond):
        raise OverflowError
    return value


def _out_of_years(function: OwnFunction, sent: Sequence[Any]) -> DataError:
    return DataError(f"{function.name} is given times of the years 1 to 9999", values=", ".join(map(str, sent)))
