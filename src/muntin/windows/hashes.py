"""Hashes of group values: 64 bits for each row of some columns, all rows at once.

In: Arrow columns. Out: int64 hashes, equal for equal values. Convention: NULL is a value, NaN is one value and so are both zeros, as in
Spark's GROUP BY. Different values may have the same hash: whoever uses it compares the values (`GroupIndex`).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pandas.util import hash_array

from muntin.columnar import Array, decimal_limbs, floats, integers, objects

_NULL = np.uint64(0x9E3779B97F4A7C15)
_FACTORS = (np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB))


def mixed(hashes: Array) -> Array:
    """Every bit of each hash spread over all bits: the finaliser of SplitMix64."""
    spread = hashes.astype(np.uint64)
    for shift, factor in zip((30, 27), _FACTORS, strict=True):
        spread = (spread ^ (spread >> np.uint64(shift))) * factor
    return spread ^ (spread >> np.uint64(31))


def row_hashes(columns: Sequence[pa.Array]) -> Array:
    """A hash for each row of the columns together."""
    together = np.zeros(len(columns[0]), dtype=np.uint64)
    for column in columns:
        together = mixed(together * np.uint64(31) + value_hashes(column))
    return together.view(np.int64)


def value_hashes(column: pa.Array) -> Array:
    """Values that take long to hash are hashed once for each distinct one."""
    if pa.types.is_null(column.type):
        return np.full(len(column), _NULL)
    if takes_no_time(column.type):
        return np.where(column.is_valid().to_numpy(zero_copy_only=False), mixed(_distinct(column)), _NULL)
    encoded = column.dictionary_encode()
    hashes = np.append(mixed(_distinct(encoded.dictionary)), _NULL)
    return hashes[integers(encoded.indices, null=len(encoded.dictionary))]


def takes_no_time(type: pa.DataType) -> bool:
    """Whether values are machine words."""
    return not (pa.types.is_string(type) or pa.types.is_decimal(type))


def _distinct(values: pa.Array) -> Array:
    """64 bits for each of some values: the value itself, where it has no more."""
    if pa.types.is_floating(values.type):
        numbers = floats(values, null=0.0) + 0.0
        return np.where(np.isnan(numbers), np.nan, numbers).view(np.uint64)
    if pa.types.is_decimal(values.type):
        low, middle, high, sign = (limb.view(np.uint64) for limb in decimal_limbs(values))
        return mixed(low ^ (middle << np.uint64(32))) + (high ^ (sign << np.uint64(32)))
    if pa.types.is_string(values.type):
        hashes: Array = hash_array(objects(values), categorize=False)
        return hashes
    return integers(values, null=0).view(np.uint64)


def same_rows(some: Sequence[pa.Array], others: Sequence[pa.Array]) -> Array:
    """Whether row i of some columns equals row i of others."""
    same = np.ones(len(some[0]), dtype=bool)
    for one, other in zip(some, others, strict=True):
        equal = np.asarray(pc.equal(one, other).fill_null(False).to_numpy(zero_copy_only=False), dtype=bool)
        absent = [np.asarray(column.is_null(nan_is_null=False).to_numpy(zero_copy_only=False), dtype=bool) for column in (one, other)]
        if pa.types.is_floating(one.type):
            equal |= np.isnan(floats(one, null=0.0)) & np.isnan(floats(other, null=0.0))
        same &= (equal & ~absent[0] & ~absent[1]) | (absent[0] & absent[1])
    return same
