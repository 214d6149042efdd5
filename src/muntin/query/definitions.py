"""`CREATE STREAM` and `CREATE TABLE` to checked definitions.

In: statements of `text`. Out: `StreamDefinition`, `TableDefinition`.
Convention: `time`, `max_ahead` and what says how rows are out of order (`disorder`) are Muntin's; every other option belongs to the
source and passes through, its name in lower case, its value as written. Which sources there are, and what they need, is not known here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from sqlglot import exp

from muntin.errors import Refusal, TypeMismatch
from muntin.query import datatypes
from muntin.query.disorder import OPTIONS, disorder_of
from muntin.query.model import StreamDefinition, TableDefinition
from muntin.query.names import suggestion
from muntin.query.text import CreateStream, CreateTable
from muntin.schema import Field, Kind, Schema
from muntin.timeline import DAY, Duration


def check_stream(statement: CreateStream) -> StreamDefinition:
    schema, options = _schema(statement), _options(statement)
    time = _time(statement, schema, options.pop("time", None))
    of_disorder = {key: options.pop(key) for key in OPTIONS if key in options}
    max_ahead = _duration(statement, options.pop("max_ahead", None), default=DAY)
    passed = {key: option.expression.name for key, option in options.items()}
    texts = {key: option.expression.name for key, option in of_disorder.items()}
    slack, disorder = disorder_of(schema, time, texts, _placed(statement, of_disorder), files=passed.get("source") == "files")
    return StreamDefinition(statement.name, schema, time, slack, max_ahead, passed, disorder)


def _placed(statement: CreateStream, options: Mapping[str, exp.Expr]) -> Callable[[str, Refusal], Refusal]:
    """A refusal of an option with its place in the text."""
    return lambda key, refusal: statement.refusal(options[key], refusal.law, values=refusal.values, way_out=refusal.way_out)


def check_table(statement: CreateTable) -> TableDefinition:
    options = {key: option.expression.name for key, option in _options(statement).items()}
    return TableDefinition(statement.name, _schema(statement), options)


def _schema(statement: CreateStream | CreateTable) -> Schema:
    fields: dict[str, Field] = {}
    for column in statement.tree.expressions:
        try:
            kind = datatypes.type_of(column.args["kind"])
        except TypeMismatch as mismatch:
            raise statement.refusal(column, mismatch.law, values=mismatch.values, way_out=mismatch.way_out) from None
        if column.name.lower() in fields:
            law = "columns have names of their own, whatever the case"
            raise statement.refusal(column, law, values=f"{column.name} twice", way_out="rename one of them")
        fields[column.name.lower()] = Field(column.name, kind)
    return Schema(tuple(fields.values()))


def _options(statement: CreateStream | CreateTable) -> dict[str, exp.Expr]:
    options: dict[str, exp.Expr] = {}
    for option in statement.tree.args["options"]:
        key = "".join(option.name.split()).lower()
        if key in options:
            raise statement.refusal(option, "an option is given once", values=f"{key} twice", way_out="keep one of them")
        options[key] = option
    return options


def _time(statement: CreateStream, schema: Schema, option: exp.Expr | None) -> str:
    if option is None:
        law, way_out = "a stream says which column is its time", f"add time = '{_a_timestamp(schema)}' to WITH"
        raise statement.refusal(statement.tree.this, law, values=f"no time for {statement.name}", way_out=way_out)
    name = option.expression.name
    field = schema.field(name)
    if field is None:
        law = f"a stream's time is one of its columns: {', '.join(field.name for field in schema.fields)}"
        way_out = suggestion(name, [field.name for field in schema.fields]) or f"write time = '{_a_timestamp(schema)}'"
        raise statement.refusal(option, law, values=name, way_out=way_out)
    if not field.type.temporal:
        raise statement.refusal(
            option,
            "a stream's time is a TIMESTAMP or TIMESTAMP_NTZ column",
            values=f"{field.name} {str(field.type).upper()}",
            way_out="make a TIMESTAMP of it where the stream is made"
            + (": the day's midnight in UTC, say" if field.type.kind is Kind.DATE else ""),
        )
    return field.name


def _a_timestamp(schema: Schema) -> str:
    return next((field.name for field in schema.fields if field.type.temporal), "ts")


def _duration(statement: CreateStream, option: exp.Expr | None, *, default: int) -> Duration:
    if option is None:
        return Duration(default)
    text = option.expression.name
    try:
        duration = Duration.parse(text)
    except Refusal as refusal:
        raise statement.refusal(option, refusal.law, values=refusal.values, way_out=refusal.way_out) from None
    if duration.micros < 0:
        law = f"{option.name.lower()} is not negative"
        raise statement.refusal(option, law, values=text, way_out="give it a length, or leave it out")
    return duration
