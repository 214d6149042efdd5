"""Arrow at the edges: types of the schema as Arrow types, lanes to and from Arrow arrays.

In: Arrow arrays as Spark returns them, NumPy lanes. Out: the other one. Convention: a lane is int64, float64 or Python objects;
dates are days, timestamps microseconds, booleans 0 and 1 while they are lanes.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from muntin.schema import Kind, Type

Array = npt.NDArray[Any]

_ARROW = {
    Kind.BOOLEAN: pa.bool_(),
    Kind.TINYINT: pa.int8(),
    Kind.SMALLINT: pa.int16(),
    Kind.INT: pa.int32(),
    Kind.BIGINT: pa.int64(),
    Kind.FLOAT: pa.float32(),
    Kind.DOUBLE: pa.float64(),
    Kind.STRING: pa.string(),
    Kind.DATE: pa.date32(),
    Kind.TIMESTAMP: pa.timestamp("us", tz="UTC"),
    Kind.TIMESTAMP_NTZ: pa.timestamp("us"),
    Kind.NULL: pa.null(),
}


def arrow_type(type: Type) -> pa.DataType:
    return pa.decimal128(type.precision, type.scale) if type.kind is Kind.DECIMAL else _ARROW[type.kind]


def flat(column: Any) -> pa.Array:
    """One contiguous array of a column that may come in chunks."""
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column


def filled(array: pa.Array, null: float) -> pa.Array:
    return array.fill_null(null) if array.null_count else array


def integers(column: Any, *, null: int) -> Array:
    """Whole numbers, dates, timestamps and booleans as int64, NULL as `null`."""
    array = flat(column)
    if pa.types.is_boolean(array.type):
        array = array.cast(pa.int8())
    elif pa.types.is_date32(array.type):
        array = array.cast(pa.int32())
    return np.array(filled(array.cast(pa.int64()), null).to_numpy(zero_copy_only=False), dtype=np.int64)


def floats(column: Any, *, null: float) -> Array:
    return np.array(filled(flat(column).cast(pa.float64()), null).to_numpy(zero_copy_only=False), dtype=np.float64)


def objects(column: Any) -> Array:
    """Python values, NULL as None."""
    values = flat(column).to_pylist()
    out = np.empty(len(values), dtype=object)
    out[:] = values
    return out


def decimal_limbs(column: Any) -> tuple[Array, Array, Array, Array]:
    """The unscaled 128-bit integers of a decimal column as four limbs of 32 bits, lowest first, the highest signed. NULL is 0."""
    array = flat(column)
    words = np.zeros((len(array), 2), dtype=np.int64)
    if len(array):
        raw = np.frombuffer(array.buffers()[1], dtype=np.int64).reshape(-1, 2)
        words = raw[array.offset : array.offset + len(array)].copy()
        words[np.asarray(array.is_null().to_numpy(zero_copy_only=False), dtype=bool)] = 0
    low, high = words[:, 0], words[:, 1]
    mask = np.int64(0xFFFFFFFF)
    return low & mask, (low >> 32) & mask, high & mask, high >> 32


def to_arrow(values: Array, valid: Array, type: Type) -> pa.Array:
    """Values of a result, NULL where not valid, as an Arrow array of the result's type."""
    target = arrow_type(type)
    missing = ~np.asarray(valid, dtype=bool)
    if values.dtype == object:
        return pa.array([None if gone else value for value, gone in zip(values, missing, strict=True)], type=target)
    if type.kind in (Kind.TIMESTAMP, Kind.TIMESTAMP_NTZ, Kind.BIGINT):
        return pa.array(values, mask=missing, type=pa.int64()).cast(target)
    if type.kind is Kind.BOOLEAN:
        return pa.array(values.astype(bool), mask=missing, type=target)
    if type.kind is Kind.DATE:
        return pa.array(values.astype(np.int32), mask=missing, type=pa.int32()).cast(target)
    return pa.array(values.astype(target.to_pandas_dtype()), mask=missing, type=target)
