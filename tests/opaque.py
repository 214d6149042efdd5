"""Users' own functions for random predicates: what the planner cannot look into, in both flavours.

Each gives NULL for some arguments; those in `FAILING` also raise, or return what is not of their type, for some. The Spark ones have a
Python meaning, so that the reference can evaluate them. Lambdas, since a function of a test's module goes to a worker by name, and
the worker does not know the module.
"""

from __future__ import annotations

from typing import Any

from muntin.expression.own import OwnFunction
from muntin.query.own_functions import python_function, spark_function


def _near(x: Any, lane: Any) -> Any:
    from pyspark.sql import functions as F

    return F.when(lane != 1, F.abs(x - lane) < 100)


def _letters(text: Any) -> Any:
    from pyspark.sql import functions as F

    return F.nullif(F.length(text), F.lit(0))


ODD = python_function("odd", lambda n: None if n % 5 == 0 else n % 2 == 1, args="BIGINT", returns="BOOLEAN")
NEAR = spark_function("near", _near, args="DOUBLE, INT", returns="BOOLEAN", python=lambda x, y: None if y == 1 else abs(x - y) < 100)
LETTERS = spark_function("letters", _letters, args="STRING", returns="INT", python=lambda text: len(text) or None)
CLASS = python_function("class_of", lambda n: None if n % 7 == 0 else n % 4, args="BIGINT", returns="BIGINT")
#: Raises where lane is 2 and x is not small, is no BOOLEAN where lane is 0 and x is large, and NULL where x is about zero.
PICKY = python_function(
    "picky",
    lambda x, lane: None if abs(x) < 20 else "large" if lane == 0 and x > 400 else 1 / (lane - 2) < x / 100,
    args="DOUBLE, INT",
    returns="BOOLEAN",
)
SHARE = python_function("share", lambda n, lane: n % 100 // lane, args="BIGINT, INT", returns="BIGINT")

STEADY: tuple[OwnFunction, ...] = (ODD, NEAR, LETTERS, CLASS)
FAILING: tuple[OwnFunction, ...] = (PICKY, SHARE)
