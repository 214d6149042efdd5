"""What a pipeline says once it is checked: streams, tables and queries, as frozen values.

In: built by `check` from the statements of `text`. Out: read by `plan`, `windows`, `reference` and `spark`.
Convention: expressions are typed trees; select lists and HAVING stand on aggregates, group keys and window bounds only.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property

from muntin.errors import Refusal
from muntin.expression.tree import AggregateCall, Expression, GroupKey, aggregates_of
from muntin.hashing import hashed_once
from muntin.query.disorder import NO_DISORDER, Disorder
from muntin.schema import BIGINT, BOOLEAN, Schema, Type
from muntin.semantics import ROWS, Attribute, SlicedWindow, SlideOrder, TupleSlide, Window, row_number
from muntin.timeline import DAY, Duration


@dataclass(frozen=True)
class StreamDefinition:
    """`CREATE STREAM`: the columns, the windowing attribute, the disorder to expect, and where the rows come from.

    `slack` is None where nothing bounds disorder by time. `options` holds what belongs to the source (`source`, `path`, `format`, …) as
    it was written. `order` are the columns that rows of a batch came by, where it is for columns to say.
    """

    name: str
    schema: Schema
    time: str
    slack: Duration | None = Duration(0)
    max_ahead: Duration = Duration(DAY)
    options: Mapping[str, str] = field(default_factory=dict)
    disorder: Disorder = NO_DISORDER
    order: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.name} ({self.schema}) time={self.time} {', '.join(self.disorder.described(self.slack))}"


@dataclass(frozen=True)
class TableDefinition:
    """`CREATE TABLE`: a static table, which queries join with their stream. `options` say where its rows are.

    Its rows may change while a job runs: a batch sees one version of them, the one that was there when it began.
    """

    name: str
    schema: Schema
    options: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class GroupColumn:
    """One item of GROUP BY and the name its values go by in the results."""

    name: str
    expression: Expression


@dataclass(frozen=True)
class Output:
    """One item of the select list."""

    name: str
    expression: Expression


@hashed_once
@dataclass(frozen=True)
class Join:
    """One static table that a query joins: an inner join, so duplicate keys multiply the rows of the stream.

    `table` is the table's name in lower case. `name` is what its columns are called by in expressions (`close.cp`): the same name,
    and `close#2` where a query joins the table a second time, so that queries with different aliases share. `on` are pairs that
    are equal: the first over columns of the stream and of earlier joins, the second over this table's; NULL matches nothing.
    """

    table: str
    name: str
    on: tuple[tuple[Expression, Expression], ...]

    def __str__(self) -> str:
        return f"{self.name} ON {' AND '.join(f'{left} = {right}' for left, right in self.on)}"


#: What results are marked with, where a query asks for early or corrected ones.
REVISION, FINAL = "revision", "final"


class Lateness(Enum):
    """What becomes of a row that comes after one of its windows was closed. The value is the SQL word."""

    GENEROUS = "GENEROUS"  # it counts in its windows that are open
    CONSISTENT = "CONSISTENT"  # it counts in none
    REEMIT = "REEMIT"  # windows closed for less than the horizon are emitted again, corrected


@dataclass(frozen=True)
class LatePolicy:
    """`horizon`, in ticks of the windowing attribute: a window that ends at e is corrected until the punctuation reaches e + horizon."""

    lateness: Lateness = Lateness.GENEROUS
    horizon: int = 0

    def __str__(self) -> str:
        return f"LATE {self.lateness.value}"


GENEROUS = LatePolicy()


@hashed_once
@dataclass(frozen=True)
class Query:
    """A checked window query. `joins` come before `where`, in their order. `text` is what the user wrote.

    Group columns begin with those of PATTR, if there are any. `emit_every` is the time on the clock between early results.
    """

    name: str
    stream: str
    window: Window
    outputs: tuple[Output, ...]
    where: Expression | None = None
    group_by: tuple[GroupColumn, ...] = ()
    having: Expression | None = None
    emit_empty: bool = False
    joins: tuple[Join, ...] = ()
    text: str = field(default="", compare=False, repr=False)
    emit_every: Duration | None = None
    late: LatePolicy = GENEROUS

    @property
    def sliding(self) -> SlicedWindow:
        """The window, where RANGE and SLIDE are over one attribute: it is a run of slices."""
        if isinstance(self.window, TupleSlide):
            law, way_out = "slices are of windows whose edges no row decides", "evaluate the query by the path of its own window type"
            raise Refusal(law, values=str(self.window), way_out=way_out)
        return self.window

    @property
    def is_corrected(self) -> bool:
        return self.late.lateness is Lateness.REEMIT

    @property
    def marks(self) -> tuple[tuple[str, Type], ...]:
        """The columns behind the select list that say what a result is: which revision of it, and whether it is final."""
        corrected, early = self.is_corrected, self.emit_every is not None
        return (*((REVISION, BIGINT),) * corrected, *((FINAL, BOOLEAN),) * early)

    @property
    def counts_rows(self) -> bool:
        """Whether rows have to be numbered for it."""
        if isinstance(self.window, TupleSlide):
            return self.window.order is SlideOrder.ARRIVAL and self.window.slide > 1
        return self.window.measure == ROWS

    @property
    def counter(self) -> Attribute | None:
        """The numbers that rows have to have for it, if any: those of the stream, or of each partition."""
        return row_number(self.window.pattr) if self.counts_rows else None

    @property
    def selected_groups(self) -> tuple[str, ...]:
        """The names of the group columns that are selected, in the order of GROUP BY."""
        names = {output.expression.index: output.name for output in self.outputs if isinstance(output.expression, GroupKey)}
        return tuple(names[index] for index in sorted(names))

    @cached_property
    def aggregate_calls(self) -> tuple[AggregateCall, ...]:
        """The distinct aggregates that outputs and HAVING stand on."""
        roots = [output.expression for output in self.outputs] + ([self.having] if self.having else [])
        return tuple(dict.fromkeys(call for root in roots for call in aggregates_of(root)))


@dataclass(frozen=True)
class Pipeline:
    """A whole pipeline file."""

    streams: tuple[StreamDefinition, ...] = ()
    tables: tuple[TableDefinition, ...] = ()
    queries: tuple[Query, ...] = ()

    def queries_over(self, stream: str) -> tuple[Query, ...]:
        return tuple(query for query in self.queries if query.stream == stream)
