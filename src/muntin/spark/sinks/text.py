"""Result tables as text: JSON lines and CSV, a column at a time.

In: an Arrow table. Out: buffers of UTF-8 that make up its lines, a few ten thousand rows each. Convention: both formats spell values
alike: times ISO 8601 in UTC with six digits and `Z`, dates ISO, decimals with all their digits, `NaN`, `Infinity`, `-Infinity`;
a DOUBLE that is whole keeps its `.0`. In JSON all of these but finite numbers are strings and NULL is null; in CSV nothing is quoted
that need not be, NULL is empty and an empty string is `""`.
Arrays, maps and structs are spelled as JSON in both formats, row by row in Python; all else is vectorised: 1 M rows/s and more.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from muntin.timeline import format_instant, instant_of

#: Rows turned into text at a time: large enough to vectorise, small enough that texts of columns stay in the cache.
ROWS_AT_A_TIME = 1 << 15

_JSON_SPECIAL = r'["\\\x00-\x1f]'
_CSV_SPECIAL = r'[",\r\n]|^$'
_WHOLE_NUMBER = r"^-?[0-9]+$"


def json_lines(table: pa.Table) -> Iterator[pa.Buffer]:
    """`{"window_start": …, "window_end": …, …}` and a line feed for each row; non-ASCII letters stay as they are."""
    keys = [json.dumps(name, ensure_ascii=False) + ": " for name in table.column_names]
    for batch in _batches(table):
        pieces: list[Any] = ["{"]
        for at, (key, column) in enumerate(zip(keys, batch.columns, strict=True)):
            pieces += [key if at == 0 else f", {key}", json_values(column)]
        yield _joined([*pieces, "}\n"], rows=batch.num_rows)


def csv_header(schema: pa.Schema) -> bytes:
    names = csv_values(pa.array(schema.names, pa.string())).to_pylist()
    return (",".join(names) + "\n").encode()


def csv_lines(table: pa.Table) -> Iterator[pa.Buffer]:
    """The rows without the header."""
    for batch in _batches(table):
        pieces: list[Any] = []
        for column in batch.columns:
            pieces += [csv_values(column), ","]
        yield _joined([*pieces[:-1], "\n"], rows=batch.num_rows)


def json_values(column: pa.Array) -> pa.Array:
    """Each value as JSON, without NULLs."""
    type = column.type
    text = plain_values(column)
    if pa.types.is_string(type) or pa.types.is_large_string(type):
        text = _quoted(_replaced(text, _JSON_SPECIAL, lambda value: json.dumps(value, ensure_ascii=False)[1:-1]))
    elif pa.types.is_temporal(type) or pa.types.is_decimal(type):
        text = _quoted(text)
    elif pa.types.is_floating(type):
        text = _where(pc.invert(pc.is_finite(column)), text, _quoted)
    return text.fill_null("null")


def csv_values(column: pa.Array) -> pa.Array:
    """Each value as a CSV field, without NULLs."""
    text = plain_values(column)
    if not (pa.types.is_primitive(column.type) or pa.types.is_null(column.type)):
        text = _replaced(text, _CSV_SPECIAL, lambda value: '"' + value.replace('"', '""') + '"')
    return text.fill_null("")


def plain_values(column: pa.Array) -> pa.Array:
    """The spelling of each value, as an Arrow string array with the NULLs of the column; strings are not escaped."""
    type = column.type
    if pa.types.is_timestamp(type):
        naive = column.cast(pa.timestamp("us"), safe=False)  # the cast of one with a zone is forty times slower
        return pc.binary_join_element_wise(pc.replace_substring(naive.cast(pa.string()), " ", "T"), "Z", "")
    if pa.types.is_floating(type):
        return _floating(column)
    if pa.types.is_decimal(type):
        return _replaced(column.cast(pa.string()), "E", lambda value: format(Decimal(value), "f"))
    if pa.types.is_nested(type) or pa.types.is_binary(type):
        return pa.array([None if value is None else json.dumps(_jsonable(value), ensure_ascii=False) for value in column.to_pylist()])
    return column.cast(pa.string())


def _floating(column: pa.Array) -> pa.Array:
    text = column.cast(pa.string())
    text = _where(pc.match_substring_regex(text, _WHOLE_NUMBER), text, lambda whole: pc.binary_join_element_wise(whole, ".0", ""))
    if pc.all(pc.is_finite(column)).as_py() is False:
        for shown, meant in (("nan", "NaN"), ("inf", "Infinity")):  # Arrow's words, and JSON's
            text = pc.replace_substring(text, shown, meant)
        text = pc.replace_substring(text, "-NaN", "NaN")
    return text


def _jsonable(value: Any) -> Any:
    match value:
        case datetime():
            return format_instant(instant_of(value))
        case date():
            return value.isoformat()
        case Decimal():
            return format(value, "f")
        case float() if not np.isfinite(value):
            return "NaN" if np.isnan(value) else ("Infinity" if value > 0 else "-Infinity")
        case bytes():
            return base64.b64encode(value).decode()
        case dict():
            return {key: _jsonable(item) for key, item in value.items()}
        case list() | tuple():
            return [_jsonable(item) for item in value]
    return value


def _quoted(text: pa.Array) -> pa.Array:
    return pc.binary_join_element_wise('"', text, '"', "")


def _replaced(text: pa.Array, pattern: str, spelling: Any) -> pa.Array:
    """`text` with the values that match `pattern` spelled one by one; usually there are none."""
    return _where(pc.match_substring_regex(text, pattern), text, lambda found: pa.array(map(spelling, found.to_pylist()), text.type))


def _where(mask: pa.Array, text: pa.Array, change: Any) -> pa.Array:
    """`text` with the values under `mask` changed."""
    chosen = mask.fill_null(False)
    if not pc.any(chosen).as_py():
        return text
    return pc.replace_with_mask(text, chosen, change(text.filter(chosen)))


def _batches(table: pa.Table) -> Iterator[pa.RecordBatch]:
    for batch in table.combine_chunks().to_batches(max_chunksize=ROWS_AT_A_TIME):
        columns = [column.dictionary_decode() if pa.types.is_dictionary(column.type) else column for column in batch.columns]
        yield pa.RecordBatch.from_arrays(columns, names=batch.schema.names)


def _joined(pieces: list[Any], *, rows: int) -> pa.Buffer:
    """The pieces of every row, all rows in one buffer: the data of an Arrow string array is its texts end to end."""
    lines = pc.binary_join_element_wise(*pieces, "")
    _, offsets, data = lines.buffers()
    first, last = np.frombuffer(offsets, dtype=np.int32)[[lines.offset, lines.offset + rows]]
    return data.slice(int(first), int(last - first))
