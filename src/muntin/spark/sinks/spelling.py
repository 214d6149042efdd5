"""How each value of a result is spelled as text, in every format.

In: an Arrow array. Out: an Arrow array of strings with the same NULLs. Convention: times are ISO 8601 in UTC with six digits and `Z`,
dates ISO, with a sign where the year is before 0000 or after 9999; decimals have all their digits, a DOUBLE that is whole keeps its `.0`;
`NaN`, `Infinity`, `-Infinity`. Strings stay as they are. Arrays, maps and structs are spelled as JSON, row by row in Python, and binary
values in it as base64; all else is vectorised, except what is rare.
"""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Callable
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from muntin.expression.casts import FIRST_INSTANT, LAST_INSTANT
from muntin.timeline import DAY, format_instant, instant_of, iso_text

_WHOLE_NUMBER = r"^-?[0-9]+$"
_TIME = len("T00:00:00.000000Z")


def spelled(column: pa.Array) -> pa.Array:
    type = column.type
    if pa.types.is_timestamp(type):
        return _timestamps(column)
    if pa.types.is_date32(type):
        return _dates(column)
    if pa.types.is_floating(type):
        return _floating(column)
    if pa.types.is_decimal(type):
        return replaced(column.cast(pa.string()), "E", lambda value: format(Decimal(value), "f"))
    if pa.types.is_nested(type) or pa.types.is_binary(type):
        return pa.array([None if value is None else json.dumps(_jsonable(value), ensure_ascii=False) for value in column.to_pylist()])
    return column.cast(pa.string())


def all_finite(column: pa.Array) -> bool:
    return pc.all(pc.is_finite(column)).as_py() is not False


def replaced(text: pa.Array, pattern: str, spelling: Callable[[str], str]) -> pa.Array:
    """`text` with the values that match `pattern` spelled one by one; usually there are none."""
    return changed(pc.match_substring_regex(text, pattern), text, lambda found: pa.array(map(spelling, found.to_pylist()), text.type))


def changed(mask: pa.Array, text: pa.Array, change: Callable[[pa.Array], pa.Array]) -> pa.Array:
    """`text` with the values under `mask` changed."""
    if not pc.any(mask).as_py():
        return text
    chosen = mask.fill_null(False)
    return pc.replace_with_mask(text, chosen, change(text.filter(chosen)))


def _timestamps(column: pa.Array) -> pa.Array:
    naive = column.cast(pa.timestamp("us"), safe=False)  # the cast of one with a zone is forty times slower
    text = pc.binary_join_element_wise(pc.replace_substring(naive.cast(pa.string()), " ", "T"), "Z", "")
    return _far_years(text, naive.cast(pa.int64()), FIRST_INSTANT, LAST_INSTANT, iso_text)


def _dates(column: pa.Array) -> pa.Array:
    days = column.cast(pa.int32()).cast(pa.int64())
    return _far_years(column.cast(pa.string()), days, FIRST_INSTANT // DAY, LAST_INSTANT // DAY, lambda day: iso_text(day * DAY)[:-_TIME])


def _far_years(text: pa.Array, ticks: pa.Array, first: int, last: int, spelling: Callable[[int], str]) -> pa.Array:
    """`text` as Arrow has it, and our own beyond the years 1 to 9999: Arrow writes no sign there, or no time at all."""
    far = pc.or_(pc.less(ticks, first), pc.greater(ticks, last)).fill_null(False)
    if not pc.any(far).as_py():
        return text
    return pc.replace_with_mask(text, far, pa.array(map(spelling, ticks.filter(far).to_pylist()), text.type))


def _floating(column: pa.Array) -> pa.Array:
    text = column.cast(pa.string())
    text = changed(pc.match_substring_regex(text, _WHOLE_NUMBER), text, lambda whole: pc.binary_join_element_wise(whole, ".0", ""))
    if not all_finite(column):
        for shown, meant in (("inf", "Infinity"), ("-nan", "NaN"), ("nan", "NaN")):  # Arrow's words, and JSON's
            text = pc.replace_substring(text, shown, meant)
    return text


def _jsonable(value: Any) -> Any:
    match value:
        case datetime():
            return format_instant(instant_of(value))
        case date():
            return value.isoformat()
        case Decimal():
            return format(value, "f")
        case float() if not math.isfinite(value):
            return "NaN" if math.isnan(value) else ("Infinity" if value > 0 else "-Infinity")
        case bytes():
            return base64.b64encode(value).decode()
        case dict():
            return {key: _jsonable(item) for key, item in value.items()}
        case list() | tuple():
            return [_jsonable(item) for item in value]
    return value
