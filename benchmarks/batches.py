"""Files that a streaming job takes one a micro-batch, or some, in order.

In: a directory, a number, an Arrow table. Out: a Parquet file, or some, each with as many of the rows. Convention: Spark takes files in
order of their time of change, so that is set.
"""

from __future__ import annotations

import os
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet

#: The WITH options of a stream that reads such a directory: so many files a batch, or one.
SOME_A_BATCH = "source = 'files', format = 'parquet', path = '{path}', time = 'ts', max_files_per_trigger = '{files}'"
ONE_A_BATCH = SOME_A_BATCH.replace("{files}", "1")
_FIRST_CHANGE = 1_700_000_000


def write_batch(directory: Path, number: int, rows: pa.Table, files: int = 1) -> None:
    length = -(-rows.num_rows // files)
    for file in range(files):
        path = directory / f"{number:05d}-{file}.parquet"
        pyarrow.parquet.write_table(rows.slice(file * length, length), path)
        os.utime(path, (_FIRST_CHANGE + number,) * 2)
