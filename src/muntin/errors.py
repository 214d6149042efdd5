"""Every error Muntin raises on purpose: the law that was broken, the values that broke it, the way out.

In: the four parts of a complaint. Out: an exception whose text a user can act on without reading our source.
Convention: a `QueryError` carries the query's text and the span at fault, and prints the line with a marker under it.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Span:
    """Half-open range of character offsets in a SQL text: where an expression stands."""

    start: int
    end: int


class MuntinError(Exception):
    """Base of all deliberate errors: catching it catches everything Muntin refuses."""


class Refusal(MuntinError):
    """A law was broken. `law` states it, `values` what was seen, `way_out` what to do instead."""

    def __init__(self, law: str, *, values: str = "", way_out: str = "") -> None:
        self.law = law
        self.values = values
        self.way_out = way_out
        super().__init__(self.complaint())

    def complaint(self) -> str:
        parts = [self.law]
        if self.values:
            parts.append(f"  found: {self.values}")
        if self.way_out:
            parts.append(f"  way out: {self.way_out}")
        return "\n".join(parts)


class QueryError(Refusal):
    """A SQL text that cannot be taken, with the place in the text."""

    def __init__(self, law: str, *, values: str = "", way_out: str = "", text: str = "", span: Span | None = None) -> None:
        self.text = text
        self.span = span
        super().__init__(law, values=values, way_out=way_out)

    def complaint(self) -> str:
        body = super().complaint()
        return f"{body}\n{marked_line(self.text, self.span)}" if self.text and self.span else body


class TypeMismatch(Refusal):
    """An operation was given types it is not defined on. The checker adds the position and makes it a `QueryError`."""


class DataError(Refusal):
    """A row's values broke a query (overflow, division by zero). It stops that query and no other."""


class CheckpointError(Refusal):
    """A checkpoint is damaged, locked, of another run or of another format. Nothing is computed from it."""


class StoreError(Refusal):
    """A file system cannot be reached, read or written, or a name would lead out of its directory."""


class OwnershipError(Refusal):
    """Another job has taken over the checkpoint or the output directory. This one writes nothing more to it."""


class SinkError(Refusal):
    """An output cannot be written, or belongs to another run."""


class SourceError(Refusal):
    """A source cannot be read as it was declared."""


class SessionError(Refusal):
    """The Spark session cannot run Muntin, with the setting that would let it."""


def marked_line(text: str, span: Span) -> str:
    """The line of `text` that `span` starts on, with its number and a marker under the span."""
    line_start = text.rfind("\n", 0, span.start) + 1
    line_end = text.find("\n", span.start)
    line = text[line_start : line_end if line_end >= 0 else len(text)]
    number = text.count("\n", 0, span.start) + 1
    column = span.start - line_start
    width = max(1, min(span.end, line_start + len(line)) - span.start)
    head = f"  line {number}: "
    return f"{head}{line}\n{' ' * (len(head) + column)}{'^' * width}"
