"""The window a query states, in any of its spellings.

In: the window clauses hanging on FROM and the `window(…)` calls of GROUP BY. Out: one `WindowClause`.
Convention: brackets align ends; HOP, TUMBLE, CUMULATE and `window()` align starts. Flink and RisingWave put slide before size, Spark
size before slide. RANGE shorter than SLIDE is hopping and fine everywhere (Spark alone would refuse it).
Not supported yet, and refused by name: session windows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from sqlglot import exp

from muntin.errors import Refusal
from muntin.query import syntax
from muntin.query.bracketed import WindowClause, bracketed
from muntin.query.lengths import EXAMPLE, column_name, length, signed_length, time_attribute
from muntin.query.names import Scope
from muntin.semantics import TIME, Alignment, LandmarkWindow, SlidingWindow

#: The lengths each function takes, in order.
_LENGTHS = {"HOP": ("slide", "size"), "TUMBLE": ("size",), "CUMULATE": ("step", "size")}


def is_window_call(node: exp.Expr) -> bool:
    """Whether a GROUP BY item is Spark's `window(…)`."""
    return isinstance(node, exp.Anonymous) and node.name.lower() == "window"


def window_of(scope: Scope, table: exp.Expr, group_items: Sequence[exp.Expr]) -> WindowClause:
    """The one window that FROM or GROUP BY states."""
    clauses = [*table.args.get("windows", ()), *filter(is_window_call, group_items)]
    if not clauses:
        way_out = f"write FROM {scope.stream.name} {EXAMPLE}"
        raise scope.statement.refusal(table, "a query states its window", values="none", way_out=way_out)
    if len(clauses) > 1:
        found = ", ".join(map(scope.statement.written, clauses))
        raise scope.statement.refusal(clauses[1], "a query has one window", values=found, way_out="keep one of them")
    read = _READERS[type(clauses[0])]
    return read(scope, clauses[0])


def _function(scope: Scope, clause: syntax.WindowFunction) -> WindowClause:
    """`HOP(s, time, slide, size[, offset])`, `TUMBLE(s, time, size[, offset])`, `CUMULATE(s, time, step, size[, offset])`."""
    name = clause.name
    if name not in _LENGTHS:
        law, way_out = f"session windows ({name}) are not supported yet", f"use a time window: {EXAMPLE}"
        raise scope.statement.refusal(clause, law, values=scope.statement.written(clause), way_out=way_out)
    time = time_attribute(scope, clause.args["time"], column_name(scope, clause.args["time"])).name
    durations = _arguments(scope, clause, name, clause.expressions, _LENGTHS[name])
    size, offset = durations["size"], durations["offset"]
    if name == "CUMULATE":
        try:
            return WindowClause(LandmarkWindow(durations["step"], size, offset, time))
        except Refusal as refusal:
            raise scope.statement.refusal(clause, refusal.law, values=refusal.values, way_out=refusal.way_out) from None
    return WindowClause(SlidingWindow(size, durations.get("slide", size), offset, Alignment.STARTS, time))


def _spark_window(scope: Scope, call: exp.Anonymous) -> WindowClause:
    """`window(time, size[, slide[, offset]])`."""
    if not call.expressions or not isinstance(call.expressions[0], exp.Column):
        found = scope.statement.written(call)
        way_out = f"write window({scope.stream.time}, '10 minutes', '1 minute')"
        raise scope.statement.refusal(call, "window() begins with a time column of the stream", values=found, way_out=way_out)
    time = time_attribute(scope, call.expressions[0], column_name(scope, call.expressions[0])).name
    rest = call.expressions[1:]
    durations = _arguments(scope, call, "window", rest, ("size", "slide") if len(rest) > 1 else ("size",))
    slide = durations.get("slide", durations["size"])
    return WindowClause(SlidingWindow(durations["size"], slide, durations["offset"], Alignment.STARTS, time))


#: Each spelling and its reader. `Any`: a reader takes the node it is listed under.
_READERS: dict[type[exp.Expr], Callable[[Scope, Any], WindowClause]] = {
    syntax.BracketedWindow: bracketed,
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
    durations = {what: length(scope, node, TIME, f"the {what}") for what, node in zip(lengths, nodes, strict=False)}
    return durations | {"offset": signed_length(scope, nodes[len(lengths)], TIME) if len(nodes) > len(lengths) else 0}
