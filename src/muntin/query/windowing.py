"""The window a query states, in any of its spellings, as a `TimeWindow`.

In: the window clauses hanging on FROM and the `window(…)` calls of GROUP BY. Out: one `TimeWindow`.
Convention: brackets align ends; HOP, TUMBLE and `window()` align starts. Flink and RisingWave put slide before size, Spark
size before slide. RANGE shorter than SLIDE is hopping and fine everywhere (Spark alone would refuse it).
Not supported yet, and refused by name: row counts, UNBOUNDED and LANDMARK windows, RATTR, SATTR, PATTR, windows without SLIDE.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from sqlglot import exp

from muntin.errors import QueryError, Refusal
from muntin.query import syntax
from muntin.query.names import Scope
from muntin.semantics import Alignment, TimeWindow
from muntin.timeline import Duration

_LATER = {
    "RATTR": "slide-by-tuple windows",
    "SATTR": "slide-by-tuple windows",
    "PATTR": "windows per partition",
    "LANDMARK": "landmark windows",
    "CUMULATE": "cumulating windows",
    "SESSION": "session windows",
}
_DURATION = re.compile(r"(?P<minus>-?)\s*(?:interval\b)?(?P<length>.*)", re.IGNORECASE | re.DOTALL)
_EXAMPLE = "[RANGE 10 minutes SLIDE 1 minute]"


def is_window_call(node: exp.Expr) -> bool:
    """Whether a GROUP BY item is Spark's `window(…)`."""
    return isinstance(node, exp.Anonymous) and node.name.lower() == "window"


def window_of(scope: Scope, table: exp.Expr, group_items: Sequence[exp.Expr]) -> TimeWindow:
    """The one window that FROM or GROUP BY states."""
    clauses = [*table.args.get("windows", ()), *filter(is_window_call, group_items)]
    if not clauses:
        way_out = f"write FROM {scope.stream.name} {_EXAMPLE}"
        raise scope.statement.refusal(table, "a query states its window", values="none", way_out=way_out)
    if len(clauses) > 1:
        found = ", ".join(map(scope.statement.written, clauses))
        raise scope.statement.refusal(clauses[1], "a query has one window", values=found, way_out="keep one of them")
    read = _READERS[type(clauses[0])]
    return read(scope, clauses[0])


def _bracketed(scope: Scope, clause: syntax.BracketedWindow) -> TimeWindow:
    parameters: dict[str, exp.Expr] = {}
    for parameter in clause.expressions:
        if parameter.name in _LATER:
            raise _later(scope, parameter, parameter.name)
        if parameter.name in parameters:
            law = f"a window has one {parameter.name}"
            raise scope.statement.refusal(parameter, law, values=scope.statement.written(clause), way_out="keep one of them")
        parameters[parameter.name] = parameter
    if "WATTR" in parameters:
        _check_time(scope, parameters["WATTR"], _name_of(scope, parameters["WATTR"]))
    if "RANGE" not in parameters:
        found = scope.statement.written(clause)
        raise scope.statement.refusal(clause, "a window has a RANGE: its length", values=found, way_out=f"write {_EXAMPLE}")
    range_ = _length(scope, parameters["RANGE"], "RANGE")
    if "SLIDE" not in parameters:
        law = "a window has a SLIDE: the time from one to the next. Windows on demand, without one, are not supported yet"
        raise scope.statement.refusal(clause, law, values=scope.statement.written(clause), way_out=f"write {_EXAMPLE}")
    slide = _length(scope, parameters["SLIDE"], "SLIDE")
    offset = _duration(scope, parameters["OFFSET"]) if "OFFSET" in parameters else 0
    return TimeWindow(range_, slide, offset, Alignment.ENDS, scope.stream.time)


def _function(scope: Scope, clause: syntax.WindowFunction) -> TimeWindow:
    """`HOP(s, time, slide, size[, offset])`, `TUMBLE(s, time, size[, offset])`."""
    name = clause.name
    if name in _LATER:
        raise _later(scope, clause, name)
    _check_time(scope, clause.args["time"], _column_name(scope, clause.args["time"]))
    lengths = ("slide", "size") if name == "HOP" else ("size",)
    durations = _arguments(scope, clause, name, clause.expressions, lengths)
    size, slide = durations["size"], durations.get("slide", durations["size"])
    return TimeWindow(size, slide, durations["offset"], Alignment.STARTS, scope.stream.time)


def _spark_window(scope: Scope, call: exp.Anonymous) -> TimeWindow:
    """`window(time, size[, slide[, offset]])`."""
    if not call.expressions or not isinstance(call.expressions[0], exp.Column):
        found = scope.statement.written(call)
        way_out = f"write window({scope.stream.time}, '10 minutes', '1 minute')"
        raise scope.statement.refusal(call, "window() begins with the stream's time column", values=found, way_out=way_out)
    _check_time(scope, call.expressions[0], _column_name(scope, call.expressions[0]))
    rest = call.expressions[1:]
    durations = _arguments(scope, call, "window", rest, ("size", "slide") if len(rest) > 1 else ("size",))
    return TimeWindow(
        durations["size"], durations.get("slide", durations["size"]), durations["offset"], Alignment.STARTS, scope.stream.time
    )


#: Each spelling and its reader. `Any`: a reader takes the node it is listed under.
_READERS: dict[type[exp.Expr], Callable[[Scope, Any], TimeWindow]] = {
    syntax.BracketedWindow: _bracketed,
    syntax.WindowFunction: _function,
    exp.Anonymous: _spark_window,
}


def _arguments(scope: Scope, clause: exp.Expr, name: str, given: Sequence[exp.Expr | None], lengths: Sequence[str]) -> dict[str, int]:
    """The durations of a call by what they are: the named `lengths`, then an offset that may be left out."""
    if not len(lengths) <= len(given) <= len(lengths) + 1 or None in given:
        law = f"{name} takes the {', the '.join(lengths)} and perhaps an offset, after the time column"
        found, way_out = scope.statement.written(clause), "give them in this order, like INTERVAL 5 MINUTES"
        raise scope.statement.refusal(clause, law, values=found, way_out=way_out)
    nodes = [node for node in given if node is not None]
    durations = {what: _length(scope, node, f"the {what}") for what, node in zip(lengths, nodes, strict=False)}
    return durations | {"offset": _duration(scope, nodes[len(lengths)]) if len(nodes) > len(lengths) else 0}


def _length(scope: Scope, node: exp.Expr, what: str) -> int:
    micros = _duration(scope, node)
    if micros <= 0:
        law = "RANGE and SLIDE are longer than zero"
        raise scope.statement.refusal(node, law, values=f"{what} of {Duration(micros)}", way_out="give it a positive length")
    return micros


def _duration(scope: Scope, node: exp.Expr) -> int:
    """Microseconds of `12 minutes`, `'12 min'`, `INTERVAL '12' MINUTES`, each perhaps with a minus before it."""
    value = node.expression if isinstance(node, syntax.Parameter) else node
    if value is None:
        raise scope.statement.refusal(node, f"{node.name} has a length", values="nothing", way_out=f"write {_EXAMPLE}")
    written = scope.statement.written(value)
    words = _DURATION.fullmatch(written)
    assert words is not None
    length = re.sub(r"([+-])\s+", r"\1", re.sub("['\"]", " ", words["length"]).strip())
    for word in ("rows", "row", "unbounded", "landmark"):
        if re.search(rf"\b{word}\b", length, re.IGNORECASE):
            raise _later(scope, node, word)
    try:
        micros = Duration.parse(length).micros
    except Refusal as refusal:
        raise scope.statement.refusal(value, refusal.law, values=written, way_out=refusal.way_out) from None
    return -micros if words["minus"] else micros


def _later(scope: Scope, node: exp.Expr, word: str) -> QueryError:
    kind = _LATER.get(word.upper(), "windows of rows" if word.startswith("row") else "landmark windows")
    law = f"{kind} ({word.upper()}) are not supported yet"
    return scope.statement.refusal(node, law, values=scope.statement.written(node), way_out=f"use a time window: {_EXAMPLE}")


def _name_of(scope: Scope, parameter: exp.Expr) -> str:
    name = scope.statement.written(parameter.expression) if parameter.expression else ""
    qualifier, _, column = name.rpartition(".")
    return (column if qualifier.lower() in scope.qualifiers else name).strip("`")


def _column_name(scope: Scope, column: exp.Expr) -> str:
    """A column of the stream without its qualifier; one of anything else with it."""
    of_stream = isinstance(column, exp.Column) and column.table.lower() in ("", *scope.qualifiers)
    return column.name if of_stream else scope.statement.written(column)


def _check_time(scope: Scope, node: exp.Expr, name: str) -> None:
    """The windowing attribute is the stream's own time, so far."""
    time = scope.stream.time
    if name.lower() == time.lower():
        return
    if scope.stream.schema.field(name):
        law = f"windows over another column than the stream's time ({time}) are not supported yet"
        raise scope.statement.refusal(node, law, values=name, way_out=f"use {time}, or declare the stream with time = '{name}'")
    law = f"the windowing attribute is the time of the stream {scope.stream.name}"
    raise scope.statement.refusal(node, law, values=name or "nothing", way_out=f"use {time}")
