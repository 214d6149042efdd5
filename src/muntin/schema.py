"""The types of columns and values, named as Spark names them, without importing Spark.

In: type names from SQL or from a DataFrame. Out: `Type`, `Field`, `Schema`.
Convention: a Python value of a type is what Arrow gives: int, float, Decimal, str, bool, aware datetime, date; NULL is None.
Not supported: arrays, maps, structs and binary columns; a stream may have them, but no expression may use them.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Kind(Enum):
    """The families of types. The value is Spark's name for it."""

    BOOLEAN = "boolean"
    TINYINT = "tinyint"
    SMALLINT = "smallint"
    INT = "int"
    BIGINT = "bigint"
    FLOAT = "float"
    DOUBLE = "double"
    DECIMAL = "decimal"
    STRING = "string"
    DATE = "date"
    TIMESTAMP = "timestamp"
    TIMESTAMP_NTZ = "timestamp_ntz"
    NULL = "void"
    OTHER = "other"


#: Bits of the integral kinds, narrowest first.
INTEGRAL_BITS = {Kind.TINYINT: 8, Kind.SMALLINT: 16, Kind.INT: 32, Kind.BIGINT: 64}


@dataclass(frozen=True)
class Type:
    """A type as Spark prints it: `bigint`, `decimal(10,2)`."""

    kind: Kind
    precision: int = 0
    scale: int = 0

    def __str__(self) -> str:
        return f"decimal({self.precision},{self.scale})" if self.kind is Kind.DECIMAL else self.kind.value

    @property
    def integral(self) -> bool:
        return self.kind in INTEGRAL_BITS

    @property
    def fractional(self) -> bool:
        return self.kind in (Kind.FLOAT, Kind.DOUBLE)

    @property
    def numeric(self) -> bool:
        return self.integral or self.fractional or self.kind is Kind.DECIMAL

    @property
    def temporal(self) -> bool:
        return self.kind in (Kind.TIMESTAMP, Kind.TIMESTAMP_NTZ)


BOOLEAN = Type(Kind.BOOLEAN)
TINYINT = Type(Kind.TINYINT)
SMALLINT = Type(Kind.SMALLINT)
INT = Type(Kind.INT)
BIGINT = Type(Kind.BIGINT)
FLOAT = Type(Kind.FLOAT)
DOUBLE = Type(Kind.DOUBLE)
STRING = Type(Kind.STRING)
DATE = Type(Kind.DATE)
TIMESTAMP = Type(Kind.TIMESTAMP)
TIMESTAMP_NTZ = Type(Kind.TIMESTAMP_NTZ)
NULL = Type(Kind.NULL)
OTHER = Type(Kind.OTHER)

MAX_PRECISION = 38


def decimal(precision: int, scale: int) -> Type:
    """DECIMAL(precision, scale), cut to 38 digits; use `adjusted_decimal` for results of arithmetic."""
    return Type(Kind.DECIMAL, min(precision, MAX_PRECISION), min(scale, MAX_PRECISION))


def adjusted_decimal(precision: int, scale: int) -> Type:
    """Spark's rule for results over 38 digits: give up scale, but keep at least 6 digits of it."""
    if precision <= MAX_PRECISION:
        return decimal(precision, scale)
    whole_digits = precision - scale
    return decimal(MAX_PRECISION, max(MAX_PRECISION - whole_digits, min(scale, 6)))


@dataclass(frozen=True)
class Field:
    """A named, typed column."""

    name: str
    type: Type

    def __str__(self) -> str:
        return f"{self.name} {self.type}"


@dataclass(frozen=True)
class Schema:
    """The columns of a stream or table, in order. Names are looked up without regard to case, as Spark does."""

    fields: tuple[Field, ...]

    def field(self, name: str) -> Field | None:
        wanted = name.lower()
        return next((field for field in self.fields if field.name.lower() == wanted), None)

    def __str__(self) -> str:
        return ", ".join(map(str, self.fields))
