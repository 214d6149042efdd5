"""Muntin: many sliding-window aggregate queries over one stream, for about the cost of reading the stream once.

The path of the data, and the module that is each step of it:

    SQL text      query.text → query.check → query.registry     typed queries
    plan          plan.slices, plan.fragments, plan.divide, plan.shared   which slices and cells, which partial columns, who uses what
    rows          spark.sources → spark.joining → spark.partials  one Spark aggregation per micro-batch, in the JVM
    partials      spark.slicelog                                 durable, one entry per batch: the only state there is
    states        windows.folding → windows.store                partials by slice, predicate and group
    windows       windows.assembly, windows.closing              slices combined into results when a punctuation closes them
    on executors  plan.placing, spark.assembling → spark.crew    the same assembly, by several instances with some of the groups each
    results       spark.sinks                                    files, tables, topics, memory, console, callback
    places        spark.place → spark.stores, spark.ownership    where partials and results lie: the local disk, S3, HDFS, …

`semantics` defines what a window is, `reference` evaluates a query the obvious way, `disorder` makes the punctuations.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from muntin.aggregates.base import Aggregate, Differential, LaneType, Lowered, Partial
    from muntin.aggregates.own import Part, own_aggregate
    from muntin.errors import MuntinError
    from muntin.plan.divide import Sharing
    from muntin.plan.placing import Placement
    from muntin.plan.slices import Slicing
    from muntin.query.own_functions import python_function, spark_function
    from muntin.spark.engine import Engine
    from muntin.spark.place import Place
    from muntin.spark.results import Results
    from muntin.spark.running import Pace, RunningJob, Trigger
    from muntin.spark.session import session
    from muntin.spark.sinks.callback import CallbackSink
    from muntin.spark.sinks.console import ConsoleSink
    from muntin.spark.sinks.files import FileSink, Layout
    from muntin.spark.sinks.memory import MemorySink
    from muntin.spark.sinks.tables import TableSink
    from muntin.spark.sinks.topics import TopicSink

__version__ = "0.1.0"

__all__ = [
    "Aggregate", "CallbackSink", "ConsoleSink", "Differential", "Engine", "FileSink", "LaneType", "Layout", "Lowered", "MemorySink",
    "MuntinError", "Pace", "Part", "Partial", "Place", "Placement", "Results", "RunningJob", "Sharing", "Slicing", "TableSink", "TopicSink",
    "Trigger", "own_aggregate", "python_function", "session", "spark_function",
]  # fmt: skip

#: Where the public names are. Each module is imported when one of its names is first asked for: commands that only talk to a running job
#: need neither PySpark nor Arrow.
_HOMES = {
    "muntin.aggregates.base": ("Aggregate", "Differential", "LaneType", "Lowered", "Partial"),
    "muntin.aggregates.own": ("Part", "own_aggregate"),
    "muntin.errors": ("MuntinError",),
    "muntin.plan.divide": ("Sharing",),
    "muntin.plan.placing": ("Placement",),
    "muntin.plan.slices": ("Slicing",),
    "muntin.query.own_functions": ("python_function", "spark_function"),
    "muntin.spark.engine": ("Engine",),
    "muntin.spark.place": ("Place",),
    "muntin.spark.results": ("Results",),
    "muntin.spark.running": ("Pace", "RunningJob", "Trigger"),
    "muntin.spark.session": ("session",),
    "muntin.spark.sinks.callback": ("CallbackSink",),
    "muntin.spark.sinks.console": ("ConsoleSink",),
    "muntin.spark.sinks.files": ("FileSink", "Layout"),
    "muntin.spark.sinks.memory": ("MemorySink",),
    "muntin.spark.sinks.tables": ("TableSink",),
    "muntin.spark.sinks.topics": ("TopicSink",),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = globals()[name] = getattr(import_module(_HOME_OF[name]), name)
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
