"""Muntin's SQL as a sqlglot dialect: Spark's, with windows in FROM, EMIT and LATE behind the query, and statements of its own.

In: tokens. Out: sqlglot trees with the nodes of `syntax`, every node with its span.
Convention: a window clause hangs on its table, in the list `windows`; what its words mean is the business of `windowing`.
Not supported: WITH; named windows (`WINDOW w AS …`); optimizer hints, which are read as comments.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any, ClassVar

from sqlglot import exp
from sqlglot.dialects.spark import Spark
from sqlglot.tokenizer_core import Token, TokenType

from muntin.errors import QueryError, Span
from muntin.query import syntax
from muntin.query.grammar import StrictParser
from muntin.query.position import put_span

#: What may stand in the brackets.
WINDOW_KEYWORDS = ("RANGE", "SLIDE", "WATTR", "OFFSET", "ALIGN", "RATTR", "SATTR", "PATTR", "LANDMARK")
WINDOW_FUNCTIONS = ("HOP", "TUMBLE", "CUMULATE", "SESSION")
#: What may stand behind a query, as the words it begins with.
EMISSIONS = (("EMIT", "EMPTY"), ("EMIT", "EVERY"), ("LATE", "GENEROUS"), ("LATE", "CONSISTENT"), ("LATE", "REEMIT"))


class MuntinTokenizer(Spark.Tokenizer):
    """Spark's tokens, with window() as an ordinary function and quotes escaped by doubling them, as Spark 4 does."""

    STRING_ESCAPES: ClassVar[list[str]] = ["\\", "'", '"']
    KEYWORDS: ClassVar[dict[str, TokenType]] = {
        word: kind for word, kind in Spark.Tokenizer.KEYWORDS.items() if word not in ("WINDOW", "/*+")
    }


class MuntinParser(StrictParser):
    """The statements, and the windows in FROM."""

    def _parse_statement(self) -> exp.Expr:
        for kind in ("STREAM", "TABLE"):
            if self._match_text_seq("CREATE", kind):
                return self._parse_declaration(kind)
        if self._match_text_seq("CREATE", "QUERY"):
            name = self._parse_query_name()
            if not self._match(TokenType.ALIAS):
                self.raise_error("Expecting AS after the query's name")
            return self._parse_window_query(name)
        if self._match_text_seq("DROP", "QUERY"):
            return syntax.QueryRemoval(this=self._parse_query_name())
        return self._parse_window_query(None)

    def _parse_window_query(self, name: exp.Expr | None) -> syntax.WindowQuery:
        if self._curr.token_type not in (TokenType.SELECT, TokenType.WITH, TokenType.L_PAREN):
            self.raise_error("Expecting SELECT" if name else "Expecting CREATE STREAM, CREATE TABLE, CREATE QUERY, DROP QUERY or SELECT")
        query = self._parse_ddl_select()
        return syntax.WindowQuery(this=name, expression=query, emission=list(self._parse_emission()))

    def _parse_emission(self) -> Iterator[syntax.EmissionClause]:
        while self._at_emission():
            first = self._curr
            self._advance(2)
            words = f"{first.text} {self._prev.text}".upper()
            name, _, policy = words.partition(" ") if words.startswith("LATE") else (words, "", None)
            clause = syntax.EmissionClause(this=name, policy=policy)
            if words == "EMIT EVERY" or (words == "LATE REEMIT" and self._match_text_seq("FOR")):
                clause.set("expression", self._parse_emission_length())
            put_span(clause, Span(first.start, self._prev.end + 1))
            yield clause

    def _at_emission(self) -> bool:
        return any(self._match_text_seq(*words, advance=False) for words in EMISSIONS)

    def _parse_emission_length(self) -> exp.Var:
        first, start = self._curr, self._index
        while self._curr and not self._at_emission():
            self._advance()
        if self._index == start:
            self.raise_error("Expecting a length")
        return self._words_since(first)

    def _parse_with(self, skip_with_token: bool = False) -> None:
        if self._match(TokenType.WITH, advance=False):
            raise QueryError(
                "a query reads its stream directly; WITH is not supported yet",
                values=self._curr.text,
                way_out="write the query over the stream itself",
                text=self.sql,
                span=Span(self._curr.start, self._curr.end + 1),
            )

    def _parse_query_name(self) -> exp.Var:
        """A name may hold dashes, which are tokens of their own: take all that is written without a gap."""
        first = self._curr
        if not first:
            self.raise_error("Expecting the query's name")
        self._advance()
        while self._curr and self._is_connected() and self._curr.token_type is not TokenType.L_PAREN:
            self._advance()
        name = self._words_since(first)
        return _word(name.this.strip("`"), name.meta["span"])

    def _parse_declaration(self, kind: str) -> syntax.Declaration:
        name = self._parse_id_var(any_token=False)
        if name is None:
            self.raise_error(f"Expecting the {kind.lower()}'s name")
        columns = self._parse_wrapped_csv(self._parse_column_declaration)
        options = self._parse_wrapped_csv(self._parse_option) if self._match(TokenType.WITH) else []
        return syntax.Declaration(this=name, kind=kind, expressions=columns, options=options)

    def _parse_column_declaration(self) -> syntax.ColumnDeclaration:
        name = self._parse_id_var()
        kind = self._parse_types(schema=True)
        if name is None or not isinstance(kind, exp.DataType):
            self.raise_error("Expecting a column's name and its type")
        return syntax.ColumnDeclaration(this=name, kind=kind)

    def _parse_option(self) -> syntax.Option:
        key = self._parse_string() or self._parse_words({TokenType.EQ, TokenType.COMMA, TokenType.R_PAREN})
        if not self._match(TokenType.EQ):
            self.raise_error("Expecting = after the option's name")
        value = self._parse_string() or self._parse_words({TokenType.COMMA, TokenType.R_PAREN})
        if key is None or value is None:
            self.raise_error("Expecting an option's name and its value")
        return syntax.Option(this=key, expression=value)

    def _parse_table(self, *args: Any, **options: Any) -> exp.Expr | None:
        parse = super()._parse_table

        def table_with_window() -> exp.Expr | None:
            table = self._parse_window_function() or parse(*args, **options)
            return self._parse_bracket(table) if isinstance(table, exp.Table) else table

        return self._positioned(table_with_window)

    def _parse_bracket(self, this: exp.Expr | None = None) -> exp.Expr | None:
        if not isinstance(this, exp.Table):
            return super()._parse_bracket(this)
        if self._match(TokenType.L_BRACKET, advance=False):
            this.append("windows", self._parse_bracketed_window())
        return this

    def _parse_table_alias(self, alias_tokens: Collection[TokenType] | None = None) -> exp.TableAlias | None:
        parse = super()._parse_table_alias
        return None if self._at_emission() else self._positioned(lambda: parse(alias_tokens))

    def _parse_bracketed_window(self) -> syntax.BracketedWindow:
        opening = self._curr
        self._advance()
        parameters = []
        while not self._match(TokenType.R_BRACKET):
            keyword = self._curr
            if not self._match_texts(WINDOW_KEYWORDS):
                self.raise_error(f"Expecting {', '.join(WINDOW_KEYWORDS)} or ] in the window clause")
            named = int(keyword.text.upper().endswith("ATTR"))  # a column may be called `range`
            value = self._parse_words({TokenType.R_BRACKET}, until=WINDOW_KEYWORDS, at_least=named)
            parameter = syntax.Parameter(this=keyword.text.upper(), expression=value)
            put_span(parameter, Span(keyword.start, self._prev.end + 1))
            parameters.append(parameter)
        window = syntax.BracketedWindow(expressions=parameters)
        put_span(window, Span(opening.start, self._prev.end + 1))
        return window

    def _parse_window_function(self) -> exp.Table | None:
        """`HOP(s, time, …)` as RisingWave writes it, `TABLE(HOP(TABLE s, DESCRIPTOR(time), …))` as Flink does."""
        opening = self._curr
        wrapped = self._curr.token_type is TokenType.TABLE and self._next.token_type is TokenType.L_PAREN
        if wrapped:
            self._advance(2)
        if self._next.token_type is not TokenType.L_PAREN or not self._match_texts(WINDOW_FUNCTIONS):
            return self.raise_error("Expecting HOP, TUMBLE or CUMULATE") if wrapped else None
        name = self._prev.text.upper()
        self._match_l_paren()
        self._match(TokenType.TABLE)
        table = exp.Table(this=self._parse_id_var(any_token=False) or self.raise_error("Expecting the stream's name"))
        window = syntax.WindowFunction(this=name, time=self._parse_time_column(), expressions=self._parse_durations())
        for _ in range(1 + wrapped):
            self._match_r_paren()
        put_span(window, Span(opening.start, self._prev.end + 1))
        table.set("alias", self._parse_table_alias(self.TABLE_ALIAS_TOKENS))
        table.append("windows", window)
        return table

    def _parse_time_column(self) -> exp.Column:
        if not self._match(TokenType.COMMA):
            self.raise_error("Expecting , and the time column")
        column = self._parse_wrapped(self._parse_column) if self._match_text_seq("DESCRIPTOR") else self._parse_column()
        if not isinstance(column, exp.Column):
            self.raise_error("Expecting the time column")
        return column

    def _parse_durations(self) -> list[exp.Var | None]:
        durations = []
        while self._match(TokenType.COMMA):
            durations.append(self._parse_words({TokenType.COMMA, TokenType.R_PAREN}))
        return durations

    def _parse_words(self, ends: set[TokenType], *, until: Collection[str] = (), at_least: int = 0) -> exp.Var | None:
        """The words up to one of `ends` or, after the first `at_least`, of the keywords `until`; None if there are none."""
        first, start = self._curr, self._index
        while self._curr and self._curr.token_type not in ends:
            if self._index - start >= at_least and self._curr.text.upper() in until:
                break
            self._advance()
        if not self._curr:
            self.raise_error("The text ends too early")
        return self._words_since(first) if self._index > start else None

    def _words_since(self, first: Token) -> exp.Var:
        span = Span(first.start, self._prev.end + 1)
        return _word(self.sql[span.start : span.end], span)


def _word(text: str, span: Span) -> exp.Var:
    word = exp.Var(this=text)
    put_span(word, span)
    return word


class Muntin(Spark):
    """The dialect. sqlglot also lists it under the name `muntin`."""

    Tokenizer = MuntinTokenizer
    Parser = MuntinParser
