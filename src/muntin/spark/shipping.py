"""The package, shipped to the executors of a cluster.

In: a session. Out: executors that can import this Muntin. Convention: the package goes as a zip file by `addPyFile`, as Spark's
documentation advises for Python packages without native code; what it stands on there (NumPy, pandas, pyarrow) has to be on the executors
already, as PySpark itself asks for. So driver and executors run the same code, whatever is installed there.
"""

from __future__ import annotations

import atexit
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
from pyspark.sql import SparkSession

import muntin
from muntin.errors import SessionError

_shipped: set[str] = set()


def is_local(spark: SparkSession) -> bool:
    """Whether driver and executors are one process."""
    master = spark.sparkContext.master or ""
    return master.startswith("local") and not master.startswith("local-cluster")


def ship(spark: SparkSession) -> None:
    """Send the package to the executors of a cluster, once for each application."""
    application = spark.sparkContext.applicationId
    if is_local(spark) or application in _shipped:
        return
    scratch = Path(tempfile.mkdtemp(prefix="muntin-"))
    atexit.register(shutil.rmtree, scratch, ignore_errors=True)
    package = Path(muntin.__file__).parent
    if package.is_dir():  # inside a zip file it has come by --py-files already
        shipped = shutil.make_archive(str(scratch / "muntin"), "zip", package.parent, package.name)
        spark.sparkContext.addPyFile(shipped)
    _shipped.add(application)


def check_executors(spark: SparkSession, tasks: int) -> None:
    """Refuses executors that cannot assemble, before any batch does."""
    if is_local(spark):
        return
    try:
        spark.range(0, tasks, 1, tasks).mapInArrow(_import, "python string").toArrow()
    except Exception as error:
        reasons = [line.strip() for line in str(error).splitlines() if "Error" in line]
        raise SessionError(
            "executors have Python with what Muntin stands on",
            values=reasons[-1] if reasons else str(error)[:300],
            way_out="install numpy, pandas and pyarrow there, or ship an environment with --archives, and set PYSPARK_PYTHON to its Python "
            f"(the driver runs {sys.version_info.major}.{sys.version_info.minor})",
        ) from error


def _import(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    import muntin.spark.instances  # noqa: F401 - what an instance needs

    for _ in batches:
        yield pa.record_batch([pa.array([sys.version])], names=["python"])
