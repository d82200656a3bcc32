"""Expressions that are given to a DataFrame as text: ``expr``, ``selectExpr``, ``filter("...")``."""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from strandline.errors import SqlError
from strandline.sql.ddl import parse_select
from strandline.sql.frames.operators import seals
from strandline.sql.frames.refusals import refused
from strandline.sql.spans import span, tokenize


@dataclass(frozen=True)
class Given:
    """A text, without the name that it gives itself."""

    sql: str
    name: str | None
    star: bool
    sealing: bool


def given(text: str) -> Given:
    """What an expression says. Its words stay what they are."""
    words = text.strip()
    if "\n" in words or any(token.comments for token in tokenize(words, "<expr>")):
        raise refused(f"the expression {words.splitlines()[0]!r} ...", "put it on one line, without comments")
    prefix = "SELECT "
    try:
        items = parse_select(prefix + words, "<expr>").tree.expressions
    except SqlError as error:
        raise SqlError(error.code, f"in {words!r}: {error.message}") from error
    if len(items) != 1 or isinstance(items[0], exp.Aliases):
        raise refused(f"the expression {words!r}", "give each column an expression of its own")
    item = items[0]
    sealing = item.find(exp.Window) is not None or any(seals(t.text) for t in tokenize(words, "<expr>"))
    if isinstance(item, exp.Alias):
        start, end = span(item.this)
        sql = (prefix + words)[start:end]
        return Given(sql, item.alias, False, sealing)
    name = item.name if isinstance(item, exp.Column) and not item.is_star else None
    return Given(words, name, item.is_star, sealing)
