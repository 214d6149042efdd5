"""What a windowing attribute is measured in: time, rows or numbers, all of them as exact integers called ticks.

In: a value of the attribute, or a length as the user wrote it. Out: ticks, and values and texts back.
Convention: a tick is a microsecond, a row, or 10^-scale of a number, where the column's type fixes the scale: 0 for integers, s for
DECIMAL(p, s), 6 for DOUBLE and FLOAT. A value belongs to the tick at or below it. A double v belongs to the greatest tick k with
`k / 10^6 <= v` in the arithmetic of doubles, so it stands on the side of an edge that `v >= 0.3` says it does. The scale does not
depend on the queries: one that joins later never changes what a stored slice means.
Not supported: DECIMAL of more than 18 digits; doubles of 2^53 ticks (9 thousand millions) and beyond.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from enum import Enum
from math import floor, isfinite
from typing import Any

from muntin.errors import Refusal
from muntin.schema import BIGINT, DOUBLE, TIMESTAMP, Kind, Type, decimal
from muntin.timeline import Duration, datetime_of, instant_of

#: Digits after the point that a double is taken to, as a time is to the microsecond.
DOUBLE_SCALE = 6
#: The most digits of a DECIMAL attribute: ticks and sums of a few of them stay inside 63 bits.
MOST_DIGITS = 18
#: Up to here every tick of a double is itself a double, so that `k / 10^6` is rounded once.
MOST_DOUBLE_TICKS = 2**53


class Unit(Enum):
    TIME = "time"
    ROWS = "rows"
    NUMBER = "number"
    DOUBLE = "double"


@dataclass(frozen=True)
class Measure:
    """The unit of a windowing attribute, and for numbers the digits after the point."""

    unit: Unit
    scale: int = 0

    @property
    def per_one(self) -> int:
        """Ticks in the number one."""
        return int(10**self.scale)

    def tick(self, value: Any) -> int:
        """The tick a value belongs to.

        >>> Measure(Unit.DOUBLE, 6).tick(0.3), Measure(Unit.NUMBER, 2).tick(Decimal("-0.015"))
        (300000, -2)
        """
        if self.unit is Unit.TIME:
            return instant_of(value) if isinstance(value, datetime) else int(value)
        if self.unit is Unit.DOUBLE:
            return self._double_tick(float(value))
        return floor(Decimal(value).scaleb(self.scale))

    def _double_tick(self, value: float) -> int:
        if not isfinite(value) or abs(value) * self.per_one >= MOST_DOUBLE_TICKS:
            law = f"a double is a windowing attribute below {MOST_DOUBLE_TICKS} ticks of 10^-{self.scale}"
            raise Refusal(law, values=str(value), way_out="cast the column to DECIMAL where the stream is made")
        near = floor(value * self.per_one)
        return next(k for k in (near + 1, near, near - 1) if k / self.per_one <= value)

    def value(self, tick: int) -> datetime | int | Decimal | float:
        """The least value of a tick, in the type of the attribute: what a window's bound comes out as."""
        if self.unit is Unit.TIME:
            return datetime_of(tick)
        if self.unit is Unit.DOUBLE:
            return tick / self.per_one
        return Decimal(tick).scaleb(-self.scale) if self.scale else tick

    @property
    def bound_type(self) -> Type:
        """The type of window_start and window_end."""
        if self.unit is Unit.TIME:
            return TIMESTAMP
        if self.unit is Unit.DOUBLE:
            return DOUBLE
        return decimal(MOST_DIGITS + 2, self.scale) if self.scale else BIGINT

    def text(self, length: int) -> str:
        """A length in ticks as the window clause writes it."""
        if self.unit is Unit.TIME:
            return "-" * (length < 0) + str(Duration(abs(length)))  # one minus is for all the units
        if self.unit is Unit.ROWS:
            return f"{length} row{'s' if abs(length) != 1 else ''}"
        return number_text(Decimal(length).scaleb(-self.scale))

    def length(self, number: Decimal) -> int:
        """The ticks of a length given as a number; one that falls between two ticks is refused."""
        ticks = number.scaleb(self.scale)
        if ticks != int(ticks) or abs(ticks) >= 10**MOST_DIGITS:
            raise Refusal(
                f"a length has at most {self.scale} digits after the point and {MOST_DIGITS} in all, like its attribute",
                values=number_text(number),
                way_out="round it, or give the column more digits where the stream is made",
            )
        return int(ticks)


TIME = Measure(Unit.TIME)
ROWS = Measure(Unit.ROWS)


def measure_of(type: Type) -> Measure | None:
    """How a column of this type is measured; None if it cannot order windows."""
    if type.temporal:
        return TIME
    if type.integral:
        return Measure(Unit.NUMBER)
    if type.fractional:
        return Measure(Unit.DOUBLE, DOUBLE_SCALE)
    if type.kind is Kind.DECIMAL and type.precision <= MOST_DIGITS:
        return Measure(Unit.NUMBER, type.scale)
    return None


def number_text(number: Decimal) -> str:
    """Plain digits, without an exponent and without zeros behind the point.

    >>> number_text(Decimal("2.50")), number_text(Decimal("1E+3"))
    ('2.5', '1000')
    """
    text = f"{number:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def check_lengths(range: int, slide: int, *, measured: Measure, slid: Measure) -> None:
    """Refuses a window without extent or without an end to slide to; lengths in ticks of the measures."""
    if range <= 0 or slide <= 0:
        raise Refusal(
            "RANGE and SLIDE are longer than zero",
            values=f"RANGE {measured.text(range)}, SLIDE {slid.text(slide)}",
            way_out="give both a positive length",
        )
