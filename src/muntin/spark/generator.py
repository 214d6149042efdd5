"""The built-in trades generator: an hour of trades shaped like the one the papers measured, the same on every machine.

In: how many rows over how many seconds, a seed. Out: a DataFrame `(ts TIMESTAMP, symbol STRING, price DOUBLE, vol BIGINT)`, and the
static tables that go with it: `close (symbol, cp)`, the last day's prices, and `index (symbol, r3000, r2000, r1000)`.
Convention: a row is a pure function of its number and the `Trading`; a replay, a smaller batch or a stream gives the same rows.
All of it is Column expressions, so rows are made in the JVM: the hour of 1.1 M rows takes about a second on two cores.
Paper: on-the-fly-sharing-2006, sections 4.3.3 and 6.1: about 1.14 M trades in an hour, volumes from 10 to 1.6 million, half
of them exactly 100, 15 values over 90 %, fewer than 2,000 distinct values in ten minutes, some 3,000 symbols. The market rises during
the hour: that is what leaves 11,400 fragments in ten minutes and three times as many in the hour (6.3).
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import pyarrow.csv
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from muntin.errors import Refusal
from muntin.schema import BIGINT, BOOLEAN, DOUBLE, STRING, TIMESTAMP, Field, Schema
from muntin.spark.arrays import constant_array
from muntin.timeline import SECOND, instant_of

TRADES = Schema((Field("ts", TIMESTAMP), Field("symbol", STRING), Field("price", DOUBLE), Field("vol", BIGINT)))
CLOSE = Schema((Field("symbol", STRING), Field("cp", DOUBLE)))
INDEX = Schema((Field("symbol", STRING), Field("r3000", BOOLEAN), Field("r2000", BOOLEAN), Field("r1000", BOOLEAN)))

ROWS = 1_138_636
SECONDS = 3_600
START = datetime(2004, 12, 1, 12, tzinfo=UTC)
SYMBOLS = 3_200
SEED = 2004

#: Rows of a Parquet file at the most: a file is one task when it is read.
ROWS_PER_FILE = 1_500_000

#: A row's volume is the entry of one table its hash falls on: of 20,000 entries, how many each common volume has.
VOLUME_SLOTS = 20_000
COMMON_VOLUMES = {
    100: 10_000, 200: 2_100, 300: 1_320, 500: 1_100, 400: 840, 1_000: 800, 600: 400, 700: 300,
    800: 280, 2_000: 240, 900: 220, 1_500: 160, 1_200: 140, 5_000: 120, 3_000: 120,
}  # fmt: skip
SMALLEST_VOLUME, LARGEST_VOLUME = 10, 1_600_000

#: Symbol of rank k has a share of about 1 / (k + 10): the first trades 300 times as often as the last of 3,200.
_RANK_SHIFT = 10
_RANK_GRAIN = 2**24

#: One symbol in 16 is in no index; a third of the others, the most traded ones, are in R1000: 1,000 and 2,000 of 3,200.
_OUTSIDE = 16

#: Changes since the last day in basis points, at the most: of the market (it rises from 0, then falls again), of a symbol, of its wave
#: about that, and of a single trade.
_MARKET, _OWN, _WAVE, _NOISE = 300, 110, 20, 5


@dataclass(frozen=True)
class Trading:
    """What is traded: `rows` rows spread evenly over `seconds` from `start` on; rows beyond go on at the same pace."""

    rows: int = ROWS
    seconds: int = SECONDS
    start: datetime = START
    symbols: int = SYMBOLS
    seed: int = SEED

    def __post_init__(self) -> None:
        if min(self.rows, self.seconds, self.symbols) < 1:
            raise Refusal(
                "a generator makes at least one row, of one symbol, over one second",
                values=f"rows {self.rows}, seconds {self.seconds}, symbols {self.symbols}",
                way_out="give positive whole numbers",
            )
        if self.rows * self.seconds * SECOND >= 2**63:
            raise Refusal(
                "a row's time is computed in 64 bits",
                values=f"rows {self.rows} × seconds {self.seconds} × 1,000,000",
                way_out="make fewer rows or a shorter time; a stream goes on at the same pace after them",
            )


DEFAULT = Trading()


def trades(
    spark: SparkSession, rows: int = ROWS, seconds: int = SECONDS, start: datetime = START, seed: int = SEED, symbols: int = SYMBOLS
) -> DataFrame:
    """`rows` trades, bounded, in order of time within each partition and from partition to partition."""
    trading = Trading(rows=rows, seconds=seconds, start=start, symbols=symbols, seed=seed)
    return trades_of(spark.range(rows), "id", trading)


def write_files(spark: SparkSession, directory: Path, *, rows: int = ROWS, seconds: int = SECONDS) -> None:
    """All three as files: `trades/*.parquet`, in order of time as a feed writes them, `close.csv` and `index.csv`."""
    directory.mkdir(parents=True, exist_ok=True)
    in_a_file = min(ROWS_PER_FILE, -(-rows // 4))
    writer = trades(spark, rows=rows, seconds=seconds).write.mode("overwrite").option("maxRecordsPerFile", in_a_file)
    writer.parquet(str(directory / "trades"))
    for name, table in {"close": closing_prices(spark), "index": index_membership(spark)}.items():
        pyarrow.csv.write_csv(table.toArrow(), directory / f"{name}.csv")


def trades_of(numbered: DataFrame, number: str, trading: Trading) -> DataFrame:
    """One trade for each row of `numbered`, a function of its column `number` (from 0) alone."""
    row = F.col(number)
    ranked = numbered.select(row.alias("row"), _rank(row, trading).alias("rank"))
    return ranked.select(
        _time(F.col("row"), trading).alias("ts"),
        _symbol(F.col("rank"), trading),
        _price(F.col("row"), F.col("rank"), trading).alias("price"),
        F.get(_volume_table(), _uniform(F.col("row"), trading, salt=1, size=VOLUME_SLOTS).cast("int")).cast("bigint").alias("vol"),
    )


def closing_prices(spark: SparkSession, trading: Trading = DEFAULT) -> DataFrame:
    """The paper's table Close: each symbol's price at the end of the day before."""
    rank = F.col("id")
    return spark.range(trading.symbols).select(_symbol(rank, trading), (_level(rank, trading) / F.lit(100.0)).alias("cp"))


def index_membership(spark: SparkSession, trading: Trading = DEFAULT) -> DataFrame:
    """The paper's table Index: R3000 is R2000 and R1000 together."""
    rank = F.col("id")
    inside = F.pmod(rank, F.lit(_OUTSIDE)) != F.lit(_OUTSIDE - 1)
    large = rank - _div(rank, F.lit(_OUTSIDE).cast("bigint")) < F.lit((trading.symbols - trading.symbols // _OUTSIDE) // 3)
    members = {"r3000": inside, "r2000": inside & ~large, "r1000": inside & large}
    return spark.range(trading.symbols).select(_symbol(rank, trading), *(member.alias(name) for name, member in members.items()))


def _symbol(rank: Column, trading: Trading) -> Column:
    return F.get(_symbol_table(trading.symbols), rank.cast("int")).alias("symbol")


def _uniform(value: Column, trading: Trading, *, salt: int, size: int) -> Column:
    """A whole number in `[0, size)`, as good as random, from a value; different for every salt."""
    return F.pmod(F.xxhash64(F.lit(trading.seed * 8 + salt), value), F.lit(size).cast("bigint"))


def _div(dividend: Column, divisor: Column) -> Column:
    """Whole division. Through doubles it would lose digits beyond 2^53, and `round` is five times slower."""
    return F.call_function("div", dividend, divisor)


def _time(row: Column, trading: Trading) -> Column:
    """Whole spans first, then the part of one: `row * span` alone would overflow in a stream that runs for long."""
    rows = F.lit(trading.rows).cast("bigint")
    span = F.lit(trading.seconds * SECOND).cast("bigint")
    since = _div(row, rows) * span + _div(F.pmod(row, rows) * span, rows)
    return F.timestamp_micros(F.lit(instant_of(trading.start)).cast("bigint") + since)


def _rank(row: Column, trading: Trading) -> Column:
    """The symbol's rank by popularity. `pow` is Java's StrictMath in Spark: the same digits on every machine."""
    share = _uniform(row, trading, salt=0, size=_RANK_GRAIN) / F.lit(float(_RANK_GRAIN))
    ratio = F.lit((trading.symbols + _RANK_SHIFT) / _RANK_SHIFT)
    return F.floor(F.pow(ratio, share) * F.lit(float(_RANK_SHIFT))) - F.lit(_RANK_SHIFT)


def _level(rank: Column, trading: Trading) -> Column:
    """The last day's closing price in cents: 3.00 to 62.99."""
    return _uniform(rank, trading, salt=2, size=6_000) + F.lit(300)


def _price(row: Column, rank: Column, trading: Trading) -> Column:
    """Whole cents: the closing price, and the changes since."""
    market = _swing(row, half=trading.rows, most=_MARKET)
    wave = _swing(row + rank * F.lit(7_919), half=4 * trading.rows // 3, most=2 * _WAVE) - F.lit(_WAVE)
    noise = _uniform(row, trading, salt=4, size=2 * _NOISE + 1) - F.lit(_NOISE)
    basis_points = market + _own_change(rank, trading) + wave + noise
    return _div(_level(rank, trading) * (basis_points + F.lit(10_000)), F.lit(10_000).cast("bigint")) / F.lit(100.0)


def _own_change(rank: Column, trading: Trading) -> Column:
    """The mean of three: most symbols move with the market, few far from it."""
    parts = [_uniform(rank, trading, salt=salt, size=2 * _OWN + 1) - F.lit(_OWN) for salt in (3, 5, 6)]
    return _div(sum(parts[1:], parts[0]), F.lit(3).cast("bigint"))


def _swing(row: Column, *, half: int, most: int) -> Column:
    """From 0 to `most` in `half` a swing, and back."""
    half = max(half, 1)
    return F.lit(most) - _div(F.abs(F.pmod(row, F.lit(2 * half)) - F.lit(half)) * F.lit(most), F.lit(half).cast("bigint"))


def _volume_table() -> Column:
    entries = [volume for volume, slots in COMMON_VOLUMES.items() for _ in range(slots)]
    entries += rare_volumes(VOLUME_SLOTS - len(entries))
    return constant_array(entries, "int")


def rare_volumes(count: int) -> list[int]:
    """`count` distinct volumes that are not common ones, dense at the low end and sparse towards the largest."""
    found: list[int] = []
    for place in range(count):
        aim = SMALLEST_VOLUME * (LARGEST_VOLUME / SMALLEST_VOLUME) ** ((place / (count - 1)) ** 6)
        volume = max(round(aim), found[-1] + 1 if found else SMALLEST_VOLUME)
        while volume in COMMON_VOLUMES:
            volume += 1
        found.append(volume)
    return found


def _symbol_table(count: int) -> Column:
    return F.split(F.lit(",".join(symbol(rank) for rank in range(count))), ",")


def symbol(rank: int) -> str:
    """The letters of a rank: A to Z, then AA, AB, … as tickers look.

    >>> [symbol(0), symbol(25), symbol(26), symbol(3199)]
    ['A', 'Z', 'AA', 'DSB']
    """
    letters = ""
    left = rank + 1
    while left:
        left, letter = divmod(left - 1, 26)
        letters = chr(ord("A") + letter) + letters
    return letters
