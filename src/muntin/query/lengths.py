"""The attributes that windows are measured on, and lengths in their units.

In: nodes of a window clause. Out: an `Attribute`; lengths in ticks of its measure.
Convention: a column of the stream comes before `row_num` (arrival positions) and `arrival_ts` (the time a row arrived), which are
attributes of every stream. Lengths are durations over times, `n rows` over row_num, plain numbers over numbers.
"""

from __future__ import annotations

import re
from decimal import Decimal

from sqlglot import exp

from muntin.errors import QueryError, Refusal
from muntin.query import syntax
from muntin.query.names import Scope, suggestion
from muntin.schema import Field, Kind
from muntin.semantics import ARRIVAL, ARRIVAL_TIME, ROW_NUMBER, ROWS, TIME, Attribute, Measure, Unit, measure_of
from muntin.timeline import Duration

EXAMPLE = "[RANGE 10 minutes SLIDE 1 minute]"
_SIGNED = re.compile(r"(?P<minus>-?)\s*(?:interval\b)?(?P<length>.*)", re.IGNORECASE | re.DOTALL)
_ROWS = re.compile(r"([+-]?\d{1,18}) ?rows?", re.IGNORECASE)
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)")


def name_of(scope: Scope, parameter: exp.Expr) -> str:
    """The column that a parameter names, without the stream's qualifier."""
    name = scope.statement.written(parameter.expression) if parameter.expression else ""
    qualifier, _, column = name.rpartition(".")
    return (column if qualifier.lower() in scope.qualifiers else name).strip("`")


def column_name(scope: Scope, column: exp.Expr) -> str:
    """A column of the stream without its qualifier; one of anything else with it."""
    of_stream = isinstance(column, exp.Column) and column.table.lower() in ("", *scope.qualifiers)
    return column.name if of_stream else scope.statement.written(column)


def attribute(scope: Scope, node: exp.Expr, name: str) -> Attribute:
    """The attribute of that name, as it can be measured."""
    field = scope.stream.schema.field(name)
    if field is None:
        if name.lower() in ARRIVAL:
            return Attribute(name.lower(), ARRIVAL[name.lower()])
        raise _unknown(scope, node, name)
    measure = measure_of(field.type)
    if measure is None:
        raise _unordered(scope, node, field)
    return Attribute(field.name, measure)


def time_attribute(scope: Scope, node: exp.Expr, name: str) -> Attribute:
    """The same for HOP, TUMBLE, CUMULATE and window(), whose lengths are durations."""
    found = attribute(scope, node, name)
    if found.measure != TIME:
        law = f"HOP, TUMBLE, CUMULATE and window() are over times; {found.name} has none"
        way_out = f"use {scope.stream.time}, or the bracketed clause: FROM {scope.stream.name} [RANGE … SLIDE … WATTR {found.name}]"
        raise scope.statement.refusal(node, law, values=found.name, way_out=way_out)
    return found


def rows_attribute(scope: Scope, node: exp.Expr) -> Attribute:
    """`row_num`, where a length in rows asks for it without naming it."""
    found = attribute(scope, node, ROW_NUMBER)
    if found.measure != ROWS:
        law = f"rows are counted by {ROW_NUMBER}, and the stream {scope.stream.name} has a column of that name"
        way_out = "rename the column where the stream is made"
        raise scope.statement.refusal(node, law, values=scope.statement.written(node), way_out=way_out)
    return found


def in_rows(scope: Scope, node: exp.Expr | None) -> bool:
    """Whether a length is written in rows."""
    return node is not None and node.expression is not None and bool(_ROWS.fullmatch(_words(scope, node.expression)))


def length(scope: Scope, node: exp.Expr, measure: Measure, what: str) -> int:
    """A length longer than zero, in ticks."""
    ticks = signed_length(scope, node, measure)
    if ticks <= 0:
        law = "RANGE and SLIDE are longer than zero"
        raise scope.statement.refusal(node, law, values=f"{what} of {measure.text(ticks)}", way_out="give it a positive length")
    return ticks


def signed_length(scope: Scope, node: exp.Expr, measure: Measure) -> int:
    """Ticks of `12 minutes`, `'12 min'`, `INTERVAL '12' MINUTES`, `1000 rows` or `2.5`, each perhaps with a minus before it."""
    value = node.expression if isinstance(node, syntax.Parameter | syntax.EmissionClause) else node
    if value is None:
        raise scope.statement.refusal(node, f"{node.name} has a length", values="nothing", way_out=f"write {EXAMPLE}")
    written, words = scope.statement.written(value), _words(scope, value)
    counted = _ROWS.fullmatch(words)
    if counted and measure != ROWS:
        law = "a length in rows is over row_num; RANGE and SLIDE over one attribute have its unit"
        way_out = f"write RANGE 5 minutes RATTR {scope.stream.time} SLIDE 1 row SATTR row_num, or both in rows"
        raise scope.statement.refusal(node, law, values=scope.statement.written(node), way_out=way_out)
    try:
        if measure.unit is Unit.TIME:
            return _micros(written)
        if measure == ROWS:
            return int(counted[1]) if counted else _refuse("a length over row_num is a whole number of rows", "write it like 1000 rows")
        if not _NUMBER.fullmatch(words):
            _refuse("a length over a number is a number too, without a unit", "write it like 2.5")
        return measure.length(Decimal(words))
    except Refusal as refusal:
        raise scope.statement.refusal(value, refusal.law, values=written, way_out=refusal.way_out) from None


def _micros(written: str) -> int:
    words = _SIGNED.fullmatch(written)
    assert words is not None
    micros = Duration.parse(_plain(words["length"])).micros
    return -micros if words["minus"] else micros


def _refuse(law: str, way_out: str) -> int:
    raise Refusal(law, way_out=way_out)


def _words(scope: Scope, value: exp.Expr) -> str:
    return _plain(scope.statement.written(value))


def _plain(words: str) -> str:
    """Without quotes, and with a sign close to its number."""
    return re.sub(r"([+-])\s+", r"\1", re.sub("['\"]", " ", words).strip())


def _unknown(scope: Scope, node: exp.Expr, name: str) -> QueryError:
    names = [field.name for field in scope.stream.schema.fields if measure_of(field.type)]
    law = f"the windowing attribute is an ordered column of the stream {scope.stream.name}, {ROW_NUMBER} or {ARRIVAL_TIME}"
    way_out = suggestion(name, [*names, *ARRIVAL]) or f"use {scope.stream.time}"
    return scope.statement.refusal(node, law, values=name or "nothing", way_out=way_out)


def _unordered(scope: Scope, node: exp.Expr, field: Field) -> QueryError:
    law = "a windowing attribute is a time or a number, DECIMAL of at most 18 digits"
    made = {
        Kind.DATE: "make a TIMESTAMP of it where the stream is made: the day's midnight in UTC, say",
        Kind.DECIMAL: "cast it to fewer digits where the stream is made",
    }
    way_out = made.get(field.type.kind, f"use {scope.stream.time}, {ROW_NUMBER} or {ARRIVAL_TIME}")
    return scope.statement.refusal(node, law, values=f"{field.name} {str(field.type).upper()}", way_out=way_out)
