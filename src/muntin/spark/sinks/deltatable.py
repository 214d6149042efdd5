"""The Delta table of one query: its columns, its commits, the files that its log names. The only module that knows deltalake.

In: data files that are in the table's folder. Out: commits, each with the transaction id of an application.
Convention: the table is made with its first rows, and marked as made by Muntin; one without the mark is somebody else's. The log is read on
from where it was before each use, so what others commit meanwhile, compaction above all, is seen. delta-rs leaves the log's files to the
operating system: on the local disk they are flushed here.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING

import pyarrow as pa

from muntin.errors import SinkError
from muntin.spark.place import Place
from muntin.spark.sinks.datafiles import DataFile
from muntin.spark.sinks.tablecolumns import new_columns
from muntin.spark.sinks.tablestore import storage_options, table_uri
from muntin.spark.stores import flush

if TYPE_CHECKING:
    from deltalake import CommitProperties, DeltaTable
    from deltalake.transaction import AddAction, RemoveAction

#: Commits between two checkpoints of a table's log: whoever reads the table reads one of these and fewer than so many commits.
CHECKPOINT_INTERVAL = 10

#: The application in whose name tables are made.
MAKER = "muntin"

_COLOUR = re.compile(r"\x1b\[\d+m")


@dataclass(frozen=True)
class CommitId:
    """What tells a commit from all others of its application: versions of one ascend."""

    application: str
    version: int


class ResultTable:
    """`folder` is the table's; `options` are delta-rs's storage options that the user gave."""

    def __init__(self, folder: Place, options: Mapping[str, str]) -> None:
        self.folder = folder
        self._uri, self._options = table_uri(folder), storage_options(folder, options)
        self._table: DeltaTable | None = None
        self._flushed = -1  #: up to which version the log is known to be on the disk

    def columns(self) -> pa.Schema:
        """No columns, if there is no table yet."""
        with self._complaints():
            table = self._present()
            return columns_of(table) if table is not None else pa.schema([])

    def has(self, commit: CommitId) -> bool:
        """Whether the table has a commit, or one after it. If another job makes it after this look, `append` fails."""
        with self._complaints():
            table = self._present()
            newest = table.transaction_version(commit.application) if table is not None else None
            return newest is not None and newest >= commit.version

    def append(self, files: Sequence[DataFile], commit: CommitId) -> None:
        """Add files in one commit, after `has` was asked. Columns that are new are added before it: without rows they say nothing."""
        from deltalake import Schema

        with self._complaints():
            schema = files[0].schema  # a query's files of one entry are alike
            table = self._made(schema)
            if new := new_columns(self.folder.name, columns_of(table), schema):
                table.alter.add_columns(Schema.from_arrow(pa.schema(new)).fields)
                if self.has(commit):  # what came since the look before is no conflict any more
                    return
            table.create_write_transaction(added(files), "append", columns_of(table), commit_properties=marked(commit))
            self._flush(table)

    def replace(self, files: Sequence[DataFile], schema: pa.Schema) -> None:
        """Make these files all there is, with columns of theirs, in one commit."""
        from deltalake import TableFeatures

        with self._complaints():
            table = self._present() or self._made(schema)
            without_zone = any(pa.types.is_timestamp(field.type) and field.type.tz is None for field in schema)
            if without_zone and "timestampNtz" not in (table.protocol().writer_features or ()):
                table.alter.add_feature(TableFeatures.TimestampWithoutTimezone, allow_protocol_versions_increase=True)
                table.update_incremental()
            commit = CommitId(MAKER, 1 + (table.transaction_version(MAKER) or 0))  # of two at once, one fails
            table.create_write_transaction(added(files), "overwrite", schema, commit_properties=marked(commit))
            self._flush(table)

    def named(self) -> set[str]:
        """The paths of all files that the log names: those with rows of the table, and those of former versions."""
        with self._complaints():
            table = self._present()
            if table is None:
                return set()
            former = table.vacuum(retention_hours=0, dry_run=True, enforce_retention_duration=False)
            return {*pa.table(table.get_add_actions())["path"].to_pylist(), *former}

    def _present(self) -> DeltaTable | None:
        """The table as it is now; None if there is none."""
        from deltalake import DeltaTable

        if self._table is not None:
            self._table.update_incremental()
            return self._table
        if DeltaTable.is_deltatable(self._uri, self._options):
            table = DeltaTable(self._uri, storage_options=self._options)
            if table.transaction_version(MAKER) is None:
                law, way_out = "a query's table was made by Muntin", "rename the query, or choose another output directory"
                raise SinkError(law, values=f"{self.folder} was made by somebody else", way_out=way_out)
            self._table, self._flushed = table, table.version() - 1
            self._flush(table)
        return self._table

    def _made(self, schema: pa.Schema) -> DeltaTable:
        """The table as it was at the last look; made, if there was none."""
        from deltalake import DeltaTable

        if self._table is None:
            self._table = DeltaTable.create(
                self._uri,
                schema,
                configuration={"delta.checkpointInterval": str(CHECKPOINT_INTERVAL)},
                storage_options=self._options,
                commit_properties=marked(CommitId(MAKER, 0)),
            )
        return self._table

    def _flush(self, table: DeltaTable) -> None:
        """Returns when the log is on the disk, as far as it has grown; shared stores see to that themselves."""
        if self.folder.local is not None:
            table.update_incremental()
            log, newest = self.folder.local / "_delta_log", table.version()
            versions = range(self._flushed + 1, newest + 1)
            grown = [log / f"{version:020d}.{kind}" for version in versions for kind in ("json", "checkpoint.parquet")]
            flush(path for path in [*grown, log / "_last_checkpoint"] if path.exists())
            flush([log, self.folder.local, self.folder.local.parent])
            self._flushed = newest

    @contextmanager
    def _complaints(self) -> Iterator[None]:
        from deltalake.exceptions import DeltaError

        try:
            yield
        except (DeltaError, OSError) as error:
            told = " ".join(_COLOUR.sub("", str(error)).split())
            raise SinkError(
                "the log of a table can be read and written",
                values=f"{self.folder}: {told}",
                way_out="check the address and the credentials; TableSink(…, storage_options=…) gives delta-rs others",
            ) from error


def columns_of(table: DeltaTable) -> pa.Schema:
    return pa.schema(table.schema().to_arrow())


def check_installed() -> None:
    if find_spec("deltalake") is None:
        law = "results become Delta tables with the package deltalake"
        raise SinkError(law, values="it is not installed", way_out="pip install muntin[delta]")


def added(files: Iterable[DataFile]) -> list[AddAction | RemoveAction]:
    from deltalake.transaction import AddAction

    now = int(time.time() * 1000)
    return [AddAction(one.path, one.size, {}, now, True, one.stats) for one in files]


def marked(commit: CommitId) -> CommitProperties:
    from deltalake import CommitProperties, Transaction

    return CommitProperties(app_transactions=[Transaction(commit.application, commit.version)])
