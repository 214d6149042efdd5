"""Where a syntax tree stands in the text: sqlglot keeps positions of names only, Muntin needs them of everything.

In: nodes and spans from `grammar`. Out: `Span`s of character offsets, half-open.
"""

from __future__ import annotations

from sqlglot import exp

from muntin.errors import Span

_SPAN = "span"


def put_span(node: exp.Expr, span: Span) -> None:
    node.meta[_SPAN] = span


def has_span(node: exp.Expr) -> bool:
    return _SPAN in node.meta


def has_place(node: exp.Expr) -> bool:
    """Whether it is known where a node stands: from itself, or from something in it."""
    rest = [node]
    while rest:
        part = rest.pop()
        if _own_span(part) is not None:
            return True
        rest.extend(part.iter_expressions())
    return False


def span_of(node: exp.Expr) -> Span | None:
    """The characters a node stands on; for a node that nobody gave a span, those from its first child to its last."""
    own = _own_span(node)
    if own is not None:
        return own
    spans, rest = [], list(node.iter_expressions())
    while rest:
        part = rest.pop()
        span = _own_span(part)
        if span is None:
            rest.extend(part.iter_expressions())
        else:
            spans.append(span)
    return Span(min(span.start for span in spans), max(span.end for span in spans)) if spans else None


def _own_span(node: exp.Expr) -> Span | None:
    meta = node.meta
    span = meta.get(_SPAN)
    if isinstance(span, Span):
        return span
    start, end = meta.get("start"), meta.get("end")  # sqlglot's own, the end included
    return Span(start, end + 1) if isinstance(start, int) and isinstance(end, int) else None
