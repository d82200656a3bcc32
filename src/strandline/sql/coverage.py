"""What is maintained incrementally today, and the reason where a query goes beyond it."""

from __future__ import annotations

from collections.abc import Container, Iterator

from sqlglot import exp

from strandline.algebra.schema import Column, comparable, matchable
from strandline.reasons import Reason
from strandline.sql.functions import GENERATORS, NON_DETERMINISTIC, function_name
from strandline.sql.statements import Query


class Uncovered(Exception):
    """The query uses what is not maintained incrementally."""

    def __init__(self, code: str, detail: str = "") -> None:
        self.reason = Reason(code, detail)
        super().__init__(str(self.reason))


_CLAUSE_CODES = {
    "limit": "LIMIT",
    "offset": "LIMIT",
    "windows": "WINDOW_FUNCTION",
    "qualify": "WINDOW_FUNCTION",
    "sample": "NON_DETERMINISTIC",
}


def only(node: exp.Expr, *allowed: str, code: str | None = None) -> None:
    """Raise Uncovered if *node* has a part that is not *allowed*: what is not known is not guessed at."""
    for name, value in node.args.items():
        if not value or name in allowed:
            continue
        found = code or _CLAUSE_CODES.get(name)
        if found is not None:
            raise Uncovered(found)
        raise Uncovered("CLAUSE", f"{name.rstrip('_').upper()} is not maintained incrementally")


def parts(node: exp.Expr, known: Container[int] = ()) -> Iterator[exp.Expr]:
    """All parts of an expression, without those that something *known* stands for, by their identity."""
    for part in node.walk(prune=lambda n: id(n) in known):
        if id(part) not in known:
            yield part


def check_expression(query: Query, node: exp.Expr, known: Container[int] = ()) -> None:
    """Raise Uncovered for what no expression of an incremental view may hold."""
    for part in parts(node, known):
        if isinstance(part, exp.Query | exp.Exists) or (isinstance(part, exp.In) and part.args.get("query")):
            raise Uncovered("SUBQUERY")
        if isinstance(part, exp.Window):
            raise Uncovered("WINDOW_FUNCTION")
        name = function_name(query, part)
        if name in GENERATORS:
            raise Uncovered("GENERATOR", f"{name}() is not maintained incrementally")
        if name in NON_DETERMINISTIC or (name == "unix_timestamp" and not part.args.get("this")):
            raise Uncovered("NON_DETERMINISTIC", f"{name}() gives another value each time")


def check_comparable(column: Column) -> None:
    """Raise Uncovered for a type whose values cannot be told to be equal."""
    if not comparable(column):
        raise Uncovered("TYPE_NOT_COMPARABLE", f"column {column.name} is a {column.type}")


def check_matchable(column: Column) -> None:
    """Raise Uncovered for a type by which rows cannot be found."""
    if not matchable(column):
        raise Uncovered("TYPE_NOT_COMPARABLE", f"column {column.name} is a {column.type}")
