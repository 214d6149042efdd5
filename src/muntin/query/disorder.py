"""How rows can be out of order, as a stream declares it: what its punctuations are made from.

In: options of CREATE STREAM or of `Engine.stream`, as texts. Out: the slack by time, and a `Disorder`.
Convention: all options but `slack_of` are about the stream's time. Several hold at once, and the strongest promise counts. Without any, and
without markers or a slack by rows, the slack is zero: a row below the greatest time of an earlier batch is late.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from typing import TypeVar

from muntin.errors import Refusal
from muntin.schema import STRING, Field, Kind, Schema
from muntin.semantics import TIME, Measure, measure_of
from muntin.timeline import Duration

#: What divides files: the folder that a row's file lies in. Not a column, but `substreams` may name it.
FOLDER = "source_folder"
#: The options there are.
OPTIONS = ("slack", "slack_rows", "slack_of", "substreams", "markers", "heartbeat", "idle_after")
Refusing = Callable[[str, Refusal], Exception]
T = TypeVar("T")


@dataclass(frozen=True)
class Disorder:
    """`rows`: a row comes at most so many rows after one with a greater time. `slack_of`: ticks of slack of other attributes.

    `substreams` are columns that divide the stream: the slack then bounds each part, and nothing is known between them. `markers` is a
    column that is true in rows that are promises, not tuples: no more rows of their sub-stream before their time. `heartbeat`: a row comes
    at most so long after its time, by the clock. A sub-stream silent for `idle_after` holds the others back no longer.
    """

    rows: int | None = None
    slack_of: Mapping[str, int] = field(default_factory=dict)
    substreams: tuple[str, ...] = ()
    markers: str | None = None
    heartbeat: Duration | None = None
    idle_after: Duration | None = None

    def described(self, slack: Duration | None) -> list[str]:
        """In words, for `explain`."""
        each = f" in each {', '.join(self.substreams)}" if self.substreams else ""
        words = [] if slack is None else [f"slack {slack}{each}"]
        words += [] if self.rows is None else [f"slack {self.rows:,} rows"]
        words += [] if self.markers is None else [f"markers where {self.markers}"]
        words += [] if self.heartbeat is None else [f"heartbeat {self.heartbeat}"]
        return words + ([] if self.idle_after is None else [f"idle after {self.idle_after}"])


NO_DISORDER = Disorder()


def disorder_of(
    schema: Schema, time: str, texts: Mapping[str, str], refusing: Refusing, *, files: bool = False
) -> tuple[Duration | None, Disorder]:
    """What the options say, of a stream of `files` or another; `refusing` makes an error of a refusal and the option it is about."""

    def read(option: str, reader: Callable[[str], T], otherwise: T) -> T:
        try:
            return reader(texts[option]) if option in texts else otherwise
        except Refusal as refusal:
            raise refusing(option, refusal) from None

    disorder = Disorder(
        rows=read("slack_rows", _rows, None),
        slack_of=read("slack_of", lambda text: _slack_of(schema, time, text), {}),
        substreams=read("substreams", lambda text: _substreams(_with_folder(schema) if files else schema, text), ()),
        markers=read("markers", lambda text: _markers(schema, text), None),
        heartbeat=read("heartbeat", lambda text: not_negative("heartbeat", text), None),
        idle_after=read("idle_after", lambda text: not_negative("idle_after", text), None),
    )
    if disorder.idle_after is not None and not disorder.substreams:
        law = "idle_after is about sub-streams, which wait for each other"
        raise refusing("idle_after", Refusal(law, values=texts["idle_after"], way_out="give substreams too, or leave it out"))
    otherwise = Duration(0) if disorder.rows is None and disorder.markers is None else None
    return read("slack", lambda text: not_negative("slack", text), otherwise), disorder


def not_negative(option: str, text: str) -> Duration:
    duration = Duration.parse(text)
    if duration.micros < 0:
        raise Refusal(f"{option} is not negative", values=text, way_out="give it a length, or leave it out")
    return duration


def _rows(text: str) -> int:
    if not text.isdecimal():
        raise Refusal("slack_rows is a whole number of rows", values=repr(text), way_out="write it like slack_rows = '1000'")
    return int(text)


def _with_folder(schema: Schema) -> Schema:
    return schema if schema.field(FOLDER) else Schema((*schema.fields, Field(FOLDER, STRING)))


def _substreams(schema: Schema, text: str) -> tuple[str, ...]:
    found = [_column(schema, "substreams", part.strip()) for part in text.split(",")]
    for field_ in found:
        if field_.type.kind not in (Kind.STRING, Kind.BOOLEAN) and not field_.type.integral:
            law = "sub-streams are named by strings, whole numbers or booleans"
            raise Refusal(law, values=str(field_), way_out="divide the stream by another column")
    return tuple(dict.fromkeys(field_.name for field_ in found))


def _markers(schema: Schema, text: str) -> str:
    found = _column(schema, "markers", text.strip())
    if found.type.kind is not Kind.BOOLEAN:
        law = "markers is a BOOLEAN column, true in rows that are promises"
        raise Refusal(law, values=str(found), way_out="make such a column where the stream is made")
    return found.name


def _slack_of(schema: Schema, time: str, text: str) -> dict[str, int]:
    """`mile 0.5, sent_at 3 seconds`: a length for each windowing attribute, in its unit."""
    slacks: dict[str, int] = {}
    for part in text.split(","):
        name, _, length = part.strip().partition(" ")
        found = _column(schema, "slack_of", name)
        measure = measure_of(found.type)
        if measure is None or found.name == time:
            law = "slack_of is about windowing attributes other than the stream's time"
            way_out = "use slack for the time" if measure else "name a column that is a time or a number"
            raise Refusal(law, values=str(found), way_out=way_out)
        slacks[found.name] = _length(measure, length)
    return slacks


def _length(measure: Measure, text: str) -> int:
    if measure == TIME:
        return not_negative("slack_of", text).micros
    try:
        ticks = measure.length(Decimal(text))
    except InvalidOperation:
        raise Refusal("a slack over a number is a number", values=repr(text), way_out="write it like slack_of = 'mile 0.5'") from None
    if ticks < 0:
        raise Refusal("slack_of is not negative", values=text, way_out="give it a length, or leave it out")
    return ticks


def _column(schema: Schema, option: str, name: str) -> Field:
    found = schema.field(name)
    if found is None:
        columns = ", ".join(one.name for one in schema.fields)
        raise Refusal(f"{option} names columns of the stream", values=name or "nothing", way_out=f"the columns are {columns}")
    return found
