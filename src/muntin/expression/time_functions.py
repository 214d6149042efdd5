"""Functions of dates and times, in UTC.

In: timestamps and dates; a string is read as one. Out: rows of `functions.FUNCTIONS`.
Convention: weeks begin on Monday for `date_trunc`; `dayofweek` counts from 1 on Sunday; `unix_*` round towards minus infinity.
Not supported: intervals, and arithmetic on dates and times.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import date, datetime, timedelta
from typing import Any

from muntin.errors import TypeMismatch
from muntin.expression.beyond import micros_of
from muntin.expression.signature import ONE, TWO, Function, Signature, undefined
from muntin.expression.tree import Call, Expression, Literal
from muntin.schema import BIGINT, DATE, INT, NULL, STRING, TIMESTAMP, Type
from muntin.timeline import MILLISECOND, SECOND


def _midnight(moment: datetime) -> datetime:
    return moment.replace(hour=0, minute=0, second=0, microsecond=0)


_TRUNCATIONS: dict[str, Callable[[datetime], datetime]] = {
    "year": lambda moment: _midnight(moment).replace(month=1, day=1),
    "quarter": lambda moment: _midnight(moment).replace(month=(moment.month - 1) // 3 * 3 + 1, day=1),
    "month": lambda moment: _midnight(moment).replace(day=1),
    "week": lambda moment: _midnight(moment) - timedelta(days=moment.weekday()),
    "day": _midnight,
    "hour": lambda moment: moment.replace(minute=0, second=0, microsecond=0),
    "minute": lambda moment: moment.replace(second=0, microsecond=0),
    "second": lambda moment: moment.replace(microsecond=0),
    "millisecond": lambda moment: moment.replace(microsecond=moment.microsecond // 1000 * 1000),
    "microsecond": lambda moment: moment,
}
_SHORT = {"yyyy": "year", "yy": "year", "mon": "month", "mm": "month", "dd": "day"}


def _as_date(args: Sequence[Expression]) -> Signature:
    type_ = args[0].type
    if type_.temporal or type_ in (DATE, STRING, NULL):
        return Signature((DATE,), INT)
    raise undefined("a date field", args, takes="a date or a timestamp")


def _time_type(name: str, args: Sequence[Expression]) -> Type:
    type_ = args[-1].type
    if type_.temporal:
        return type_
    if type_ in (DATE, STRING, NULL):
        return TIMESTAMP
    raise undefined(name, args, takes="a timestamp or a date")


def _as_instant(args: Sequence[Expression]) -> Signature:
    type_ = args[0].type
    if type_.temporal or type_ == NULL:
        return Signature((type_ if type_.temporal else TIMESTAMP,), BIGINT)
    raise undefined("a function to Unix time", args, takes="a timestamp", way_out="cast the argument to TIMESTAMP")


def _row(name: str, typed: Callable[[Sequence[Expression]], Signature], value: Callable[[Any], int], *, beyond: bool = False) -> Function:
    def column(functions: Any, _: Call, argument: Any) -> Any:
        return getattr(functions, name)(argument)

    return Function(name, ONE, typed, column, lambda _: value, beyond=beyond)


def _date_field(name: str, value: Callable[[date], int]) -> Function:
    return _row(name, _as_date, value)


def _time_field(name: str, value: Callable[[datetime], int]) -> Function:
    return _row(name, lambda args: Signature((_time_type(name, args),), INT), value)


def _instant(name: str, unit: int) -> Function:
    return _row(name, _as_instant, lambda moment: micros_of(moment) // unit, beyond=True)


def _unit(arg: Expression) -> str:
    text = arg.value.lower() if isinstance(arg, Literal) and isinstance(arg.value, str) else ""
    unit = _SHORT.get(text, text)
    if unit in _TRUNCATIONS:
        return unit
    raise TypeMismatch("date_trunc takes a literal unit of time", values=str(arg), way_out=f"one of {', '.join(_TRUNCATIONS)}")


def _date_trunc_typed(args: Sequence[Expression]) -> Signature:
    _unit(args[0])
    _time_type("date_trunc", args)
    return Signature((STRING, TIMESTAMP), TIMESTAMP)


def _date_trunc_column(functions: Any, call: Call, _: Any, moment: Any) -> Any:
    return functions.date_trunc(_unit(call.args[0]), moment)


def _date_trunc_value(call: Call) -> Callable[[str, datetime], datetime]:
    truncate = _TRUNCATIONS[_unit(call.args[0])]
    return lambda _, moment: truncate(moment)


TIME_FUNCTIONS: tuple[Function, ...] = (
    _date_field("year", lambda day: day.year),
    _date_field("month", lambda day: day.month),
    _date_field("day", lambda day: day.day),
    _date_field("dayofweek", lambda day: day.isoweekday() % 7 + 1),
    _time_field("hour", lambda moment: moment.hour),
    _time_field("minute", lambda moment: moment.minute),
    _time_field("second", lambda moment: moment.second),
    _instant("unix_seconds", SECOND),
    _instant("unix_millis", MILLISECOND),
    _instant("unix_micros", 1),
    Function("date_trunc", TWO, _date_trunc_typed, _date_trunc_column, _date_trunc_value),
)
