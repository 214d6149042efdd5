"""Static tables by version: what is there now, and the very rows that an earlier batch saw.

In: definitions with files behind them, or DataFrames the user has. Out: versions, and the rows of a version as a DataFrame.
Convention: a version is a fingerprint of the declaration and the files (path, size, time of change), or the identity of a DataFrame.
A new version is read when `versions` first sees it: into memory, and with a checkpoint into a Parquet copy `<table>@<version>` beside
it, from which it is always read, so that a batch that is computed again finds the same rows. Spark writes a copy in place, on whatever
file system the checkpoint is; the file `_muntin`, written after it and deleted before it, says that all of it is there. A bad record is
refused, and so is a table whose files change while they are read; where there is a copy of the version before, that one is used, and
`troubles` says why.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from urllib.parse import quote, unquote, urlsplit
from uuid import uuid4

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from muntin.errors import CheckpointError, Refusal, SourceError
from muntin.query.model import TableDefinition
from muntin.schema import OTHER, Field, Schema
from muntin.spark import durable
from muntin.spark.columns import spark_type, type_of_spark
from muntin.spark.file_source import FileSource, table_files
from muntin.spark.place import Place
from muntin.spark.rows import resolve
from muntin.spark.sources import CORRUPT

#: How often a table is read again because its files changed meanwhile.
_ATTEMPTS = 3
#: In a copy, written last: the digest of each file that Spark wrote. Spark does not read files whose names begin like this.
_CONTENTS = "_muntin"


def definition_of(name: str, frame: DataFrame) -> TableDefinition:
    """The definition of a DataFrame that queries join as a static table."""
    if frame.isStreaming:
        raise Refusal(
            "a table is static", values=f"{name} is a streaming DataFrame", way_out="give a DataFrame that was read with spark.read"
        )
    return TableDefinition(name, Schema(tuple(Field(field.name, type_of_spark(field.dataType)) for field in frame.schema.fields)))


class Tables:
    """Static tables, by version. Names are in lower case. Without `copies` only the newest version can be had."""

    def __init__(self, spark: SparkSession, definitions: Mapping[str, TableDefinition], copies: Place | None) -> None:
        self._spark = spark
        self._definitions = definitions
        self._copies = copies
        self._given: dict[str, tuple[str, DataFrame]] = {}
        self._held: dict[str, tuple[str, DataFrame]] = {}
        self._newest_known: dict[str, str] = {}
        self._bad: dict[str, tuple[str, SourceError]] = {}  #: versions with bad records: nobody reads them a second time
        self.troubles: dict[str, SourceError] = {}  #: tables that are used as they were, since what is there now cannot be

    def add(self, name: str, frame: DataFrame) -> None:
        """Take the rows of a table from a DataFrame; each call makes a new version. Its definition is that of `definition_of`."""
        self._given[name.lower()] = uuid4().hex, frame

    def know(self, versions: Mapping[str, str]) -> None:
        """What `versions` said in an earlier run."""
        self._newest_known |= versions

    def check(self, names: Iterable[str]) -> None:
        """Refuse tables that cannot be read, if they were not read before."""
        self.versions(name for name in names if name not in self._newest_known)

    def versions(self, names: Iterable[str]) -> dict[str, str]:
        """The versions that are there now, read and copied, so that `frame` has them whatever happens to the files."""
        self._newest_known |= (found := {name: self._usable(name) for name in names})
        return found

    def _usable(self, name: str) -> str:
        """The newest version; or the one before, if that is there and the newest cannot be read."""
        known = self._newest_known.get(name)
        try:
            version = self._newest(name)
        except SourceError as error:
            if known is None or self._copies is None or not self._has(name, known):
                raise
            self.troubles[name] = error
            return known
        self.troubles.pop(name, None)
        return version

    def frame(self, name: str, version: str) -> DataFrame:
        """The rows of a version, under their declared names, kept in memory until another version is used."""
        held, rows = self._held.get(name, ("", None))
        if rows is not None and held == version:
            return rows
        if self._copies is None:
            law = "without a checkpoint a static table has its newest version only"
            raise Refusal(law, values=f"version {version} of {name}", way_out="ask for a version that `versions` gave last")
        copy = self._copy(name, version)
        if not copy.files():
            raise CheckpointError(
                "a batch is computed again with the very rows of the static tables that it saw",
                values=f"no copy of version {version} of the table {name}: {copy}",
                way_out="restore the checkpoint directory from a copy, or start again with a new checkpoint and a new output directory",
            )
        _check_copy(copy)
        return self._hold(name, version, self._spark.read.schema(self._schema(name)).parquet(_literal(copy)))

    def forget(self, in_use: Iterable[Mapping[str, str]]) -> None:
        """Delete the copies of versions that are neither the newest nor in use; `in_use` are answers of `versions`."""
        if self._copies is None:
            return
        held = {name: version for name, (version, _) in self._held.items()}
        kept = {self._copy(*item).name for versions in (*in_use, held, self._newest_known) for item in versions.items()}
        for copy in (self._copies / name for name in self._copies.folders() if name not in kept):
            (copy / _CONTENTS).remove()
            copy.remove_tree()

    def release(self) -> None:
        """Let go of all rows in memory."""
        for name in list(self._held):
            self._held.pop(name)[1].unpersist()

    def _newest(self, name: str) -> str:
        if name in self._given:
            version, frame = self._given[name]
            if not self._has(name, version):
                self._take(name, version, frame, unchanged=lambda: True)
            return version
        source = table_files(self._spark, self._definitions[name])
        with source.refusing_the_unreadable():
            for _ in range(_ATTEMPTS):
                version = fingerprint(source)
                if self._bad.get(name, ("",))[0] == version:
                    raise self._bad[name][1]
                if self._has(name, version) or self._read(name, version, source):
                    return version
        way_out = "write new files aside and rename them into place"
        raise source.options.refusal("the files of a table stay as they are while they are read", f"{source.path} changes", way_out)

    def _has(self, name: str, version: str) -> bool:
        return self._held.get(name, ("",))[0] == version or (self._copies is not None and (self._copy(name, version) / _CONTENTS).exists())

    def _read(self, name: str, version: str, source: FileSource) -> bool:
        """Read a version from its files; false if they changed meanwhile."""
        if self._copies is None:
            self._release(name)  # Spark knows files in memory by their paths: it would find the old rows under the new version
        source.check_patterns()
        records = source.records(source.bounded())
        self._check_records(name, version, records)
        return self._take(name, version, records, unchanged=lambda: fingerprint(source) == version)

    def _take(self, name: str, version: str, frame: DataFrame, *, unchanged: Callable[[], bool]) -> bool:
        """Copy a version, or keep it in memory where there are no copies."""
        rows = frame.select(*map(resolve, self._schema(name).names))
        if self._copies is None:
            self._hold(name, version, rows).count()
            if not unchanged():
                self._release(name)
            return name in self._held
        copy = self._copy(name, version)
        rows.write.mode("overwrite").parquet(copy.spark_uri)
        if not unchanged():
            return False
        copy.flush_tree()
        durable.write(copy / _CONTENTS, {"files": _digests(copy)})
        return True

    def _check_records(self, name: str, version: str, rows: DataFrame) -> None:
        bad = resolve(CORRUPT)
        count, total, first = rows.select(F.count(bad), F.count(F.lit(1)), F.min(bad)).collect()[0]
        if count:
            error = SourceError(
                f"table {self._definitions[name].name}: every record can be read as it is declared",
                values=f"{count} of {total} cannot, {first!r} for one",
                way_out="correct the file, or declare the columns as the file has them",
            )
            self._bad[name] = version, error
            raise error

    def _hold(self, name: str, version: str, rows: DataFrame) -> DataFrame:
        self._release(name)
        self._held[name] = version, rows.persist()
        return rows

    def _release(self, name: str) -> None:
        if name in self._held:
            self._held.pop(name)[1].unpersist()

    def _copy(self, name: str, version: str) -> Place:
        assert self._copies is not None
        return self._copies / f"{quote(name, safe='').replace('.', '%2E')}@{version}"

    def _schema(self, name: str) -> StructType:
        """The columns that expressions can use."""
        schema = StructType()
        for field in self._definitions[name].schema.fields:
            if field.type != OTHER:
                schema.add(field.name, spark_type(field.type))
        return schema


def fingerprint(source: FileSource) -> str:
    """What tells one state of a table's files and their declaration from another."""
    listed = source.spark.read.format("text").load(source.path).inputFiles()
    local = [Path(unquote(urlsplit(uri).path)) for uri in listed if urlsplit(uri).scheme == "file"]
    if len(local) == len(listed):
        files = [f"{path} {path.stat().st_size} {path.stat().st_mtime_ns}" for path in local]
    else:
        states = source.spark.read.format("binaryFile").load(source.path).select("path", "length", F.unix_micros("modificationTime"))
        files = [" ".join(map(str, state)) for state in states.collect()]
    declared = f"{source.declared.schema} {sorted(source.declared.options.items())}"
    return hashlib.sha256("\n".join([declared, *sorted(files)]).encode()).hexdigest()[:32]


def _digests(copy: Place) -> dict[str, str]:
    """What Spark reads of a copy, file by file."""
    return {name: hashlib.sha256((copy / name).read()).hexdigest() for name in copy.files() if not name.startswith("_")}


def _check_copy(copy: Place) -> None:
    """Spark would read what is left of a copy: a missing part would be missing rows."""
    written, found = durable.read(copy / _CONTENTS)[0]["files"], _digests(copy)
    for name in sorted(written.keys() | found.keys()):
        if written.get(name) != found.get(name):
            raise durable.damaged(copy / name, "it is missing" if name not in found else "it is not what was written")


def _literal(place: Place) -> str:
    """A place as Spark reads it without taking brackets and stars for a pattern."""
    return re.sub(r"([\\*?{}\[\]])", r"\\\1", place.spark_uri)
