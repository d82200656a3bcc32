"""Parsing with positions: sqlglot's Spark parser, remembering where each part of the text stands.

The tree says how a query is built; the text between two positions is what the user wrote. Expressions are never
printed from the tree.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from sqlglot import exp
from sqlglot.dialects.spark import Spark
from sqlglot.errors import ParseError, TokenError
from sqlglot.parsers.spark import SparkParser
from sqlglot.tokenizer_core import Token

from strandline.errors import Origin, SqlError

Span = tuple[int, int]
_N = TypeVar("_N")


class _SpannedParser(SparkParser):
    """Records the span of every expression, function call and table reference in the node's ``meta``."""

    def _spanned(self, parse: Callable[..., _N], *args: Any, **kwargs: Any) -> _N:
        start = self._index
        node = parse(*args, **kwargs)
        if isinstance(node, exp.Expr) and self._index > start:
            node.meta["span"] = (self._tokens[start].start, self._tokens[self._index - 1].end + 1)
        return node

    def _carried_on(self, parse: Callable[..., _N], left: Any, *args: Any) -> _N:
        """Like :meth:`_spanned`, where an operand may have been read before."""
        if left is None:
            return self._spanned(parse, left, *args)
        node = parse(left, *args)
        if isinstance(node, exp.Expr) and node is not left:
            node.meta["span"] = (span(left)[0], self._tokens[self._index - 1].end + 1)
        return node

    def validate_expression(self, expression: Any, args: Any = None) -> Any:
        # Whether a function takes these arguments is for Spark to say.
        return expression

    def _parse_disjunction(self) -> Any:
        return self._spanned(super()._parse_disjunction)

    def _parse_equality(self, *args: Any, **kwargs: Any) -> Any:
        return self._spanned(super()._parse_equality, *args, **kwargs)

    def _parse_comparison(self, this: Any = None) -> Any:
        return self._carried_on(super()._parse_comparison, this)

    def _parse_range(self, this: Any = None, parse_is: bool = False) -> Any:
        return self._carried_on(super()._parse_range, this, parse_is)

    def _parse_unary(self) -> Any:
        return self._spanned(super()._parse_unary)

    def _parse_bitwise(self) -> Any:
        return self._spanned(super()._parse_bitwise)

    def _parse_paren(self) -> Any:
        return self._spanned(super()._parse_paren)

    def _parse_function(self, *args: Any, **kwargs: Any) -> Any:
        return self._spanned(super()._parse_function, *args, **kwargs)

    def _parse_function_call(self, *args: Any, **kwargs: Any) -> Any:
        return self._spanned(super()._parse_function_call, *args, **kwargs)

    def _parse_lambda(self, *args: Any, **kwargs: Any) -> Any:
        return self._spanned(super()._parse_lambda, *args, **kwargs)

    def _parse_table(self, *args: Any, **kwargs: Any) -> Any:
        return self._spanned(super()._parse_table, *args, **kwargs)

    def _parse_table_parts(self, *args: Any, **kwargs: Any) -> Any:
        start = self._index
        node = super()._parse_table_parts(*args, **kwargs)
        if node is not None and self._index > start:
            node.meta["name_span"] = (self._tokens[start].start, self._tokens[self._index - 1].end + 1)
        return node

    def _parse_named_window(self) -> Any:
        return self._spanned(super()._parse_named_window)

    def _parse_select(self, *args: Any, **kwargs: Any) -> Any:
        return self._spanned(super()._parse_select, *args, **kwargs)


def tokenize(text: str, file: str) -> list[Token]:
    """The tokens of *text* in Spark's dialect."""
    try:
        return Spark().tokenize(text)
    except TokenError as error:
        raise SqlError(
            "SQL_SYNTAX",
            f"the text cannot be read as SQL: {error}; check quotes and comments.",
            origin=Origin(file),
        ) from error


def parse_query(text: str, tokens: list[Token], file: str) -> exp.Query:
    """The query that *tokens*, a part of *text*, spell."""
    if not tokens:
        raise SqlError("SQL_SYNTAX", "a query is missing; write a SELECT.", origin=Origin(file))
    try:
        trees = _SpannedParser(dialect=Spark()).parse(tokens, text)
    except ParseError as error:
        first = error.errors[0] if error.errors else {}
        near = first.get("highlight") or ""
        line, column = first.get("line") or 1, max(1, (first.get("col") or 1) - max(len(near), 1) + 1)
        what = (first.get("description") or str(error)).split(" but got <Token")[0].rstrip(".")
        raise SqlError(
            "SQL_SYNTAX",
            f"the query cannot be parsed near {near or 'its end'!r}: {what}.",
            origin=Origin(file, line, column),
            excerpt=excerpt(text, line, column, len(near)),
        ) from error
    except RecursionError as error:
        raise SqlError(
            "SQL_SYNTAX", "the query is nested too deeply; cut it into several views.", origin=Origin(file)
        ) from error
    except (LookupError, AttributeError, TypeError, ValueError) as error:
        # The parser's own way with calls that lack an argument.
        raise SqlError(
            "SQL_SYNTAX", "the query cannot be parsed; see that no argument is missing.", origin=Origin(file)
        ) from error
    queries = [tree for tree in trees if tree is not None]
    if len(queries) != 1 or not isinstance(queries[0], exp.Query):
        found = type(queries[0]).__name__.upper() if queries else "nothing"
        raise SqlError(
            "NOT_A_QUERY",
            f"a view is defined by one SELECT, found {found if len(queries) < 2 else 'several statements'}; "
            "write one SELECT (or WITH ... SELECT) after AS.",
            origin=Origin(file, *position(text, tokens[0].start)),
        )
    return queries[0]


def span(node: exp.Expr) -> Span:
    """Where *node* stands in the text."""
    found = node.meta.get("span")
    if found is None and isinstance(node, exp.Binary) and not isinstance(node, exp.Dot):
        # The inner part of a chain such as a = b = c, which the parser reads in one go.
        return span(node.this)[0], span(node.expression)[1]
    if found is None and not isinstance(node, exp.Column | exp.Identifier | exp.Dot):
        raise _without_place(node)
    if found is None:
        identifiers = [i for i in node.find_all(exp.Identifier) if "start" in i.meta]
        if not identifiers:
            raise _without_place(node)
        return min(i.meta["start"] for i in identifiers), max(i.meta["end"] for i in identifiers) + 1
    return found[0], found[1]


def _without_place(node: exp.Expr) -> SqlError:
    what = type(node).__name__.upper()
    return SqlError("SQL_SYNTAX", f"where a part of the query ({what}) stands is not known; write it in another way.")


def position(text: str, offset: int) -> tuple[int, int]:
    """Line and column, from 1, of a place in *text*."""
    line = text.count("\n", 0, offset) + 1
    return line, offset - (text.rfind("\n", 0, offset) + 1) + 1


def excerpt(text: str, line: int, column: int, width: int = 1) -> str:
    """The line of *text* with a mark below the place."""
    lines = text.splitlines() or [""]
    shown = lines[min(line, len(lines)) - 1]
    return f"    {shown}\n    {' ' * (column - 1)}{'^' * max(1, min(width, len(shown) - column + 1))}"


def error_at(code: str, message: str, text: str, where: Span, file: str) -> SqlError:
    """An error about the part of *text* at *where*, with file, line, column and the offending line."""
    line, column = position(text, where[0])
    return SqlError(
        code,
        message,
        origin=Origin(file, line, column),
        excerpt=excerpt(text, line, column, where[1] - where[0]),
    )
