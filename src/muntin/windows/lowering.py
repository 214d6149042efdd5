"""Lowering: combined states of windows into rows of results, query by query; and where a query's data goes wrong.

In: a `Piece`: windows in order of end, each with the strands it is asked for, and their states. Out: `ResultChunk`s.
Convention: queries that select the same things are lowered together, whatever their windows and predicates. What a window that is closed
cannot compute stops its query; a running value that cannot be computed is left out, since its window may yet come out right.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

import numpy as np
import pyarrow as pa

from muntin.aggregates.base import Array, State
from muntin.errors import DataError
from muntin.plan.numbering import distinct
from muntin.plan.shared import ROWS, PartialColumn, QueryPlan
from muntin.windows.life import QueryLife, Stop
from muntin.windows.ranges import Pairs, Runs
from muntin.windows.results import Failure, Rows, SelectList
from muntin.windows.store import SliceStore


class Manner(Enum):
    """What results are."""

    CLOSED = "closed"  # of windows that close now
    CORRECTED = "corrected"  # of windows that were closed and that late rows came to
    EARLY = "early"  # running values of open windows


@dataclass(frozen=True)
class ResultChunk:
    """Rows of one query, in order of window end and group; how many windows and slices they came from; why it stopped, if it did."""

    query: str
    table: pa.Table
    windows: int
    slices: int
    error: DataError | None = None
    manner: Manner = Manner.CLOSED

    def count(self, life: QueryLife) -> None:
        """Into what the query went through."""
        rows = self.table.num_rows
        life.windows += self.windows
        life.results += rows
        life.early += rows if self.manner is Manner.EARLY else 0
        life.corrected += rows if self.manner is Manner.CORRECTED else 0


def tables_by_query(chunks: Sequence[ResultChunk]) -> dict[str, pa.Table]:
    """All rows of each query in one table."""
    tables: dict[str, list[pa.Table]] = {}
    for chunk in chunks:
        tables.setdefault(chunk.query, []).append(chunk.table)
    return {query: pa.concat_tables(parts) for query, parts in tables.items()}


@dataclass(frozen=True)
class Closing:
    """Windows in order of end: the query each belongs to and its run of slices."""

    owner: Array
    runs: Runs

    def at(self, chosen: Array) -> Closing:
        return Closing(self.owner[chosen], self.runs.at(chosen))


@dataclass(frozen=True)
class Piece:
    """Some windows with the strands they are asked for; for each column the states of the pairs that use it, and where each pair is
    among them. `revision` is that of each pair. Windows that end up to `upto` are counted.
    """

    closing: Closing
    pairs: Pairs
    combined: Mapping[PartialColumn, tuple[State, Array]]
    revision: Array
    manner: Manner
    upto: int

    @property
    def owner(self) -> Array:
        return self.closing.owner

    @property
    def runs(self) -> Runs:
        return self.closing.runs


@dataclass(frozen=True)
class Kin:
    """Queries of a store that differ only in their windows and predicates: the same select list over the same columns."""

    members: tuple[int, ...]
    select: SelectList


class Lowering:
    """For the queries of a store, which go by their numbers."""

    def __init__(self, plans: Sequence[QueryPlan], store: SliceStore, lives: Mapping[str, QueryLife]) -> None:
        self.plans, self.store, self.lives = plans, store, lives
        self.kin = self._kin()
        self.kin_of = np.empty(len(plans), dtype=np.int64)
        for number, kin in enumerate(self.kin):
            self.kin_of[list(kin.members)] = number

    def _kin(self) -> list[Kin]:
        together: dict[object, list[int]] = {}
        for at, plan in enumerate(self.plans):
            together.setdefault(plan.selects, []).append(at)
        return [Kin(tuple(members), SelectList(self.plans[members[0]])) for members in together.values()]

    def results(self, piece: Piece, stops: dict[str, Stop]) -> Iterator[ResultChunk]:
        """`stops` says which queries end with which window, and is told of more."""
        of_window, of_pair = self.kin_of[piece.owner], self.kin_of[piece.owner[piece.pairs.run]]
        for number in distinct(of_window):
            windows = np.nonzero(of_window == number)[0]
            windows = windows[np.argsort(piece.owner[windows], kind="stable")]
            yield from self._of_kin(self.kin[number], piece, windows, np.nonzero(of_pair == number)[0], stops)

    def _of_kin(self, kin: Kin, piece: Piece, windows: Array, chosen: Array, stops: dict[str, Stop]) -> Iterator[ResultChunk]:
        plan, pairs, early = kin.select.plan, piece.pairs, piece.manner is Manner.EARLY
        chosen = chosen[np.argsort(piece.owner[pairs.run[chosen]], kind="stable")]
        states = {column: taken(piece.combined[column], chosen) for column in plan.columns}
        rank = np.empty(len(piece.owner), dtype=np.int64)
        rank[windows] = np.arange(len(windows))
        window, strand, revision = rank[pairs.run[chosen]], pairs.strand[chosen], piece.revision[chosen]
        owner, runs = piece.owner[windows], piece.runs.at(windows)
        empty = plan.query.emit_empty and piece.manner is Manner.CLOSED
        if empty:
            window, strand, states = with_all_windows(len(windows), window, strand, states)
            revision = np.zeros(len(window), dtype=np.int64)
        broken = states[plan.failures][0] if plan.failures is not None else np.zeros(len(window), dtype=np.int64)
        counted = np.nonzero(((states[ROWS][0] > 0) | empty) & ((broken == 0) | (not early)))[0]
        rows = self._rows(runs, window[counted], strand[counted], revision[counted], final=not early)
        table, kept, failures = kin.select.table(rows, {column: tuple(lane[counted] for lane in one) for column, one in states.items()})
        if early:
            table, kept = without(table, kept, failures)
            errors = self._errors(owner, runs, np.empty(0, dtype=np.int64), [], stops)
        else:
            wrong = np.bincount(window, weights=broken, minlength=len(windows))
            errors = self._errors(owner, runs, wrong, [(int(rows.window[one.row]), one) for one in failures], stops)
        yield from self._by_query(piece, owner, runs, table, rows.window[kept], errors, stops)

    def _rows(self, runs: Runs, window: Array, strand: Array, revision: Array, *, final: bool) -> Rows:
        groups = self.store.strands.group[strand] if self.store.family.keys else np.zeros(len(window), dtype=np.int64)
        return Rows(window, groups, runs.start[window], runs.end[window], self.store.strands.groups.columns(), revision, final)

    def _errors(
        self, owner: Array, runs: Runs, broken: Array, failures: list[tuple[int, Failure]], stops: Mapping[str, Stop]
    ) -> dict[int, Stop]:
        """For each query whose data went wrong, here or elsewhere, the first window it went wrong in, and the error.

        Of several in that window the least one, as `turns.together` has it: the text does not depend on where groups are assembled.
        """
        wrong = [(int(runs.end[window]), int(owner[window]), failure.error) for window, failure in failures]
        wrong += [(int(runs.end[at]), int(owner[at]), FAILED_ROWS) for at in np.nonzero(broken)[0]]
        known = [(number, stops.get(self.plans[number].query.name)) for number in set(owner.tolist())]
        wrong += [(stop.end, number, stop.error) for number, stop in known if stop is not None]
        first: dict[int, Stop] = {}
        for end, number, error in wrong:
            stop = Stop.at(end, error)
            first[number] = min(first.get(number, stop), stop)
        return first

    def _by_query(
        self, piece: Piece, owner: Array, runs: Runs, table: pa.Table, window: Array, errors: dict[int, Stop], stops: dict[str, Stop]
    ) -> Iterator[ResultChunk]:
        numbers, first, count = np.unique(owner, return_index=True, return_counts=True)
        lows, highs = np.searchsorted(window, first), np.searchsorted(window, first + count)
        slices = np.add.reduceat(runs.last - runs.first, first)
        found = zip(*(one.tolist() for one in (numbers, first, count, lows, highs, slices)), strict=True)
        for number, at, windows, low, high, combined in found:
            name = self.plans[number].query.name
            if self.lives[name].stopped:
                continue
            stop = errors.get(number)
            ends, error = runs.end[at : at + windows], None
            if stop is not None and stop.end <= ends[-1]:
                stops[name] = stop
                self.lives[name].stopped, error = str(stop.error), stop.error
                ends = ends[ends < stop.end]
                high = low + int((runs.end[window[low:high]] < stop.end).sum())
            windows = int((ends <= piece.upto).sum())  # those that a group alone closes are counted later
            yield ResultChunk(name, table.slice(low, high - low), windows, combined, error, piece.manner)


def taken(combined: tuple[State, Array], chosen: Array) -> State:
    state, place = combined
    at = place[chosen]
    return tuple(lane[at] for lane in state)


def without(table: pa.Table, kept: Array, failures: Sequence[Failure]) -> tuple[pa.Table, Array]:
    """Results without those that failed; `kept` says which row each came from."""
    if not failures:
        return table, kept
    good = np.nonzero(~np.isin(kept, [failure.row for failure in failures]))[0]
    return table.take(pa.array(good)), kept[good]


def with_all_windows(
    windows: int, window: Array, strand: Array, states: Mapping[PartialColumn, State]
) -> tuple[Array, Array, dict[PartialColumn, State]]:
    """For EMIT EMPTY: windows of queries whose predicate has no strand yet, with the identity as their state."""
    missing = np.setdiff1d(np.arange(windows), window)
    together = np.concatenate([window, missing])
    order = np.argsort(together, kind="stable")
    full = {
        column: tuple(
            np.concatenate([lane, np.full(len(missing), identity, dtype=lane.dtype)])[order]
            for lane, identity in zip(state, column.partial.identity(), strict=True)
        )
        for column, state in states.items()
    }
    return together[order], np.concatenate([strand, np.zeros(len(missing), dtype=np.int64)])[order], full


#: Without how many: an instance of a spread assembly sees only those of its groups.
FAILED_ROWS = DataError(
    "every row of a window can be computed",
    values="a row failed: an overflow, a division by zero, a value that cannot be cast or a function of your own",
    way_out="guard the expression (CASE, NULLIF, WHERE) or cast to a wider type",
)
