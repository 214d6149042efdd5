"""Partials as bytes: an Arrow stream whose columns are the instant, the cell and group columns and every lane of every partial column.

In: `Partials` in a layout. Out: bytes, and back. Convention: the same form for entries and snapshots; the schema's metadata says
which partial each lane belongs to, so that a reader with nothing but Arrow understands the file.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from muntin.aggregates.base import Array, LaneType
from muntin.columnar import arrow_type, objects
from muntin.errors import CheckpointError
from muntin.plan.shared import PartialColumn
from muntin.windows.shards import Layout, Partials

_ARROW = {LaneType.INT64: pa.int64(), LaneType.FLOAT64: pa.float64()}


def lane_types(column: PartialColumn) -> tuple[LaneType, ...]:
    return column.partial.lanes(*(arg.type for arg in column.args))


def fields_of(layout: Layout) -> list[pa.Field]:
    """The columns of the stream, in order. A lane of objects holds values of the partial's first argument."""
    fields = [pa.field("at", pa.int64())]
    keys = zip(layout.key_types, layout.key_names, strict=True)
    fields += [pa.field(f"k{at}", type, metadata={"key": name}) for at, (type, name) in enumerate(keys)]
    for at, column in enumerate(layout.columns):
        for number, lane in enumerate(lane_types(column)):
            kind = _ARROW[lane] if lane in _ARROW else arrow_type(column.args[0].type)
            fields.append(pa.field(f"p{at}_{number}", kind, metadata={"partial": str(column)}))
    return fields


def encode_partials(partials: Partials, layout: Layout) -> memoryview:
    lanes = [lane for state in partials.states for lane in state]
    schema = pa.schema(fields_of(layout))
    types = [field.type for field in schema][1 + len(partials.keys) :]
    arrays = [pa.array(partials.at), *partials.keys, *(_to_arrow(lane, type) for lane, type in zip(lanes, types, strict=True))]
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, schema) as writer:
        writer.write_batch(pa.record_batch(arrays, schema=schema))
    return memoryview(sink.getvalue())


def _to_arrow(lane: Array, type: pa.DataType) -> pa.Array:
    return pa.array(lane.tolist() if lane.dtype == object else lane, type=type)


def decode_partials(buffer: pa.Buffer, layout: Layout) -> Partials:
    table = pa.ipc.open_stream(buffer).read_all()
    expected = pa.schema(fields_of(layout))
    if not table.schema.equals(expected, check_metadata=True):
        raise CheckpointError(
            "entries of the slice log hold the partials that the queries stand on",
            values=f"found {table.schema.names}, expected {expected.names}, or the same names with other meanings",
            way_out="run the pipeline that wrote the checkpoint, with the same aggregates and strategy, or start with a new checkpoint",
        )
    states = tuple(
        tuple(_from_arrow(table[f"p{at}_{number}"], lane) for number, lane in enumerate(lane_types(column)))
        for at, column in enumerate(layout.columns)
    )
    keys = tuple(_whole(table[f"k{at}"]) for at in range(len(layout.key_types)))
    return Partials(_from_arrow(table["at"], LaneType.INT64), keys, states)


def _from_arrow(column: pa.ChunkedArray, lane: LaneType) -> Array:
    return objects(column) if lane is LaneType.OBJECT else np.array(_whole(column).to_numpy(zero_copy_only=False), dtype=lane.dtype)


def _whole(column: pa.ChunkedArray) -> Any:
    return column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)
