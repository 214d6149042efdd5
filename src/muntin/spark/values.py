"""A number for each value of some columns, brought to the rows that have the value.

In: rows, columns, numbers by value. Out: the rows with a column of numbers, NULL for values that have none.
Convention: a broadcast join; NULL is a value like any other. Without columns there is one value, `()`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from operator import and_

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from muntin.disorder import Key


def with_number(frame: DataFrame, columns: Sequence[Column], numbers: Mapping[Key, int], name: str) -> DataFrame:
    if not columns:
        return frame.withColumn(name, F.lit(numbers.get(())).cast("bigint"))
    names = value_names(columns)
    types = [field.dataType.simpleString() for field in frame.select(*columns).schema.fields]
    schema = ", ".join(f"{one} {type}" for one, type in zip(names, types, strict=True)) + f", {name} bigint"
    known = frame.sparkSession.createDataFrame([(*key, number) for key, number in numbers.items()], schema)
    on = reduce(and_, [column.eqNullSafe(F.col(one)) for column, one in zip(columns, names, strict=True)])
    return frame.join(F.broadcast(known), on=on, how="left").drop(*names)


def value_names(columns: Sequence[Column]) -> list[str]:
    """Names for the values of some columns."""
    return [f"_muntin_v{at}" for at in range(len(columns))]
