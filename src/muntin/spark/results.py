"""The results of a bounded run: one Arrow table per query, and what was counted on the way.

In: a finished run. Out: tables by query name. Convention: a query that emitted nothing has an empty table with its schema; asking for
a query that stopped on its data raises the error it stopped with.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from muntin.errors import DataError, Refusal
from muntin.query.model import Query
from muntin.spark.job import StreamJob
from muntin.spark.sinks.memory import MemorySink
from muntin.windows.life import QueryLife, stopped
from muntin.windows.results import result_schema


class Results:
    def __init__(self, spark: SparkSession, queries: Sequence[Query], memory: MemorySink, jobs: Mapping[str, StreamJob]) -> None:
        self._spark = spark
        self._queries = {query.name: query for query in queries}
        self._memory = memory
        self.jobs = jobs

    def __iter__(self) -> Iterator[str]:
        return iter(self._queries)

    def __len__(self) -> int:
        return len(self._queries)

    def __getitem__(self, name: str) -> pa.Table:
        if name not in self._queries:
            raise Refusal(f"there is no query called {name}", values=f"queries: {', '.join(self._queries)}", way_out="check the name")
        if stopped := self.counts[name].stopped:
            raise DataError(f"query {name} stopped on its data", values=stopped, way_out="mend the query and run it again")
        return self._memory.tables().get(name, result_schema(self._queries[name]).empty_table())

    def frame(self, name: str) -> DataFrame:
        """The results of one query as a Spark DataFrame."""
        return self._spark.createDataFrame(self[name])

    @property
    def counts(self) -> dict[str, QueryLife]:
        """Windows, results, late rows and errors per query."""
        return {name: counts for job in self.jobs.values() for name, counts in job.assembly.lives.items()}

    @property
    def stopped(self) -> dict[str, str]:
        """Queries that stopped on their data, with the error of each."""
        return stopped(self.counts)
