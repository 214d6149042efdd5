"""Fragments and shards counted by the paper's definition, without an engine: every predicate on every row, the bitmap hashed.

In: the joined rows of the hour as arrays, and queries. Out: who satisfies what (`Lineage`), and the aggregations of the paper's schemes.
Convention: bit j of a row's signature is set if and only if it satisfies query j. A row that satisfies none is a fragment as well; it
costs a partial aggregation and no final one. A window that is a single slice is not combined again.
Paper: on-the-fly-sharing-2006, Table 5 and section 5; 6.3 counts fragments per window of ten minutes and in the hour.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from benchmarks.counting import SPAN, Aggregations, Scheme, slice_starts, slices_of_windows, time_window
from benchmarks.outcome import Fragments
from muntin.demo.workloads import TUMBLING, WindowedSum
from muntin.plan.slices import Slicing
from muntin.timeline import SECOND

#: What the restrictions read, besides the time.
COLUMNS = ("price", "vol", "cp", "r3000", "r2000", "r1000")


@dataclass(frozen=True)
class JoinedRows:
    """Trades joined with both tables, in order of time: microseconds, and an array for each column."""

    times: np.ndarray
    columns: Mapping[str, np.ndarray]

    @classmethod
    def of(cls, table: pa.Table) -> JoinedRows:
        times = table["ts"].cast(pa.int64()).to_numpy()
        order = np.argsort(times, kind="stable")
        return cls(times[order], {name: table[name].to_numpy()[order] for name in COLUMNS})


@dataclass(frozen=True)
class Lineage:
    """The signature of every row, eight queries to a byte, and how many queries each row satisfies."""

    times: np.ndarray
    signatures: np.ndarray
    satisfied: np.ndarray

    @property
    def unshared(self) -> int:
        """|T|α: every row into every query that it satisfies."""
        return int(self.satisfied.sum())

    def within(self, starts: np.ndarray) -> np.ndarray:
        """The slice of each row, for slices that begin at `starts`."""
        return np.searchsorted(starts, self.times, side="right") - 1

    def shards(self, slices: np.ndarray) -> np.ndarray:
        """A row of each shard: rows in the same slice with the same signature are one."""
        keys = np.column_stack([slices.astype(">u4").view(np.uint8).reshape(-1, 4), self.signatures])
        packed = np.ascontiguousarray(keys).view(np.dtype((np.void, keys.shape[1]))).ravel()
        return np.unique(packed, return_index=True)[1]

    def fragments(self) -> Fragments:
        windows = np.arange(SPAN.start, SPAN.end, TUMBLING[0] * SECOND)
        altogether = self.shards(np.zeros(len(self.times), dtype=np.int64))
        return Fragments(len(self.shards(self.within(windows))) / len(windows), len(altogether))

    def present(self, slices: np.ndarray, count: int) -> np.ndarray:
        """Slices × queries: whether a slice has a row that satisfies the query."""
        found = np.zeros((count, self.signatures.shape[1]), dtype=np.uint8)
        occupied, first = np.unique(slices, return_index=True)
        found[occupied] = np.bitwise_or.reduceat(self.signatures, first, axis=0)
        return np.unpackbits(found, axis=1, bitorder="little").astype(bool)


def lineage(rows: JoinedRows, queries: Sequence[WindowedSum]) -> Lineage:
    """Every predicate on every row; a query without one is satisfied by all."""
    everything = np.ones(len(rows.times), dtype=bool)
    held: dict[object, np.ndarray] = {}
    signatures = np.zeros((len(rows.times), -(-len(queries) // 8)), dtype=np.uint8)
    satisfied = np.zeros(len(rows.times), dtype=np.int32)
    for at, query in enumerate(queries):
        if query.restriction not in held:
            held[query.restriction] = query.restriction.holds(rows.columns, np.abs) if query.restriction else everything
        bits = held[query.restriction]
        signatures[:, at // 8] |= bits.astype(np.uint8) << (at % 8)
        satisfied += bits
    return Lineage(rows.times, signatures, satisfied)


def aggregations(found: Lineage, queries: Sequence[WindowedSum], scheme: Scheme) -> Aggregations:
    """What one of the paper's schemes does with these rows and queries, by paired slices."""
    windows = [time_window(query) for query in queries]
    if scheme is Scheme.UNSHARED:
        own = [slice_starts([window], Slicing.PAIRED) for window in windows]
        final = sum(combined(slices_of_windows(window, starts, np.ones(len(starts)))) for window, starts in zip(windows, own, strict=True))
        return Aggregations(sum(map(len, own)), found.unshared, final)
    starts = slice_starts(windows, Slicing.PAIRED)
    slices = found.within(starts)
    into_queries = int(found.satisfied[found.shards(slices)].sum())
    present = found.present(slices, len(starts))
    into_windows = sum(combined(slices_of_windows(window, starts, present[:, at])) for at, window in enumerate(windows))
    return Aggregations(len(starts), len(found.times), into_queries + into_windows)


def combined(slices: np.ndarray) -> int:
    return int(slices[slices > 1].sum())
