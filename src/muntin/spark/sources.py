"""Where the rows of a stream come from: files, or the built-in generator.

In: a `StreamDefinition`. Out: a DataFrame, bounded or streaming, with exactly the declared columns and `CORRUPT`, which is NULL for
good records and holds the raw text of one that could not be parsed. Convention: what a source cannot do is refused when it is opened.
Static tables are opened by `tables`. A DataFrame of your own, of Kafka say, goes to `Engine.stream`, which asks `stream_of` what it is.
"""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from muntin.errors import Refusal
from muntin.query.disorder import OPTIONS, disorder_of, not_negative
from muntin.query.model import StreamDefinition
from muntin.schema import Field, Schema
from muntin.spark import generator
from muntin.spark.columns import type_of_spark
from muntin.spark.file_schema import CORRUPT
from muntin.spark.file_source import open_files
from muntin.spark.generator import TRADES, Trading, trades_of
from muntin.spark.options import Options
from muntin.spark.positions import order_of

__all__ = ["CORRUPT", "open_source"]

GENERATOR_OPTIONS = {"source", "rows_per_second", "rows_per_batch", "rows", "start", "seconds", "symbols", "seed"}


def open_source(spark: SparkSession, stream: StreamDefinition, bounded: bool, *, numbered: bool = False) -> DataFrame:
    """The rows of a stream: all there are if `bounded`, else a streaming DataFrame that takes what comes.

    `numbered`: with a hidden column that orders them by arrival, where the source knows (`positions`).
    """
    source = Options(f"stream {stream.name}", stream.options).one_of("source", ("files", "generator"))
    if source == "files":
        return open_files(spark, stream, bounded=bounded, numbered=numbered)
    return open_generator(spark, stream, bounded=bounded)


def open_generator(spark: SparkSession, stream: StreamDefinition, *, bounded: bool) -> DataFrame:
    """Trades of `generator`. The n-th row of a stream is the n-th row of a bounded run with the same options.

    A stream gives `rows_per_second` rows by the clock, or `rows_per_batch` in each micro-batch; without `rows` it does not end.
    """
    options = Options(f"stream {stream.name}", stream.options)
    options.check(GENERATOR_OPTIONS, of="the generator")
    check_columns(stream, options)
    trading = trading_of(options)
    if bounded:
        numbered, number = spark.range(trading.rows), "id"
    elif "rows_per_batch" in options.values:
        pace = {"rowsPerBatch": str(options.whole("rows_per_batch", 1))}
        numbered, number = spark.readStream.format("rate-micro-batch").options(**pace).load(), "value"
    else:
        pace = {"rowsPerSecond": str(options.whole("rows_per_second", max(1, round(trading.rows / trading.seconds))))}
        numbered, number = spark.readStream.format("rate").options(**pace).load(), "value"
    if not bounded and "rows" in options.values:
        numbered = numbered.where(F.col(number) < F.lit(trading.rows))
    columns = [F.col(field.name).alias(field.name) for field in stream.schema.fields]
    return trades_of(numbered, number, trading).select(*columns, F.lit(None).cast("string").alias(CORRUPT))


def trading_of(options: Options) -> Trading:
    """Given a pace and no number of rows, time runs as fast as rows come."""
    seconds = options.whole("seconds", generator.SECONDS)
    paced = options.whole("rows_per_second", 1) * seconds if "rows_per_second" in options.values else generator.ROWS
    try:
        return Trading(
            rows=options.whole("rows", paced),
            seconds=seconds,
            start=options.instant("start", generator.START),
            symbols=options.whole("symbols", generator.SYMBOLS),
            seed=options.whole("seed", generator.SEED),
        )
    except Refusal as refusal:
        raise options.refusal(refusal.law, refusal.values, refusal.way_out) from None


def check_columns(stream: StreamDefinition, options: Options) -> None:
    """The generator makes four columns; a stream may declare fewer of them, in any order."""
    for field in stream.schema.fields:
        made = TRADES.field(field.name)
        if made is None or made.type != field.type:
            raise options.refusal(f"the generator makes the columns {TRADES}", str(field), "declare these columns, or some of them")


def stream_of(name: str, frame: DataFrame, *, time: str, max_ahead: str, order: str, disorder: Mapping[str, str]) -> StreamDefinition:
    """The definition of a stream whose rows a DataFrame gives."""
    schema = Schema(tuple(Field(field.name, type_of_spark(field.dataType)) for field in frame.schema.fields))
    field = schema.field(time)
    if field is None or not field.type.temporal:
        raise Refusal(
            "a stream's time is one of its TIMESTAMP or TIMESTAMP_NTZ columns",
            values=f"time={time!r}, columns: {schema}",
            way_out="name such a column, or cast one to TIMESTAMP",
        )
    Options(f"stream {name}", disorder).check(OPTIONS, of="a stream of a DataFrame")
    slack, found = disorder_of(schema, field.name, disorder, lambda _, refusal: refusal)
    ahead = not_negative("max_ahead", max_ahead)
    return StreamDefinition(name, schema, field.name, slack, ahead, disorder=found, order=order_of(schema, order))
