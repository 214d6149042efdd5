"""Types by the names Spark's SQL gives them.

In: sqlglot's type nodes, from declarations and casts. Out: `schema.Type`.
Convention: what a stream may hold and no expression may use is `schema.OTHER`; what Spark has no type for is a `TypeMismatch`,
and who knows the position makes it a `QueryError`.
"""

from __future__ import annotations

from sqlglot import exp

from muntin import schema
from muntin.errors import TypeMismatch
from muntin.schema import Kind, Type

_NAMES = exp.DType
#: Spark's scalar types by sqlglot's names for them. (Its TIMESTAMPTZ is Spark's TIMESTAMP: an instant.)
SCALARS = {
    _NAMES.BOOLEAN: schema.BOOLEAN,
    _NAMES.TINYINT: schema.TINYINT,
    _NAMES.SMALLINT: schema.SMALLINT,
    _NAMES.INT: schema.INT,
    _NAMES.BIGINT: schema.BIGINT,
    _NAMES.FLOAT: schema.FLOAT,
    _NAMES.DOUBLE: schema.DOUBLE,
    _NAMES.TEXT: schema.STRING,
    _NAMES.CHAR: schema.STRING,
    _NAMES.VARCHAR: schema.STRING,
    _NAMES.DATE: schema.DATE,
    _NAMES.TIMESTAMPTZ: schema.TIMESTAMP,
    _NAMES.TIMESTAMPLTZ: schema.TIMESTAMP,
    _NAMES.TIMESTAMPNTZ: schema.TIMESTAMP_NTZ,
    _NAMES.NULL: schema.NULL,
}
#: Types that a stream may hold and that no expression may use.
OPAQUE = frozenset({_NAMES.ARRAY, _NAMES.MAP, _NAMES.STRUCT, _NAMES.BINARY, _NAMES.VARBINARY, _NAMES.VARIANT, _NAMES.INTERVAL, _NAMES.TIME})


def type_of(node: exp.DataType) -> Type:
    """The type a declaration or a CAST names."""
    name = node.this
    if name is _NAMES.DECIMAL:
        return _decimal_type(node)
    if name in SCALARS:
        return SCALARS[name]
    if name in OPAQUE:
        return schema.OTHER
    raise TypeMismatch(
        "a type is one of Spark's",
        values=getattr(name, "value", str(name)),
        way_out="write one of " + ", ".join(str(kind.value).upper() for kind in Kind if kind not in (Kind.NULL, Kind.OTHER)),
    )


def scalar_type_of(node: exp.DataType) -> Type:
    """The type that a CAST names: one that expressions can hold."""
    target = type_of(node)
    if target.kind in (Kind.OTHER, Kind.NULL):
        raise TypeMismatch("CAST is to a scalar type", values=node.this.value, way_out="cast to a number, a string or a time")
    return target


def _decimal_type(node: exp.DataType) -> Type:
    sizes = [int(size.name) for size in node.expressions if size.name.isdigit()]
    precision, scale = (*sizes, 0)[:2] if sizes else (10, 0)
    if len(sizes) != len(node.expressions) or not (len(sizes) <= 2 and 1 <= precision <= schema.MAX_PRECISION and scale <= precision):
        raise TypeMismatch(
            "DECIMAL(p, s) has 1 to 38 digits, of which s stand behind the point",
            values=f"DECIMAL({', '.join(size.name for size in node.expressions)})",
            way_out="write DECIMAL(38, 6), say",
        )
    return schema.decimal(precision, scale)
