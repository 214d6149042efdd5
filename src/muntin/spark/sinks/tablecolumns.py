"""Columns of tables: which a table can have, and which results fit one that is there.

In: schemas of results, of a table. Out: the columns that are new to the table, or a refusal. Convention: a table has one schema for
good. New columns come to it at the end; older rows have NULL there. Names are told apart without regard to case, as Delta does.
"""

from __future__ import annotations

import pyarrow as pa

from muntin.errors import SinkError

#: What Delta's writers do not take in the name of a column.
_RESERVED = set(" ,;{}()\n\t=")


def check_columns(query: str, schema: pa.Schema) -> None:
    """Delta has a type for every value that Muntin computes, but none for a column that is always NULL."""
    for field in schema:
        if pa.types.is_null(field.type):
            law, way_out = "a column of a table has a type", "cast it: CAST(NULL AS BIGINT)"
            raise SinkError(law, values=f"{field.name} of {query} is always NULL", way_out=way_out)
        if set(field.name) & _RESERVED:
            law = "the name of a table's column has no spaces, commas, semicolons, braces, parentheses or ="
            raise SinkError(law, values=f"{field.name} of {query}", way_out=f"name it: {field.name} AS …")


def check_fits(query: str, table: pa.Schema, schema: pa.Schema) -> None:
    """The results of a query that joins have all columns of its table, and perhaps new ones."""
    new_columns(query, table, schema)
    if missing := [name for name in table.names if name not in schema.names]:
        raise _changed(query, f"there is no {', '.join(missing)} any more")


def new_columns(query: str, table: pa.Schema, schema: pa.Schema) -> list[pa.Field]:
    """Columns of the results that the table has not. Some of its own may be missing: an entry of before is taken again."""
    known = {field.name.lower(): field for field in table}
    for field in schema:
        there = known.get(field.name.lower(), field)
        if there.name != field.name:
            raise _changed(query, f"{there.name} is now {field.name}")
        if there.type != field.type:
            raise _changed(query, f"{field.name} was {there.type} and is {field.type}")
    return [field for field in schema if field.name.lower() not in known]


def together(query: str, table: pa.Schema, schema: pa.Schema) -> pa.Schema:
    """The columns of a table with the new ones."""
    return pa.schema([*table, *new_columns(query, table, schema)])


def _changed(query: str, values: str) -> SinkError:
    law, way_out = "a table's columns stay as they are; new ones may come to them", "give the query another name"
    return SinkError(law, values=f"{query}: {values}", way_out=way_out)
