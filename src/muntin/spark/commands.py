"""What a user types to change the queries of a running job, as requests; and the job's answers, as people read them.

In: SQL text, or the name of a file of it. Out: `Change`s, a line per change that is in effect, a table of the queries.
Convention: a text is read as a whole before anything is asked for, so that a slip in its last statement changes nothing; a change that
the job refuses is raised as a `MuntinError`, and those before it stay in effect. Needs no Spark.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.table import Table
from rich.text import Text

from muntin.errors import MuntinError, Refusal
from muntin.query.text import CreateQuery, DropQuery, Statement, parse, parse_query
from muntin.spark.control import Action, Answer, ask
from muntin.spark.place import Place

_DONE = {Action.ADD: "added", Action.REPLACE: "replaced", Action.DROP: "dropped"}


@dataclass(frozen=True)
class Change:
    """One statement as a request. `text` is None for DROP; `given` is the name that came beside a bare SELECT."""

    action: Action
    name: str
    text: str | None = None
    given: str | None = None

    def made(self, checkpoint: Place, *, timeout: float) -> str:
        """Ask the job on a checkpoint for it; returns a line about it once it is in effect."""
        name = self.name if self.action is Action.DROP else self.given
        answer = accepted(ask(checkpoint, self.action, name=name, text=self.text, timeout=timeout))
        return f"{_DONE[self.action]} {self.name}: {answer.message}"


def changes_in(text_or_file: str, action: Action, name: str | None) -> list[Change]:
    """A change per statement, in order: `action` for a query, DROP for a DROP QUERY."""
    text = text_of(text_or_file)
    statements: Sequence[Statement] = parse(text) if name is None else (parse_query(text, name),)
    if not statements:
        raise Refusal("a change has a statement", values="none", way_out="give a SELECT, a CREATE QUERY or a DROP QUERY")
    return [_change(statement, action, name) for statement in statements]


def listed(checkpoint: Place, *, timeout: float) -> Table:
    """The queries of the job on a checkpoint."""
    return table_of(accepted(ask(checkpoint, Action.LIST, timeout=timeout)).queries)


def explained(checkpoint: Place, *, timeout: float) -> str:
    """The plan of the job on a checkpoint, as it is now."""
    return accepted(ask(checkpoint, Action.EXPLAIN, timeout=timeout)).message


def accepted(answer: Answer) -> Answer:
    if not answer.accepted:
        raise MuntinError(answer.message)
    return answer


def text_of(text_or_file: str) -> str:
    """SQL has spaces: what has none, or is there as a file, is a file."""
    path = Path(text_or_file)
    try:
        is_file = len(text_or_file.split()) == 1 or path.is_file()
    except OSError:  # too long for a file's name
        return text_or_file
    try:
        return path.read_text() if is_file else text_or_file
    except (OSError, UnicodeDecodeError) as error:
        way_out = "check the path, or give the SQL itself"
        raise Refusal("a file of queries is a readable text file", values=f"{path}: {error}", way_out=way_out) from None


def table_of(queries: Sequence[Mapping[str, str]]) -> Table:
    """A row per query, under the names its columns came with; counts stand on the right."""
    table = Table(box=None, pad_edge=False)
    names = list(queries[0]) if queries else ["no queries"]
    for name in names:
        counts = all(query[name].replace(",", "").isdecimal() for query in queries)
        table.add_column(name, justify="right" if counts else "left", overflow="fold")
    for query in queries:
        table.add_row(*(Text(query[name]) for name in names))
    return table


def _change(statement: Statement, action: Action, given: str | None) -> Change:
    if isinstance(statement, DropQuery):
        return Change(Action.DROP, statement.name)
    if not isinstance(statement, CreateQuery):
        law, way_out = "streams and tables are those the job was started with", "declare it in the pipeline file and start the job again"
        raise statement.refusal(statement.tree, law, values=statement.name, way_out=way_out)
    lines_before = "\n" * statement.text.count("\n", 0, statement.span.start)  # so that a refusal names the line of the user's text
    return Change(action, statement.name, lines_before + statement.source, given)
