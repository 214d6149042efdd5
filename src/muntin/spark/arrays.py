"""Constant arrays inside Spark: data that generated code looks things up in.

In: values, a Spark type. Out: an array Column. Convention: made from one text, which Spark's optimizer reads: a literal list costs a
gateway call per element, 200,000 elements of a text 60 ms. The contents are no part of the generated code.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

from pyspark.sql import Column
from pyspark.sql import functions as F


def constant_array(values: Sequence[Any], type: str) -> Column:
    return F.from_json(F.lit(text_of(values)), f"array<{type}>")


def text_of(values: Sequence[Any]) -> str:
    """
    >>> text_of([1, 2]), text_of([Decimal("1.50"), None])
    ('[1, 2]', '[1.50,null]')
    """
    if all(type(value) is int for value in values):
        return str(list(values))
    return "[" + ",".join(map(spelled, values)) + "]"


def spelled(value: Any) -> str:
    """A constant as JSON that Spark reads back to the last digit."""
    if type(value) is int:
        return str(value)
    if value is None:
        return "null"
    if isinstance(value, Decimal):
        return format(value, "f")
    return json.dumps(value)
