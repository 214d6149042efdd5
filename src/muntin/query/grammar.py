"""The grammar of expressions: what sqlglot parses of Spark's, but strictly, by the user's names, and with spans.

In: tokens. Out: sqlglot trees in which every node knows the characters it stands on (`position`).
Convention: functions keep the name the user wrote (`exp.Anonymous`). sqlglot's own table would turn `day(x)` into
`Day(TsOrDsToDate(x))` and `date_trunc('hour', x)` into `TimestampTrunc(x, HOUR)`; the allow-list of `rebuild` wants names.
Where sqlglot forgives (a comma too many, BETWEEN without AND, CASE without THEN), this grammar does not.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, NoReturn, TypeVar

from sqlglot import exp
from sqlglot.errors import ParseError
from sqlglot.parser import SENTINEL_NONE
from sqlglot.parsers.spark import SparkParser
from sqlglot.tokenizer_core import Token, TokenType

from muntin.errors import Span
from muntin.query.position import has_place, has_span, put_span, span_of

_T = TypeVar("_T")
_E = TypeVar("_E", bound=exp.Expr)


class Unreadable(ParseError):
    """sqlglot's complaint with the place it is about. `text` makes it a `QueryError`; sqlglot may catch it to backtrack."""

    def __init__(self, complaint: str, span: Span) -> None:
        super().__init__(complaint)
        self.span = span


def _with_span(parse: Callable[[Any], _T]) -> Callable[[Any], _T]:
    return lambda self: self._positioned(lambda: parse(self))


class StrictParser(SparkParser):
    """Overrides come in two kinds: to note positions, and to insist on what sqlglot takes for granted."""

    FUNCTIONS: ClassVar[dict[str, Callable[..., Any]]] = {}
    FUNCTION_PARSERS: ClassVar[dict[str, Callable[..., Any]]] = {
        "CAST": lambda self: self._parse_closed_cast(strict=True),
        "TRY_CAST": lambda self: self._parse_closed_cast(strict=False),
    }
    NO_PAREN_FUNCTION_PARSERS: ClassVar[dict[str, Callable[..., Any]]] = {"CASE": lambda self: self._parse_case()}
    STRICT_CAST = True
    # Spark binds || as tightly as + and -; sqlglot more loosely.
    TERM: ClassVar[dict[TokenType, type[exp.Binary]]] = {**SparkParser.TERM, TokenType.DPIPE: exp.DPipe}
    QUERY_MODIFIER_PARSERS: ClassVar[dict[TokenType, Callable[..., Any]]] = {
        kind: _with_span(parse) for kind, parse in SparkParser.QUERY_MODIFIER_PARSERS.items()
    }

    def raise_error(self, message: str, token: Token = SENTINEL_NONE) -> NoReturn:
        place = token or self._curr or self._prev
        raise Unreadable(message, Span(place.start, place.end + 1) if place else Span(0, 0))

    def _positioned(self, parse: Callable[[], _T]) -> _T:
        """Run `parse` and leave the span of the tokens it took on its node. The innermost method knows it best, so the first stays."""
        first = self._curr
        result = parse()
        node = result[1] if isinstance(result, tuple) else result  # a clause comes as (key, node)
        if isinstance(node, exp.Expr) and first and self._prev and not has_span(node):
            # A postfix operator (x IS NULL) begins parsing behind its operand: the children tell the real start.
            inner = span_of(node)
            start = min(first.start, inner.start) if inner else first.start
            put_span(node, Span(start, max(self._prev.end + 1, start)))
        return result

    def expression(self, instance: _E, token: Token | None = None, comments: list[str] | None = None) -> _E:
        made = super().expression(instance, token, comments)
        if self._prev and not has_place(made):
            made.update_positions(self._prev)  # NULL, TRUE, *, DISTINCT: words that are a whole node
        return made

    def _parse_select(self, *args: Any, **options: Any) -> exp.Expr | None:
        parse = super()._parse_select
        return self._positioned(lambda: parse(*args, **options))

    def _parse_expression(self) -> exp.Expr | None:
        return self._positioned(super()._parse_expression)

    def _parse_disjunction(self) -> exp.Expr | None:
        return self._positioned(super()._parse_disjunction)

    def _parse_equality(self, parse_is: bool = True) -> exp.Expr | None:
        parse = super()._parse_equality
        return self._positioned(lambda: parse(parse_is))

    def _parse_range(self, this: exp.Expr | None = None, parse_is: bool = False) -> exp.Expr | None:
        parse = super()._parse_range
        return self._positioned(lambda: parse(this, parse_is))

    def _parse_bitwise(self) -> exp.Expr | None:
        return self._positioned(super()._parse_bitwise)

    def _parse_unary(self) -> exp.Expr | None:
        return self._positioned(super()._parse_unary)

    def _parse_atom(self) -> exp.Expr | None:
        return self._positioned(super()._parse_atom)

    def _parse_lambda(self, alias: bool = False) -> exp.Expr | None:
        parse = super()._parse_lambda
        return self._positioned(lambda: parse(alias))

    def _parse_function_call(self, *args: Any, **options: Any) -> exp.Expr | None:
        parse = super()._parse_function_call
        return self._positioned(lambda: parse(*args, **options))

    def _parse_types(self, *args: Any, **options: Any) -> exp.Expr | None:
        parse = super()._parse_types
        return self._positioned(lambda: parse(*args, **options))

    def _parse_cube_or_rollup(self, with_prefix: bool = False) -> exp.Cube | exp.Rollup | None:
        parse = super()._parse_cube_or_rollup
        return self._positioned(lambda: parse(with_prefix))

    def _parse_grouping_sets(self) -> exp.GroupingSets | None:
        return self._positioned(super()._parse_grouping_sets)

    def _parse_join(self, *args: Any, **options: Any) -> exp.Join | None:
        parse = super()._parse_join
        return self._positioned(lambda: parse(*args, **options))

    def _parse_csv(self, parse_method: Callable[[], _T | None], sep: TokenType = TokenType.COMMA) -> list[_T]:
        first = parse_method()
        items = [] if first is None else [first]
        while items and self._match(sep):
            item = parse_method()
            if item is None:
                self.raise_error("Expecting another item after the comma")
            items.append(item)
        return items

    def _parse_between(self, this: exp.Expr | None) -> exp.Between:
        low = self._parse_bitwise()
        if not self._match(TokenType.AND):
            self.raise_error("Expecting AND after BETWEEN")
        return self.expression(exp.Between(this=this, low=low, high=self._parse_bitwise()))

    def _parse_case(self) -> exp.Case:
        operand = None if self._match(TokenType.WHEN, advance=False) else self._parse_disjunction()
        branches = []
        while self._match(TokenType.WHEN):
            condition = self._parse_disjunction()
            if not self._match(TokenType.THEN):
                self.raise_error("Expecting THEN after WHEN")
            branches.append(self.expression(exp.If(this=condition, true=self._parse_disjunction())))
        default = self._parse_disjunction() if self._match(TokenType.ELSE) else None
        if not self._match(TokenType.END):
            self.raise_error("Expecting END after CASE")
        return self.expression(exp.Case(this=operand, ifs=branches, default=default))

    def _parse_closed_cast(self, *, strict: bool) -> exp.Expr:
        cast = self._parse_cast(strict)
        if not self._match(TokenType.R_PAREN, advance=False):
            self.raise_error("Expecting )")
        return cast
