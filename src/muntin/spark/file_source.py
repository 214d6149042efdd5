"""Files as a stream or a table: Parquet, CSV or JSON lines, in a directory or under a glob, all there are or as they come.

In: a definition with `path` and `format`. Out: a DataFrame with exactly the declared columns, and `CORRUPT`: NULL for a good
record, the raw text of one that could not be parsed. Convention: a record with any bad field is corrupt whichever columns a query
uses. Spark parses only the columns somebody asks for, even with `columnPruning` off (that counts the fields, no more), so `CORRUPT`
is made to depend on all of them; for JSON this takes half the time of `from_json` on lines of text, which parses twice.
CSV columns are matched by position; a header is checked against their names. Where `header` is not given, a line that spells these
names is a header. JSON names are matched by case, a missing one is NULL, a line may hold an array of records, a number for a
TIMESTAMP is seconds. Spark reads the text `12:00` as that time today: give `timestamp_format` where such texts may occur.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import reduce
from operator import add, and_

from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StringType, StructType

from muntin.errors import MuntinError
from muntin.query.model import StreamDefinition, TableDefinition
from muntin.schema import STRING
from muntin.spark.file_schema import CORRUPT, check_header, check_parquet_columns, quoted, spark_schema
from muntin.spark.options import Options
from muntin.spark.positions import arrival_in_file, folder, has_folders

_TIMES = {"timestamp_format": ("timestampFormat", "timestampNTZFormat"), "date_format": ("dateFormat",)}

#: What users may set for each format, and what Spark calls it. All else is refused.
READING: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "parquet": {},
    "csv": _TIMES
    | {
        "header": ("header",), "delimiter": ("sep",), "quote": ("quote",), "escape": ("escape",), "comment": ("comment",),
        "encoding": ("encoding",), "null_value": ("nullValue",), "multi_line": ("multiLine",),
    },
    "json": _TIMES | {"encoding": ("encoding",)},
}  # fmt: skip

#: How much a micro-batch takes of the files that wait.
STREAMING = {"max_files_per_trigger": "maxFilesPerTrigger", "max_bytes_per_trigger": "maxBytesPerTrigger"}

#: What Muntin sets besides. `enforceSchema` off: a header that differs is an error, not a shift of the columns.
ALWAYS: Mapping[str, Mapping[str, str]] = {
    "parquet": {},
    "csv": {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": CORRUPT, "columnPruning": "false", "enforceSchema": "false"},
    "json": {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": CORRUPT},
}


def open_files(spark: SparkSession, stream: StreamDefinition, *, bounded: bool, numbered: bool) -> DataFrame:
    """The rows of the files; where it is not bounded, of those that come later too. `numbered`: with what orders their arrival."""
    source = _source(spark, stream, f"stream {stream.name}", STREAMING)
    with source.refusing_the_unreadable():
        source.check_patterns()
        others = [*([arrival_in_file()] if numbered else []), *([folder()] if has_folders(stream) else [])]
        return source.records(source.bounded() if bounded else source.unbounded(), others)


def table_files(spark: SparkSession, table: TableDefinition) -> FileSource:
    """The files of a static table; `source` may be left out, since there is no other."""
    source = _source(spark, table, f"table {table.name}", ())
    source.options.one_of("source", ("files",), default="files")
    return source


def _source(spark: SparkSession, declared: StreamDefinition | TableDefinition, owner: str, more: Collection[str]) -> FileSource:
    options = Options(owner, declared.options)
    format = options.one_of("format", tuple(READING))
    options.check({"source", "path", "format", *READING[format], *more}, of=f"the format {format}")
    return FileSource(spark, declared, options, format, options.text("path"))


@dataclass(frozen=True)
class FileSource:
    """The files of one stream or table and how to read them."""

    spark: SparkSession
    declared: StreamDefinition | TableDefinition
    options: Options
    format: str
    path: str

    def bounded(self) -> DataFrame:
        frame = self.spark.read.format(self.format).schema(self._schema()).options(**self._reading()).load(self.path)
        if not frame.inputFiles():
            raise self.options.refusal("there are files to read", f"none in {self.path}", "put files there, or correct the path")
        self._check_first_file()
        return frame

    def unbounded(self) -> DataFrame:
        self._check_directory()
        self._check_first_file()
        pace = {spark: str(self.options.whole(name, 1)) for name, spark in STREAMING.items() if name in self.options.values}
        if len(pace) > 1:
            raise self.options.refusal("a micro-batch is limited in one way", " and ".join(STREAMING), "keep one of them")
        return self.spark.readStream.format(self.format).schema(self._schema()).options(**self._reading(), **pace).load(self.path)

    def records(self, frame: DataFrame, others: Sequence[Column] = ()) -> DataFrame:
        """Exactly the declared columns and `CORRUPT`, and other columns that are asked for."""
        columns = [quoted(field.name) for field in self.declared.schema.fields]
        if self.format == "parquet":
            return frame.select(*columns, F.lit(None).cast("string").alias(CORRUPT), *others)
        # No optimizer knows that a count of NULLs is never negative: every column is parsed wherever CORRUPT is used.
        nulls = reduce(add, [F.isnull(column).cast("int") for column in columns])
        marked = frame.select(*columns, F.coalesce(CORRUPT, F.when(nulls < 0, F.lit(""))).alias(CORRUPT), *others)
        return marked.where(~self._is_header()) if self.format == "csv" and "header" not in self.options.values else marked

    def check_patterns(self) -> None:
        """Spark would complain about a pattern of times only when it meets the first record."""
        for name in _TIMES:
            if name in self.options.values:
                self.spark.range(1).select(F.date_format(F.timestamp_seconds(F.lit(0)), self.options.text(name))).collect()

    def _is_header(self) -> Column:
        """A header is corrupt wherever a column is not a STRING, as a stream's time is; a table may have nothing but STRINGs."""
        fields = self.declared.schema.fields
        if all(field.type == STRING for field in fields):
            spells = [F.lower(F.trim(F.col(quoted(field.name)))) == F.lit(field.name.lower()) for field in fields]
            return F.coalesce(reduce(and_, spells), F.lit(False))
        separator = self.options.values.get("delimiter", ",")
        names = separator.join("".join(field.name.lower().split()) for field in fields)
        spelled = F.regexp_replace(F.lower(CORRUPT), r"""["'\s\uFEFF]""", "")
        return F.coalesce(spelled == F.lit(names), F.lit(False))

    def _schema(self) -> StructType:
        declared = spark_schema(self.declared.schema, self.options.owner)
        return declared if self.format == "parquet" else declared.add(CORRUPT, StringType())

    def _reading(self) -> dict[str, str]:
        asked = {
            spark: self.options.values[name]
            for name, names in READING[self.format].items()
            for spark in names
            if name in self.options.values
        }
        return {**asked, **ALWAYS[self.format]}

    def _check_directory(self) -> None:
        """Only the part before the first wildcard must be there: what the glob matches may come later."""
        fixed = self.path
        if any(letter in "*?[{" for letter in self.path):
            before = next(at for at, letter in enumerate(self.path) if letter in "*?[{")
            fixed = self.path[: self.path.rfind("/", 0, before) + 1] or "."
        self.spark.read.format("text").load(fixed)

    def _check_first_file(self) -> None:
        """Compare the declared columns with those of a file, if there is one and the format tells."""
        try:
            if self.format == "parquet":
                found = self.spark.read.parquet(self.path).schema
                check_parquet_columns(self.declared.schema, found, self.options.owner)
            elif self.format == "csv" and "header" in self.options.values and self.options.switch("header"):
                reading = {
                    name: value for name, value in self._reading().items() if name in ("header", "sep", "quote", "escape", "encoding")
                }
                check_header(self.declared.schema, self.spark.read.options(**reading).csv(self.path).columns, self.options.owner)
        except AnalysisException as error:
            if error.getCondition() not in ("PATH_NOT_FOUND", "UNABLE_TO_INFER_SCHEMA"):
                raise

    @contextmanager
    def refusing_the_unreadable(self) -> Iterator[None]:
        try:
            yield
        except MuntinError:
            raise
        except Exception as error:  # besides its own errors PySpark lets py4j's through, and does not export them
            raise self._unreadable(error) from error

    def _unreadable(self, error: Exception) -> MuntinError:
        if isinstance(error, AnalysisException) and error.getCondition() == "PATH_NOT_FOUND":
            return self.options.refusal(
                "the path of a source exists", self.path, "correct the path; it is relative to the working directory"
            )
        return self.options.refusal(
            f"the files can be read as {self.format} with the options given", reason(error), "correct the format, the path or the options"
        )


def reason(error: Exception) -> str:
    """What went wrong, without Java's stack: the first line that says it."""
    lines = [line.strip().removeprefix(": ") for line in str(error).splitlines()]
    return next((line for line in lines if line and not line.startswith("An error occurred while calling")), type(error).__name__)
