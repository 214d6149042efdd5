"""The built-in trades generator: an hour of trades shaped like the one the papers measured, the same on every machine.

In: how many rows over how many seconds, a seed. Out: a DataFrame `(ts TIMESTAMP, symbol STRING, price DOUBLE, vol BIGINT)`.
Convention: a row is a pure function of its number and the `Trading`; a replay, a smaller batch or a stream gives the same rows.
All of it is Column expressions, so rows are made in the JVM: the hour of 1.1 M rows takes about a second on two cores.
Paper: on-the-fly-sharing-2006, sections 4.3.3 and 6.1: about 1.14 M trades in an hour, volumes from 10 to 1.6 million, half
of them exactly 100, 15 values over 90 %, fewer than 2,000 distinct values in ten minutes, some 3,000 symbols.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from muntin.errors import Refusal
from muntin.schema import BIGINT, DOUBLE, STRING, TIMESTAMP, Field, Schema
from muntin.timeline import SECOND, instant_of

TRADES = Schema((Field("ts", TIMESTAMP), Field("symbol", STRING), Field("price", DOUBLE), Field("vol", BIGINT)))

ROWS = 1_138_636
SECONDS = 3_600
START = datetime(2004, 12, 1, 12, tzinfo=UTC)
SYMBOLS = 3_200
SEED = 2004

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


def trades(
    spark: SparkSession, rows: int = ROWS, seconds: int = SECONDS, start: datetime = START, seed: int = SEED, symbols: int = SYMBOLS
) -> DataFrame:
    """`rows` trades, bounded, in order of time within each partition and from partition to partition."""
    trading = Trading(rows=rows, seconds=seconds, start=start, symbols=symbols, seed=seed)
    return trades_of(spark.range(rows), "id", trading)


def trades_of(numbered: DataFrame, number: str, trading: Trading) -> DataFrame:
    """One trade for each row of `numbered`, a function of its column `number` (from 0) alone."""
    row = F.col(number)
    ranked = numbered.select(row.alias("row"), _rank(row, trading).alias("rank"))
    return ranked.select(
        _time(F.col("row"), trading).alias("ts"),
        F.get(_symbol_table(trading.symbols), F.col("rank").cast("int")).alias("symbol"),
        _price(F.col("row"), F.col("rank"), trading).alias("price"),
        F.get(_volume_table(), _uniform(F.col("row"), trading, salt=1, size=VOLUME_SLOTS).cast("int")).cast("bigint").alias("vol"),
    )


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


def _price(row: Column, rank: Column, trading: Trading) -> Column:
    """Whole cents: the symbol's own level of 3 to 63, its trend of the day (±5 %), a wave (±1 %) and noise (±0.2 %)."""
    cents = _uniform(rank, trading, salt=2, size=6_000) + F.lit(300)
    trend = _uniform(rank, trading, salt=3, size=1_001) - F.lit(500)
    quarter = max(trading.rows // 12, 1)  # a wave takes a third of the span
    wave = F.abs(F.pmod(row + rank * F.lit(7_919), F.lit(4 * quarter)) - F.lit(2 * quarter)) - F.lit(quarter)
    noise = _uniform(row, trading, salt=4, size=41) - F.lit(20)
    basis_points = trend + _div(wave * F.lit(100), F.lit(quarter).cast("bigint")) + noise
    return _div(cents * (basis_points + F.lit(10_000)), F.lit(10_000).cast("bigint")) / F.lit(100.0)


def _volume_table() -> Column:
    """From JSON text: an array literal would be one call into the JVM for each of its 20,000 entries."""
    entries = [volume for volume, slots in COMMON_VOLUMES.items() for _ in range(slots)]
    entries += rare_volumes(VOLUME_SLOTS - len(entries))
    return F.from_json(F.lit(str(entries)), "array<int>")


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
