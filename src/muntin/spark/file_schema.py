"""The declared columns of a stream or table against what its files have.

In: a `Schema` and the schema Spark finds in a file. Out: the Spark schema to read with, or a refusal that names the column.
Convention: Parquet columns are matched by name, in any case, and may be declared wider than they are (INT as BIGINT); CSV columns are
matched by position. One file is looked at; a later file that differs fails when it is read. `owner` says whose columns they are:
`stream trades`, say.
"""

from __future__ import annotations

from pyspark.sql import types as T

from muntin.errors import SourceError
from muntin.schema import Field, Kind, Schema, Type

#: The extra column: the raw text of a record that could not be parsed, NULL for a good one.
CORRUPT = "_corrupt"

_SPARK: dict[Kind, T.DataType] = {
    Kind.BOOLEAN: T.BooleanType(),
    Kind.TINYINT: T.ByteType(),
    Kind.SMALLINT: T.ShortType(),
    Kind.INT: T.IntegerType(),
    Kind.BIGINT: T.LongType(),
    Kind.FLOAT: T.FloatType(),
    Kind.DOUBLE: T.DoubleType(),
    Kind.STRING: T.StringType(),
    Kind.DATE: T.DateType(),
    Kind.TIMESTAMP: T.TimestampType(),
    Kind.TIMESTAMP_NTZ: T.TimestampNTZType(),
}

#: What Spark's Parquet reader takes for a type besides the type itself, without loss.
_NARROWER = {
    "smallint": {"tinyint"},
    "int": {"tinyint", "smallint"},
    "bigint": {"tinyint", "smallint", "int"},
    "double": {"float", "tinyint", "smallint", "int"},
    "timestamp": {"timestamp_ntz"},
    "timestamp_ntz": {"timestamp"},
    "string": {"binary"},
}


def spark_type(type: Type) -> T.DataType:
    return T.DecimalType(type.precision, type.scale) if type.kind is Kind.DECIMAL else _SPARK[type.kind]


def spark_schema(schema: Schema, owner: str) -> T.StructType:
    """The declared columns as Spark names types; refuses a type or a name that a source cannot have."""
    for field in schema.fields:
        if field.type.kind in (Kind.OTHER, Kind.NULL):
            raise SourceError(
                f"{owner}: the columns of a source are scalars",
                values=str(field),
                way_out="leave the column out, or declare it as STRING where the files hold text",
            )
        if field.name.lower() == CORRUPT:
            raise SourceError(f"{owner}: {CORRUPT} is Muntin's own column", values=str(field), way_out="rename the column")
    return T.StructType([T.StructField(field.name, spark_type(field.type)) for field in schema.fields])


def check_parquet_columns(schema: Schema, found: T.StructType, owner: str) -> None:
    """Refuses a declared column that the file does not have, or has with a type that does not fit."""
    by_name = {column.name.lower(): column for column in found.fields}
    for field in schema.fields:
        column = by_name.get(field.name.lower())
        if column is None:
            columns = ", ".join(f"{one.name} {one.dataType.simpleString()}" for one in found.fields)
            raise SourceError(
                f"{owner}: every declared column is in the files",
                values=f"{field.name} is not; the files have {columns}",
                way_out="correct the name, or leave the column out of its declaration",
            )
        if not _fits(field, column.dataType):
            raise SourceError(
                f"{owner}: a column is declared with the type it has in the files, or a wider one",
                values=f"{field.name} is declared {field.type} and is {column.dataType.simpleString()} in the files",
                way_out=f"declare {field.name} {column.dataType.simpleString().upper()}",
            )


def check_header(schema: Schema, found: list[str], owner: str) -> None:
    """Refuses a CSV file whose header does not name the declared columns in their order."""
    declared = [field.name for field in schema.fields]
    if [name.strip().lower() for name in found] != [name.lower() for name in declared]:
        raise SourceError(
            f"{owner}: a CSV header names the declared columns in their order",
            values=f"declared {', '.join(declared)}; the header says {', '.join(found)}",
            way_out="declare the columns as the files have them, all of them, in the same order",
        )


def _fits(field: Field, found: T.DataType) -> bool:
    if field.type.kind is Kind.DECIMAL and isinstance(found, T.DecimalType):
        whole_digits = field.type.precision - field.type.scale
        return field.type.scale >= found.scale and whole_digits >= found.precision - found.scale
    name = found.simpleString()
    return name == str(field.type) or name in _NARROWER.get(str(field.type), ())


def quoted(name: str) -> str:
    """A column's name as `col` takes it literally, dots included."""
    return "`" + name.replace("`", "``") + "`"
