"""Random windows, rows and queries for the laws, and the pane-level query over Python rows.

Times are small integers, so that edges coincide; values are dyadic fractions, so that sums of doubles are exact in any order.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

from muntin.aggregates import AGGREGATES
from muntin.aggregates.sums import FIRST, MATCHED, CountNth, CountTuples
from muntin.errors import DataError
from muntin.expression import functions
from muntin.expression.tree import AggregateCall, Column, Expression, GroupKey, Literal
from muntin.plan.family import BUCKETS
from muntin.plan.fragments import Axis
from muntin.plan.shared import Failures, Grouping, PartialColumn
from muntin.query.model import GroupColumn, Output, Query
from muntin.reference import Arrival, Row, Tables, joined, value
from muntin.schema import BIGINT, BOOLEAN, DATE, DOUBLE, INT, STRING, TIMESTAMP, Field, Kind, Schema, decimal
from muntin.semantics import Alignment, Attribute, TimeWindow, row_number
from muntin.timeline import datetime_of
from muntin.windows.shards import Partials, grouping_layout
from opaque import CLASS, LETTERS, NEAR, ODD, PICKY, SHARE
from rowfunctions import RowFunctions, Values

MONEY = decimal(12, 2)
SCHEMA = Schema(
    (
        Field("ts", TIMESTAMP),
        Field("seg", STRING),
        Field("lane", INT),
        Field("n", BIGINT),
        Field("x", DOUBLE),
        Field("money", MONEY),
        Field("flag", BOOLEAN),
        Field("day", DATE),
    )
)
COLUMNS = {field.name: Column(field.name, field.type) for field in SCHEMA.fields}


def moment(instant: int) -> datetime:
    return datetime_of(instant)


windows = st.builds(
    TimeWindow,
    range=st.integers(1, 40),
    slide=st.integers(1, 25),
    offset=st.integers(-5, 30),
    alignment=st.sampled_from(Alignment),
)
dyadic = st.integers(-4000, 4000).map(lambda number: number / 8)
rows = st.fixed_dictionaries(
    {
        "ts": st.integers(-60, 200).map(moment),
        "seg": st.none() | st.sampled_from(["a", "b", "ü"]),
        "lane": st.none() | st.integers(0, 2),
        "n": st.none() | st.integers(-(2**62), 2**62) | st.integers(-5, 5),
        "x": st.none() | dyadic,
        "money": st.none() | st.integers(-(10**11), 10**11).map(lambda cents: Decimal(cents).scaleb(-2)),
        "flag": st.none() | st.booleans(),
        "day": st.none() | st.dates(min_value=datetime(1960, 1, 1).date(), max_value=datetime(2030, 1, 1).date()),
    }
)

_WIDE = functions.cast(COLUMNS["n"], decimal(20, 0))
ARGUMENTS: dict[str, Sequence[tuple[Expression, ...]]] = {
    "count": [(), (COLUMNS["n"],), (COLUMNS["seg"],)],
    "sum": [(COLUMNS["lane"],), (COLUMNS["x"],), (COLUMNS["money"],), (_WIDE,)],
    "avg": [(COLUMNS["lane"],), (COLUMNS["x"],), (COLUMNS["money"],), (COLUMNS["n"],)],
    "weighted_avg": [(COLUMNS["x"], COLUMNS["lane"])],
}
_ANY = [(column,) for column in COLUMNS.values()]
_NUMBERS = [(COLUMNS[name],) for name in ("lane", "x", "money")]


def arguments(aggregate: str) -> Sequence[tuple[Expression, ...]]:
    """The arguments to try an aggregate on: any column for those defined on all types, numbers for the rest."""
    if aggregate in ARGUMENTS:
        return ARGUMENTS[aggregate]
    return _ANY if AGGREGATES[aggregate].name in ("min", "max") else _NUMBERS


calls = st.sampled_from(sorted(AGGREGATES)).flatmap(
    lambda name: st.sampled_from(arguments(name)).map(
        lambda args: AggregateCall(AGGREGATES[name].name, args, AGGREGATES[name].result_type(*(arg.type for arg in args)))
    )
)
_n, _x, _lane, _seg, _money, _flag = (COLUMNS[name] for name in ("n", "x", "lane", "seg", "money", "flag"))
_OPERATORS = st.sampled_from(["<", "<=", ">", ">=", "=", "<>", "<=>"])
_PLACES: list[tuple[Expression, st.SearchStrategy[Literal]]] = [
    (_n, st.integers(-5, 5).map(lambda number: Literal(number, INT))),
    (_x, st.integers(-20, 20).map(lambda number: Literal(number, INT))),
    (_lane, st.integers(-1, 3).map(lambda number: Literal(number, INT))),
    (_seg, st.sampled_from(["", "a", "b", "ü"]).map(lambda text: Literal(text, STRING))),
    (_money, st.integers(-9, 9).map(lambda number: Literal(number, decimal(1, 0)))),
]
_SMALL = st.integers(-3, 5).map(lambda number: Literal(number, INT))
#: What own functions give, compared with constants like any other expression.
_OWN_PLACES = [(functions.own_call(CLASS, _n), _SMALL), (functions.own_call(LETTERS, _seg), _SMALL)]
_FALLIBLE_PLACES = [(functions.call("/", _x, _lane), _SMALL), (functions.own_call(SHARE, _n, _lane), _SMALL)]
_OPAQUE = [functions.own_call(ODD, _n), functions.own_call(NEAR, _x, _lane), functions.own_call(ODD, functions.own_call(CLASS, _n))]
_FALLIBLE_OPAQUE = [
    functions.own_call(PICKY, _x, _lane),
    functions.own_call(NEAR, functions.call("/", _x, _lane), _lane),
    functions.own_call(ODD, functions.own_call(SHARE, _n, _lane)),
]
_OTHERS = [
    functions.call("is_null", _x),
    functions.call("in", _seg, Literal("a", STRING), Literal("ü", STRING)),
    functions.call("between", _lane, Literal(0, INT), Literal(1, INT)),
    functions.call("like", _seg, Literal("%a%", STRING)),
    functions.call("=", _seg, Literal(None, STRING)),
    functions.call("<", _x, _lane),
    Literal(True, BOOLEAN),
    _flag,
]


def predicates_over(
    places: Sequence[tuple[Expression, st.SearchStrategy[Literal]]], opaque: Sequence[Expression]
) -> st.SearchStrategy[Expression]:
    """Comparisons with constants on either side, tests of other kinds, own functions; AND, OR and NOT of them."""
    comparisons = st.tuples(_OPERATORS, st.sampled_from(places), st.booleans()).flatmap(
        lambda parts: parts[1][1].map(
            lambda constant: functions.call(parts[0], *((parts[1][0], constant) if parts[2] else (constant, parts[1][0])))
        )
    )
    return st.recursive(
        comparisons | st.sampled_from(_OTHERS) | st.sampled_from(opaque),
        lambda inner: st.one_of(
            st.tuples(st.sampled_from(["and", "or"]), inner, inner).map(lambda parts: functions.call(parts[0], parts[1], parts[2])),
            inner.map(lambda part: functions.call("not", part)),
        ),
        max_leaves=5,
    )


_steady = predicates_over([*_PLACES, *_OWN_PLACES], _OPAQUE)
fallible_predicates = predicates_over([*_PLACES, *_OWN_PLACES, *_FALLIBLE_PLACES], [*_OPAQUE, *_FALLIBLE_OPAQUE])
#: Of a query's predicates about one in five can fail on some row.
predicates = st.sampled_from([st.none(), _steady, _steady, _steady, fallible_predicates]).flatmap(lambda chosen: chosen)
groupings = st.sampled_from([(), ("seg",), ("lane",), ("seg", "lane")])


@st.composite
def queries(draw: st.DrawFn, name: str = "q") -> Query:
    chosen = tuple(dict.fromkeys(draw(st.lists(calls, min_size=1, max_size=3))))
    group_by = tuple(GroupColumn(column, COLUMNS[column]) for column in draw(groupings))
    outputs = [Output(group.name, GroupKey(at, group.expression.type)) for at, group in enumerate(group_by)]
    outputs += [Output(f"v{at}", call) for at, call in enumerate(chosen)]
    count = AggregateCall("count", (), BIGINT)
    having = draw(st.sampled_from([None, None, functions.call(">", count, Literal(1, INT))]))
    return Query(
        name=name,
        stream="s",
        window=draw(windows),
        outputs=tuple(outputs),
        where=draw(predicates),
        group_by=group_by,
        having=having,
        emit_empty=not group_by and draw(st.booleans()),
    )


query_sets = st.integers(1, 5).flatmap(lambda count: st.tuples(*(queries(name=f"q{at}") for at in range(count))))


def cut(items: list[Any], places: list[int]) -> list[list[Any]]:
    """Micro-batches: `items` cut at the given places, empty ones included."""
    edges = sorted(place % (len(items) + 1) for place in places)
    return [items[low:high] for low, high in zip([0, *edges], [*edges, len(items)], strict=True)]


def python_partials(batch: Sequence[Row], grouping: Grouping, tables: Tables | None = None) -> Partials:
    """The pane-level query over Python rows, joined with tables: grouped by tick and group, lifted with `RowFunctions`."""
    tick = grouping.slice_manager().tick
    shards: dict[Any, list[Row]] = {}
    for row in joined_rows(batch, grouping, tables or {}):
        cell = [cell_of(row, grouping.axes)] if grouping.by_cell else []
        key = (tick.floor(tick_of(row, grouping.family.over)), *cell, *(value(part, row) for part in grouping.keys))
        key += (bucket_of(key[1 + len(cell) :]),) * grouping.family.spread
        shards.setdefault(key, []).append(row)
    keys = tuple(pa.array([key[1 + at] for key in shards], type=type) for at, type in enumerate(grouping_layout(grouping).key_types))
    states = tuple(column.partial.decode(*lifted(column, list(shards.values()))) for column in grouping.columns)
    return Partials(pa.array([key[0] for key in shards], type=pa.int64()).to_numpy(), keys, states)


class Lacking(dict[str, Any]):
    """A row without a match: what it lacks is NULL."""

    def __missing__(self, name: str) -> None:
        return None


def joined_rows(batch: Sequence[Row], grouping: Grouping, tables: Tables) -> Iterator[Row]:
    """Each row once for every match; where windows end at tuples, also one that has none."""
    for row in batch:
        matches = [one.row for one in joined(grouping.queries[0], [Arrival(row)], tables)]
        yield from ({**match, MATCHED: True, FIRST: at == 0} for at, match in enumerate(matches))
        if not matches and grouping.by_tuple:
            yield Lacking({**row, MATCHED: False, FIRST: True})


def bucket_of(key: tuple[Any, ...]) -> int:
    """A bucket for a group. In Spark it is another one: any will do, if equal groups are in the same."""
    return hash(tuple("NaN" if part != part else part for part in key)) % BUCKETS


def tick_of(row: Row, over: Attribute) -> int:
    """Where a row stands on an attribute. Row numbers and times of arrival are ticks already."""
    return over.measure.tick(row[str(over)])


def cell_of(row: Row, axes: Sequence[Axis]) -> int:
    """The row's position on every axis as one number, the first axis least significant."""
    cell, stride = 0, 1
    for axis in axes:
        cell += position_of(axis, row) * stride
        stride *= axis.scale.size
    return cell


def position_of(axis: Axis, row: Row) -> int:
    try:
        return axis.position(value(axis.expression, row))
    except DataError:
        return axis.scale.failed


def lifted(column: PartialColumn, shards: list[list[Row]]) -> list[pa.Array]:
    singles = [lift_shard(column, shard) for shard in shards]
    if not singles:
        singles = [lift_shard(column, [])]
        return [arrow_of([single.value], column).slice(0, 0) for single in singles[0]]
    return [arrow_of([single[at].value for single in singles], column) for at in range(len(singles[0]))]


def lift_shard(column: PartialColumn, shard: list[Row]) -> tuple[Any, ...]:
    if isinstance(column.partial, Failures):
        return (RowFunctions(sum(fails(column, row) for row in shard)).count(1),)
    if isinstance(column.partial, CountNth):
        number, every = str(row_number(column.partial.by)), column.partial.every
        once = [row for row in shard if row[FIRST]] if isinstance(column.partial, CountTuples) else shard
        return (RowFunctions(sum(every == 1 or row[number] % every == every - 1 for row in once)).count(1),)
    passing = [row for row in shard if holds(column.where, row)]
    columns = [Values(tuple(value(arg, row) for row in passing)) for arg in column.args]
    return column.partial.lift(RowFunctions(len(passing)), *columns)


def holds(where: Expression | None, row: Row) -> bool:
    """A predicate that fails does not hold; the failure is counted in a column of its own."""
    try:
        return where is None or value(where, row) is True
    except DataError:
        return False


def fails(column: PartialColumn, row: Row) -> bool:
    try:
        if column.where is None or value(column.where, row) is True:
            for arg in column.args:
                value(arg, row)
    except DataError:
        return True
    return False


def arrow_of(values: list[Any], column: PartialColumn) -> pa.Array:
    """As Spark would type it: a decimal sum has 38 digits and the argument's scale, the rest speaks for itself."""
    of_decimals = bool(column.args) and column.args[0].type.kind is Kind.DECIMAL
    if of_decimals and all(isinstance(one, Decimal | None) for one in values):
        return pa.array(values, type=pa.decimal128(38, column.args[0].type.scale))
    return pa.array(values)
