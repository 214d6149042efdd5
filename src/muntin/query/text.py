"""SQL text to statements: the only place where user text is read.

In: a text of statements separated by `;`, comments allowed. Out: `CreateStream`, `CreateTable`, `CreateQuery`, `DropQuery`, each
with its sqlglot tree, the whole text and its own span in it. Convention: every complaint is a `QueryError`; sqlglot's errors
never get out. The trees are syntax only: whether names and types fit is for `check`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache

from sqlglot import exp
from sqlglot.errors import TokenError
from sqlglot.parser import Parser
from sqlglot.tokenizer_core import Token, TokenType

from muntin.errors import QueryError, Refusal, Span
from muntin.query import syntax
from muntin.query.dialect import Muntin
from muntin.query.grammar import Unreadable
from muntin.query.position import span_of

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,99}")

#: Half a surrogate pair, which has no UTF-8: Spark would read another character, and Arrow writes no such string.
_HALF = re.compile("[\ud800-\udfff]")

#: sqlglot's words for an open quote: which one, the line, and the offset where it stands.
_UNCLOSED = re.compile(r"Missing (\S+) from \d+:(\d+)")
#: sqlglot's complaints that name its classes and tokens, in words for users.
_REWORDED = (
    (r"Invalid expression / Unexpected token", "A word that does not fit here"),
    (r"Required keyword: .*", "A part is missing here or just before"),
    (r"Expected table name but got .*", "Expecting a stream's name"),
    (r"Expected ", "Expecting "),
)


@dataclass(frozen=True)
class Statement:
    """One statement of a text. `span` is where it stands in `text`."""

    name: str
    tree: exp.Expr = field(repr=False)
    text: str = field(repr=False)
    span: Span

    @property
    def source(self) -> str:
        """The statement as the user wrote it."""
        return self.text[self.span.start : self.span.end]

    def at(self, node: exp.Expr) -> Span | None:
        """Where a node of the tree stands in `source`."""
        span = span_of(node)
        return Span(span.start - self.span.start, span.end - self.span.start) if span else None

    def refusal(self, node: exp.Expr, law: str, *, values: str = "", way_out: str = "") -> QueryError:
        """The error that this node breaks a law."""
        return QueryError(law, values=values, way_out=way_out, text=self.text, span=span_of(node) or self.span)

    def written(self, node: exp.Expr) -> str:
        """A node in the user's words: comments left out, every gap one space."""
        span = span_of(node) or self.span
        return _in_words(self.text[span.start : span.end])


@dataclass(frozen=True)
class CreateStream(Statement):
    """`CREATE STREAM name (column TYPE, …) WITH (key = 'value', …)`."""

    tree: syntax.Declaration = field(repr=False)


@dataclass(frozen=True)
class CreateTable(Statement):
    """`CREATE TABLE name (column TYPE, …) WITH (key = 'value', …)`."""

    tree: syntax.Declaration = field(repr=False)


@dataclass(frozen=True)
class CreateQuery(Statement):
    """`CREATE QUERY name AS SELECT … [EMIT …] [LATE …]`, or a bare SELECT that was given a name."""

    tree: syntax.WindowQuery = field(repr=False)

    @property
    def query(self) -> exp.Expr:
        """The SELECT, or what stands in its place."""
        query = self.tree.expression
        assert isinstance(query, exp.Expr)
        return query

    @property
    def emission(self) -> list[syntax.EmissionClause]:
        """EMIT EMPTY, EMIT EVERY and LATE, as they stand."""
        return self.tree.args.get("emission") or []


@dataclass(frozen=True)
class DropQuery(Statement):
    """`DROP QUERY name`."""

    tree: syntax.QueryRemoval = field(repr=False)


def parse(text: str) -> tuple[Statement, ...]:
    """The statements of a pipeline's text, in order.

    >>> parse("CREATE QUERY n AS SELECT count(*) FROM s [RANGE 1 hour SLIDE 1 hour]; DROP QUERY n")
    (CreateQuery(name='n', span=Span(start=0, end=68)), DropQuery(name='n', span=Span(start=70, end=82)))
    """
    return tuple(_statement(tree, text, span, given=None) for tree, span in _trees(text))


def parse_query(text: str, name: str | None = None) -> CreateQuery:
    """The one query of a text: a bare SELECT, which takes `name`, or a CREATE QUERY, which has its own."""
    whole = Span(0, len(text))
    statements = tuple(_statement(tree, text, span, given=name) for tree, span in _trees(text))
    if len(statements) != 1 or not isinstance(statements[0], CreateQuery):
        raise QueryError(
            "one query is added at a time",
            values=f"{len(statements)} statements" if len(statements) != 1 else type(statements[0]).__name__,
            way_out="give one SELECT or one CREATE QUERY",
            text=text,
            span=statements[1].span if len(statements) > 1 else whole,
        )
    return statements[0]


@lru_cache(maxsize=10_000)
def _in_words(text: str) -> str:
    """Kept: queries of one kind say the same things."""
    words, end = "", 0
    for token in Muntin().tokenize(text):
        if token.start >= end:  # `5L` is three tokens on the same two characters
            words += " " * (0 < end < token.start) + text[token.start : token.end + 1]
            end = token.end + 1
    return words


def checked_name(name: str, text: str, span: Span) -> str:
    """A query's name becomes the name of its output file, so it is kept plain."""
    if not _NAME.fullmatch(name):
        raise QueryError(
            "a query's name is a letter or _, then up to 99 letters, digits, _ or -",
            values=repr(name),
            way_out="choose a plain name such as big_trades",
            text=text,
            span=span,
        )
    return name


def _statement(tree: exp.Expr, text: str, span: Span, *, given: str | None) -> Statement:
    if isinstance(tree, syntax.Declaration):
        kind = CreateStream if tree.args["kind"] == "STREAM" else CreateTable
        return kind(tree.name, tree, text, span)
    if isinstance(tree, syntax.QueryRemoval):
        return DropQuery(checked_name(tree.name, text, span), tree, text, span)
    assert isinstance(tree, syntax.WindowQuery)
    return CreateQuery(_query_name(tree, text, span, given), tree, text, span)


def _query_name(tree: syntax.WindowQuery, text: str, span: Span, given: str | None) -> str:
    written = tree.this.name if tree.this else None
    if written is None and given is None:
        way_out = "write CREATE QUERY name AS SELECT …, or give a name beside it (--name, name=)"
        raise QueryError("a query has a name", values="a bare SELECT", way_out=way_out, text=text, span=Span(span.start, span.start + 6))
    if written is not None and given not in (None, written):
        found = f"CREATE QUERY {written} and name={given!r}"
        raise QueryError("a query has one name", values=found, way_out="leave one of them out", text=text, span=span_of(tree.this))
    name = written or given or ""
    return checked_name(name, text, (span_of(tree.this) if tree.this else None) or span)


def _trees(text: str) -> Iterator[tuple[exp.Expr, Span]]:
    """Each statement's tree and span."""
    if half := _HALF.search(text):
        found = f"{half[0]!a} at character {half.start() + 1}"
        raise QueryError("a text is Unicode", values=found, way_out="write the character itself, or the whole pair")
    for tokens in _split(_tokens(text)):
        span, parser = Span(tokens[0].start, tokens[-1].end + 1), _parser()
        try:
            trees = parser.parse(tokens, text)
        except Unreadable as error:
            raise _unreadable(str(error), text, error.span) from None
        except RecursionError:
            way_out = "take nested parentheses apart"
            raise QueryError("expressions are not nested without end", values="too deep", way_out=way_out, text=text, span=span) from None
        except (AttributeError, TypeError, ValueError, IndexError, KeyError) as error:
            # sqlglot's parser assumes here and there what a broken text does not give it.
            raise _unreadable(f"{type(error).__name__} while reading it", text, span) from error
        if len(trees) != 1 or trees[0] is None:  # a statement that begins with ELSE: sqlglot hands it to a block
            raise _unreadable("A word that does not fit here", text, Span(span.start, tokens[0].end + 1))
        yield trees[0], span


def _parser() -> Parser:
    try:
        return Muntin().parser()
    except TypeError as error:
        way_out = "remove sqlglotc, sqlglot's compiled form, which cannot be extended"
        raise Refusal("Muntin's grammar extends sqlglot's parser", values=str(error), way_out=way_out) from error


def _tokens(text: str) -> list[Token]:
    try:
        return Muntin().tokenize(text)
    except TokenError as error:
        reason = str(error.__cause__ or error)
        opened = _UNCLOSED.fullmatch(reason)
        start, found = (int(opened[2]), f"an open {opened[1]}") if opened else (error.start or 0, "one that cannot be read")
        raise QueryError(
            "quotes, comments and literals are closed",
            values=found,
            way_out="close it; inside '…' write a quote twice or as \\'",
            text=text,
            span=Span(min(start, len(text) - 1), len(text)),
        ) from None


def _split(tokens: list[Token]) -> Iterator[list[Token]]:
    statement: list[Token] = []
    for token in tokens:
        if token.token_type is not TokenType.SEMICOLON:
            statement.append(token)
        elif statement:
            yield statement
            statement = []
    if statement:
        yield statement


def _unreadable(reason: str, text: str, span: Span) -> QueryError:
    found = text[span.start : span.end]
    for pattern, words in _REWORDED:
        reason = re.sub(pattern, words, reason)
    return QueryError(
        "a statement is SQL as Muntin reads it",
        values=f"{reason}, at {found!r}" if found else reason,
        way_out="look at the marked word and the one before it",
        text=text,
        span=span,
    )
