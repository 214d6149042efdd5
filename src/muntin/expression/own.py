"""Users' own scalar functions: the planner knows their names and types, and nothing else.

In: functions of Spark Columns or of Python values, with declared types. Out: an `OwnFunction`, which its calls carry (`tree.OwnCall`).
Convention: where an argument is NULL the function is not called and the result is NULL; equal arguments give equal results. A Python
function that raises, or returns what its declared type does not hold, fails on that row as a built-in does (`DataError`): it stops
the queries that reach the row, and no batch.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal
from threading import current_thread, main_thread
from typing import Any

from muntin.errors import DataError, Refusal
from muntin.expression.numeric import fitted_decimal, fitted_integer, float32
from muntin.identity import identity_of
from muntin.schema import Kind, Type
from muntin.timeline import datetime_of, instant_of


@dataclass(frozen=True)
class OwnFunction(ABC):
    """A user's function of one value per argument. Two are equal if they do the same: the functions are compared (`identity`)."""

    name: str
    arguments: tuple[Type, ...]
    result: Type

    @property
    @abstractmethod
    def can_fail(self) -> bool:
        """Whether it can fail in Spark on arguments that have not failed."""

    @property
    @abstractmethod
    def python(self) -> Callable[..., Any] | None:
        """Its meaning for Python values; None if it has one in Spark only."""

    def __str__(self) -> str:
        return f"{self.name}({', '.join(map(str, self.arguments))}) -> {self.result}"

    def value(self) -> Callable[..., Any]:
        """The function on Python values that are not NULL, with its result checked; it raises nothing but `DataError`."""
        meaning, name, type_ = self.python, self.name, self.result
        if meaning is None:
            raise Refusal(f"{name} has a meaning in Spark only", way_out="give spark_function a python= to evaluate it in Python")

        def checked(*values: Any) -> Any:
            try:
                return _fitted(meaning(*values), type_)
            except BaseException as error:  # a user's function may raise anything, SystemExit too
                if isinstance(error, KeyboardInterrupt) and current_thread() is main_thread():
                    raise  # most likely Ctrl-C, which Python raises in this thread only, whatever is running in it
                raise _failure(name, values, error) from error

        return checked


@dataclass(frozen=True)
class SparkFunction(OwnFunction):
    """Made of Spark Columns: rows stay in the JVM. `build(*columns)` gives a Column that never raises."""

    build: Callable[..., Any] = field(repr=False, compare=False)
    meaning: Callable[..., Any] | None = field(default=None, repr=False, compare=False)
    identity: str = field(default="", kw_only=True, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "identity", self.identity or identity_of(self.build, self.meaning))

    @property
    def can_fail(self) -> bool:
        return False

    @property
    def python(self) -> Callable[..., Any] | None:
        return self.meaning


@dataclass(frozen=True)
class PythonFunction(OwnFunction):
    """A Python function, called once per row in Spark's Python workers."""

    function: Callable[..., Any] = field(repr=False, compare=False)
    identity: str = field(default="", kw_only=True, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "identity", self.identity or identity_of(self.function))

    @property
    def can_fail(self) -> bool:
        return True

    @property
    def python(self) -> Callable[..., Any]:
        return self.function


def _failure(name: str, values: tuple[Any, ...], error: BaseException) -> DataError:
    shown = ", ".join(map(repr, values))
    reason = error.values if isinstance(error, DataError) else _told(error)
    return DataError(
        f"{name} gives a value of its type for every row",
        values=f"{name}({shown}): {reason}",
        way_out=f"let {name} return None where it has no value, or test its arguments first, with CASE",
    )


def _told(error: BaseException) -> str:
    """What the user's exception says, as text that can be written."""
    try:
        text = f"{type(error).__name__}: {error}"
    except Exception:  # noqa: BLE001 - its __str__ is the user's too
        text = type(error).__name__
    return text.encode(errors="backslashreplace").decode()


def _fitted(value: Any, type_: Type) -> Any:
    """A result as a value of the declared type."""
    if value is None:
        return None
    plain = value.item() if hasattr(value, "item") else value  # NumPy's scalars
    fits = _FITTING[type_.kind](plain, type_)
    if fits is None:
        raise DataError("a function returns what it declares", values=f"{value!r} is no {type_}")
    return fits


def _integer(value: Any, type_: Type) -> int | None:
    return fitted_integer(value, type_, value) if isinstance(value, int) and not isinstance(value, bool) else None


def _float(value: Any, type_: Type) -> float | None:
    if not isinstance(value, int | float) or isinstance(value, bool):
        return None
    return float32(value) if type_.kind is Kind.FLOAT else float(value)


def _decimal(value: Any, type_: Type) -> Decimal | None:
    return fitted_decimal(Decimal(value), type_, value) if isinstance(value, int | Decimal) and not isinstance(value, bool) else None


def _moment(value: Any, _: Type) -> datetime | None:
    """A time without zone is UTC. By way of its instant: pandas' NaT calls itself a datetime and has none."""
    return datetime_of(instant_of(value)) if isinstance(value, datetime) else None


def _text(value: Any, type_: Type) -> str | None:
    """One that has no UTF-8, with half a surrogate pair in it, is no STRING of Spark's or Arrow's."""
    if not isinstance(value, str):
        return None
    try:
        value.encode()
    except UnicodeEncodeError:
        raise DataError("a function returns what it declares", values=f"{value!a} is no {type_}: it has no UTF-8") from None
    return value


_FITTING: dict[Kind, Callable[[Any, Type], Any]] = {
    Kind.BOOLEAN: lambda value, _: value if isinstance(value, bool) else None,
    Kind.TINYINT: _integer,
    Kind.SMALLINT: _integer,
    Kind.INT: _integer,
    Kind.BIGINT: _integer,
    Kind.FLOAT: _float,
    Kind.DOUBLE: _float,
    Kind.DECIMAL: _decimal,
    Kind.STRING: _text,
    Kind.DATE: lambda value, _: value if isinstance(value, date) and not isinstance(value, datetime) else None,
    Kind.TIMESTAMP: _moment,
    Kind.TIMESTAMP_NTZ: _moment,
}
