"""The bracketed window clause: every type of window of the window-id paper.

In: `[RANGE … SLIDE … WATTR …]` with its variants RATTR, SATTR, PATTR, LANDMARK, OFFSET and ALIGN. Out: a `WindowClause`.
Convention: ends are aligned unless ALIGN STARTS is written. Without WATTR the attribute is the stream's time, or row_num where lengths
are in rows. PATTR divides windows only where tuples are counted; over any other attribute it is GROUP BY (section 3.2).
Not supported yet, and refused by name: windows without SLIDE.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sqlglot import exp

from muntin.errors import QueryError, Refusal
from muntin.expression.tree import Column
from muntin.query import syntax
from muntin.query.lengths import (
    EXAMPLE,
    attribute,
    in_rows,
    length,
    name_of,
    rows_attribute,
    signed_length,
)
from muntin.query.names import Scope, suggestion
from muntin.schema import Kind
from muntin.semantics import ROW_NUMBER, ROWS, Alignment, Attribute, LandmarkWindow, SlideOrder, SlidingWindow, TupleSlide, Window

Parameters = Mapping[str, exp.Expr]
TUPLE_EXAMPLE = "[RANGE 300 seconds RATTR ts SLIDE 1 row SATTR row_num]"


@dataclass(frozen=True)
class WindowClause:
    """A window, and the columns of PATTR, which results are grouped by."""

    window: Window
    partition: tuple[Column, ...] = ()


def bracketed(scope: Scope, clause: syntax.BracketedWindow) -> WindowClause:
    parameters: dict[str, exp.Expr] = {}
    for parameter in clause.expressions:
        if parameter.name in parameters:
            law = f"a window has one {parameter.name}"
            raise scope.statement.refusal(parameter, law, values=scope.statement.written(clause), way_out="keep one of them")
        parameters[parameter.name] = parameter
    _check_lengths(scope, clause, parameters)
    partition = _partition(scope, parameters.get("PATTR"))
    pattr = tuple(column.name for column in partition)
    if "RATTR" in parameters or "SATTR" in parameters:
        return WindowClause(_by_two_attributes(scope, clause, parameters, pattr), partition)
    return WindowClause(_by_one_attribute(scope, parameters, _attribute(scope, parameters), pattr), partition)


def _check_lengths(scope: Scope, clause: exp.Expr, parameters: Parameters) -> None:
    if "RANGE" not in parameters:
        found = scope.statement.written(clause)
        raise scope.statement.refusal(clause, "a window has a RANGE: its length", values=found, way_out=f"write {EXAMPLE}")
    if "SLIDE" not in parameters:
        law = "a window has a SLIDE: the time from one to the next. Windows on demand, without one, are not supported yet"
        raise scope.statement.refusal(clause, law, values=scope.statement.written(clause), way_out=f"write {EXAMPLE}")


def _attribute(scope: Scope, parameters: Parameters) -> Attribute:
    if "WATTR" in parameters:
        return attribute(scope, parameters["WATTR"], name_of(scope, parameters["WATTR"]))
    if in_rows(scope, parameters["RANGE"]) or (_is_unbounded(parameters) and in_rows(scope, parameters["SLIDE"])):
        return rows_attribute(scope, parameters["RANGE"])
    return attribute(scope, parameters["RANGE"], scope.stream.time)


def _is_unbounded(parameters: Parameters) -> bool:
    value = parameters["RANGE"].expression
    return value is not None and value.name.upper() == "UNBOUNDED"


def _by_one_attribute(scope: Scope, parameters: Parameters, over: Attribute, pattr: tuple[str, ...]) -> SlidingWindow | LandmarkWindow:
    measure, counted = over.measure, pattr if over.measure == ROWS else ()
    offset = signed_length(scope, parameters["OFFSET"], measure) if "OFFSET" in parameters else 0
    if _is_unbounded(parameters):
        return _landmark(scope, parameters, over, offset, counted)
    if "LANDMARK" in parameters:
        law, way_out = "LANDMARK goes with RANGE UNBOUNDED", "write RANGE UNBOUNDED, or leave LANDMARK out"
        raise _misplaced(scope, parameters["LANDMARK"], law, way_out)
    range_ = length(scope, parameters["RANGE"], measure, "RANGE")
    slide = length(scope, parameters["SLIDE"], measure, "SLIDE")
    return SlidingWindow(range_, slide, offset, _alignment(scope, parameters.get("ALIGN")), over.name, measure, counted)


def _landmark(scope: Scope, parameters: Parameters, over: Attribute, offset: int, pattr: tuple[str, ...]) -> LandmarkWindow:
    if "ALIGN" in parameters:
        raise _misplaced(
            scope, parameters["ALIGN"], "the ends of a landmark window are aligned, and so are its landmarks", "leave ALIGN out"
        )
    slide = length(scope, parameters["SLIDE"], over.measure, "SLIDE")
    period = length(scope, parameters["LANDMARK"], over.measure, "LANDMARK") if "LANDMARK" in parameters else None
    try:
        return LandmarkWindow(slide, period, offset, over.name, over.measure, pattr)
    except Refusal as refusal:
        raise scope.statement.refusal(parameters["LANDMARK"], refusal.law, values=refusal.values, way_out=refusal.way_out) from None


def _by_two_attributes(scope: Scope, clause: exp.Expr, parameters: Parameters, pattr: tuple[str, ...]) -> Window:
    """RATTR and SATTR: slide-by-tuple, or the same attribute twice, which is what WATTR says."""
    if "RATTR" not in parameters or "SATTR" not in parameters or "WATTR" in parameters:
        law = "RANGE and SLIDE have one attribute, WATTR, or one each, RATTR and SATTR"
        raise scope.statement.refusal(clause, law, values=scope.statement.written(clause), way_out=f"write {TUPLE_EXAMPLE}")
    over = attribute(scope, parameters["RATTR"], name_of(scope, parameters["RATTR"]))
    if name_of(scope, parameters["SATTR"]).lower() == over.name.lower():
        return _by_one_attribute(scope, parameters, over, pattr)
    for name in ("OFFSET", "LANDMARK", "ALIGN"):
        if name in parameters:
            raise _misplaced(scope, parameters[name], f"a slide-by-tuple window ends at tuples and has no {name}", f"leave {name} out")
    if _is_unbounded(parameters):
        way_out = f"give RANGE a length, or write RANGE UNBOUNDED SLIDE … WATTR {over.name}"
        raise _misplaced(scope, parameters["RANGE"], "a slide-by-tuple window has a RANGE with an end", way_out)
    return TupleSlide(
        range=length(scope, parameters["RANGE"], over.measure, "RANGE"),
        slide=length(scope, parameters["SLIDE"], ROWS, "SLIDE"),
        rattr=over.name,
        order=_order(scope, parameters["SATTR"], over),
        measure=over.measure,
        pattr=pattr,
    )


def _order(scope: Scope, parameter: exp.Expr, over: Attribute) -> SlideOrder:
    name = name_of(scope, parameter).lower().replace(" ", "").replace("`", "")
    if name == ROW_NUMBER and not scope.stream.schema.field(ROW_NUMBER):
        return SlideOrder.ARRIVAL
    ranks = {f"rank({qualifier}{over.name.lower()})" for qualifier in ("", *(f"{one}." for one in scope.qualifiers))}
    if name in ranks:
        return SlideOrder.RANK
    law = "windows slide by their own attribute, by row_num, or by the rank of RATTR"
    way_out = f"write SATTR row_num or SATTR rank({over.name})"
    raise scope.statement.refusal(parameter, law, values=scope.statement.written(parameter), way_out=way_out)


def _alignment(scope: Scope, parameter: exp.Expr | None) -> Alignment:
    if parameter is None:
        return Alignment.ENDS
    found = next((one for one in Alignment if parameter.expression and parameter.expression.name.lower() == one.value), None)
    if found is None:
        law = "the ends or the starts of windows are aligned"
        way_out = "write ALIGN STARTS, or leave it out for ends"
        raise scope.statement.refusal(parameter, law, values=scope.statement.written(parameter), way_out=way_out)
    return found


def _partition(scope: Scope, parameter: exp.Expr | None) -> tuple[Column, ...]:
    if parameter is None:
        return ()
    written = name_of(scope, parameter)
    found: dict[str, Column] = {}
    for part in written.split(","):
        qualifier, _, name = part.strip().rpartition(".")
        field = scope.stream.schema.field((name if qualifier.lower() in scope.qualifiers else part).strip().strip("`"))
        if field is None or field.type.kind is Kind.OTHER:
            names = [one.name for one in scope.stream.schema.fields if one.type.kind is not Kind.OTHER]
            law = f"PATTR names scalar columns of the stream {scope.stream.name}"
            way_out = suggestion(name.strip(), names) or f"the columns are {', '.join(names)}"
            raise scope.statement.refusal(parameter, law, values=part.strip() or "nothing", way_out=way_out)
        found.setdefault(field.name, Column(field.name, field.type))
    return tuple(found.values())


def _misplaced(scope: Scope, parameter: exp.Expr, law: str, way_out: str) -> QueryError:
    return scope.statement.refusal(parameter, law, values=scope.statement.written(parameter), way_out=way_out)
