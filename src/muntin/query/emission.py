"""When a query emits: EMIT EMPTY, EMIT EVERY for early results, LATE for rows that come after their window was closed.

In: the clauses behind a query's SELECT. Out: `Emission`.
Convention: each clause stands once. The horizon of LATE REEMIT is in the unit of the windowing attribute, that of EMIT EVERY is
time on the clock. Not supported: LATE over row_num and arrival_ts, which are never late; LATE REEMIT with HAVING, since a corrected
result that HAVING no longer lets through would have to be taken back; for the same reason, with slides by rank.
"""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from muntin.query.lengths import signed_length
from muntin.query.model import GENEROUS, Lateness, LatePolicy
from muntin.query.names import Scope
from muntin.query.text import CreateQuery
from muntin.semantics import ARRIVAL, TIME, SlideOrder, TupleSlide, Window
from muntin.timeline import Duration


@dataclass(frozen=True)
class Emission:
    empty: bool = False
    every: Duration | None = None
    late: LatePolicy = GENEROUS


def emission_of(scope: Scope, statement: CreateQuery, window: Window, select: exp.Select) -> Emission:
    found: dict[str, exp.Expr] = {}
    for clause in statement.emission:
        if clause.name in found:
            law = f"{clause.name} stands once"
            raise statement.refusal(clause, law, values=statement.written(clause), way_out="keep one of them")
        found[clause.name] = clause
    return Emission(
        empty="EMIT EMPTY" in found,
        every=_every(scope, found["EMIT EVERY"]) if "EMIT EVERY" in found else None,
        late=_late(scope, found["LATE"], window, select) if "LATE" in found else GENEROUS,
    )


def _every(scope: Scope, clause: exp.Expr) -> Duration:
    micros = signed_length(scope, clause, TIME)
    if micros <= 0:
        law, way_out = "early results have time between them", "write it like EMIT EVERY '10 seconds'"
        raise scope.statement.refusal(clause, law, values=str(Duration(micros)), way_out=way_out)
    return Duration(micros)


def _late(scope: Scope, clause: exp.Expr, window: Window, select: exp.Select) -> LatePolicy:
    lateness = Lateness(clause.args["policy"])
    if window.wattr in ARRIVAL and not scope.stream.schema.field(window.wattr):
        law = f"rows come in order of {window.wattr}, so none is late"
        raise scope.statement.refusal(clause, law, values=scope.statement.written(clause), way_out="leave LATE out")
    if lateness is not Lateness.REEMIT:
        return LatePolicy(lateness)
    if select.args.get("having"):
        law = "a corrected result cannot be taken back, so LATE REEMIT does not go with HAVING"
        way_out = "leave HAVING out and filter what comes out"
        raise scope.statement.refusal(clause, law, values=scope.statement.written(clause), way_out=way_out)
    if isinstance(window, TupleSlide) and window.order is SlideOrder.RANK:
        law = "a late row moves every later rank, and windows that were emitted cannot be taken back"
        raise scope.statement.refusal(clause, law, values=scope.statement.written(clause), way_out="slide by row_num, or leave LATE out")
    if clause.expression is None:
        law = "LATE REEMIT says for how long results are corrected, since their state is kept that long"
        raise scope.statement.refusal(clause, law, values="no FOR", way_out="write it like LATE REEMIT FOR '1 hour'")
    horizon = signed_length(scope, clause, window.measure)
    if horizon <= 0:
        law, way_out = "results are corrected for longer than zero", "give FOR a positive length, or leave LATE out"
        raise scope.statement.refusal(clause, law, values=window.measure.text(horizon), way_out=way_out)
    return LatePolicy(lateness, horizon)
