"""Files that a streaming job takes one a micro-batch, in order.

In: a directory, a number, an Arrow table. Out: a Parquet file. Convention: Spark takes files in order of their time of change, so that
is set.
"""

from __future__ import annotations

import os
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet

#: The WITH options of a stream that reads such a directory.
ONE_A_BATCH = "source = 'files', format = 'parquet', path = '{path}', time = 'ts', max_files_per_trigger = '1'"
_FIRST_CHANGE = 1_700_000_000


def write_batch(directory: Path, number: int, rows: pa.Table) -> None:
    path = directory / f"{number:05d}.parquet"
    pyarrow.parquet.write_table(rows, path)
    os.utime(path, (_FIRST_CHANGE + number,) * 2)
