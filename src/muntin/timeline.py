"""The time axis: integer microseconds since the epoch in UTC, durations, intervals and progressions of edges.

In: texts such as `5 minutes`, instants as integers. Out: `Duration`, `Interval`, `Progression` and ISO 8601 texts.
Convention: intervals are half-open `[start, end)`; rounding is always towards minus infinity, since times before 1970 exist.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal

from muntin.errors import Refusal

MICROSECOND = 1
MILLISECOND = 1_000
SECOND = 1_000_000
MINUTE = 60 * SECOND
HOUR = 60 * MINUTE
DAY = 24 * HOUR
WEEK = 7 * DAY

#: Before and after every instant a TIMESTAMP can hold; used as the punctuations -∞ and +∞.
BEGINNING = -(2**62)
END = 2**62

#: The year 101: a row before it is taken for a mistake, so that windows around good rows have bounds that can be written.
EARLIEST = -58_979_923_200 * SECOND

#: Ten thousand years: sums of instants and durations stay far inside 64 bits.
LONGEST = 3_652_500 * DAY

_UNITS = {
    "microsecond": MICROSECOND, "us": MICROSECOND,
    "millisecond": MILLISECOND, "ms": MILLISECOND,
    "second": SECOND, "sec": SECOND, "s": SECOND,
    "minute": MINUTE, "min": MINUTE, "m": MINUTE,
    "hour": HOUR, "h": HOUR,
    "day": DAY, "d": DAY,
    "week": WEEK, "w": WEEK,
}  # fmt: skip
_PIECE = re.compile(r"\s*([+-]?\d+(?:\.\d+)?)\s*([a-zA-Zµ]+)\s*")
#: The calendar repeats itself every 400 years: those from 1970 on tell the days of all others, also where Python has no datetime.
_CYCLE = 146_097 * DAY
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, order=True)
class Duration:
    """A length of time in whole microseconds. `str()` gives it back in the largest whole units.

    >>> str(Duration.parse("90 seconds"))
    '1 minute 30 seconds'
    """

    micros: int

    @classmethod
    def parse(cls, text: str) -> Duration:
        """`5 minutes`, `1 hour 30 min`, `3.01 s`; months and years have no fixed length and are refused."""
        position, micros = 0, Decimal(0)
        while position < len(text):
            piece = _PIECE.match(text, position)
            if piece is None:
                raise _not_a_duration(text)
            micros += Decimal(piece[1]) * unit_micros(piece[2], text)
            position = piece.end()
        if not text.strip() or micros != int(micros):
            raise _not_a_duration(text)
        if abs(micros) > LONGEST:
            raise Refusal(f"a duration is at most {cls(LONGEST)}", values=text, way_out="give a shorter one")
        return cls(int(micros))

    def __str__(self) -> str:
        if self.micros == 0:
            return "0 seconds"
        sign = "-" if self.micros < 0 else ""
        rest, pieces = abs(self.micros), []
        for name in ("day", "hour", "minute", "second", "millisecond", "microsecond"):
            count, rest = divmod(rest, _UNITS[name])
            if count:
                pieces.append(f"{sign}{count} {name}{'s' if count != 1 else ''}")
        return " ".join(pieces)


def unit_micros(unit: str, text: str) -> int:
    """Microseconds in one `unit`, singular or plural, in any case."""
    word = unit.lower()
    for candidate in (word, word.removesuffix("s")):
        if candidate in _UNITS:
            return _UNITS[candidate]
    raise _not_a_duration(text)


def _not_a_duration(text: str) -> Refusal:
    return Refusal(
        "a duration is a number and a unit, to the microsecond",
        values=repr(text),
        way_out="write it like '5 minutes', '1 hour 30 seconds' or '250 ms'; units from microseconds to weeks",
    )


@dataclass(frozen=True, order=True)
class Interval:
    """Half-open `[start, end)`."""

    start: int
    end: int

    def __contains__(self, instant: int) -> bool:
        return self.start <= instant < self.end

    def __str__(self) -> str:
        return f"[{format_instant(self.start)}, {format_instant(self.end)})"


@dataclass(frozen=True, order=True)
class Progression:
    """The instants `phase + k * period` for every integer k; `phase` is kept in `[0, period)`.

    >>> list(Progression(period=10, phase=3).within(Interval(0, 30)))
    [3, 13, 23]
    """

    period: int
    phase: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "phase", self.phase % self.period)

    def floor(self, instant: int) -> int:
        """The last member at or before `instant`."""
        return instant - (instant - self.phase) % self.period

    def within(self, span: Interval) -> range:
        first = self.floor(span.start)
        return range(first if first >= span.start else first + self.period, span.end, self.period)


def instant_of(moment: datetime) -> int:
    """Microseconds since the epoch; a datetime without zone is read as UTC."""
    aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return (aware - _EPOCH) // timedelta(microseconds=1)


def datetime_of(instant: int) -> datetime:
    return _EPOCH + timedelta(microseconds=instant)


def format_instant(instant: int) -> str:
    """ISO 8601 in UTC with six digits of fraction and `Z`.

    >>> format_instant(-1)
    '1969-12-31T23:59:59.999999Z'
    """
    if instant <= BEGINNING:
        return "-∞"
    return "+∞" if instant >= END else iso_text(instant)


def iso_text(instant: int) -> str:
    """As `format_instant`, for any integer. A year of more than four digits, or before 0000, has its sign, as in Java.

    >>> iso_text(253_402_300_800 * SECOND), iso_text(-62_167_219_200 * SECOND - 1)
    ('+10000-01-01T00:00:00.000000Z', '-0001-12-31T23:59:59.999999Z')
    """
    cycles, rest = divmod(instant, _CYCLE)
    moment = datetime_of(rest)
    year = moment.year + 400 * cycles
    sign = "-" if year < 0 else "+" if year > 9999 else ""
    return f"{sign}{abs(year):04}{moment:-%m-%dT%H:%M:%S.%f}Z"
