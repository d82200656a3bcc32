"""Window functions of a SELECT list: where they stand, and whether rows that tie may come out either way."""

from __future__ import annotations

import re
from collections.abc import Iterator

from sqlglot import exp

from strandline.algebra.scalar import Scalar, Text
from strandline.sql.coverage import Uncovered, check_expression
from strandline.sql.functions import DECOMPOSED, RECOMPUTED, first_word
from strandline.sql.scopes import Known, expression
from strandline.sql.statements import Query

RANKS = frozenset({"rank", "dense_rank", "percent_rank", "cume_dist"})
"""Functions of the order of rows that give equal rows equal values."""


def window_calls(node: exp.Expr) -> list[exp.Window]:
    """The window calls in an expression; those of a subquery are its own."""
    return [n for n in node.walk(prune=lambda n: isinstance(n, exp.Query)) if isinstance(n, exp.Window)]


def window_functions(node: exp.Expr) -> Iterator[exp.Expr]:
    """The functions that window calls call: they look like aggregates and group nothing."""
    for call in window_calls(node):
        own = call.this
        yield own
        while isinstance(own, exp.IgnoreNulls | exp.RespectNulls | exp.Filter):
            own = own.this
            yield own


def check_window(query: Query, call: exp.Window) -> None:
    """Raise Uncovered for a window call that cannot be taken as it stands."""
    if call.args.get("first") is not None:
        raise Uncovered("WINDOW_FUNCTION", "a window that extends a named one is not maintained incrementally")
    if any(inner is not call for inner in window_calls(call)):
        raise Uncovered("WINDOW_FUNCTION", "a window function inside a window function")
    for child in (*call.iter_expressions(), *definition(call).iter_expressions()):
        check_expression(query, child)


def definition(call: exp.Window) -> exp.Window:
    """Where the window of a call is described: in the call, or under its name in the WINDOW clause."""
    name = call.args.get("alias")
    select = call.find_ancestor(exp.Select)
    if name is None or select is None:
        return call
    named: dict[str, exp.Window] = {window.name.lower(): window for window in select.args.get("windows") or ()}
    if name.name.lower() not in named:
        raise Uncovered("WINDOW_FUNCTION", f"there is no window {name.name}")
    return named[name.name.lower()]


def window_value(query: Query, call: exp.Window, known: Known) -> Scalar:
    """A window call as the user's text, with the description of a named window in its place."""
    value, described = expression(query, call, known), definition(call)
    if described is call:
        return value
    window = expression(query, described, known)
    assert isinstance(value, Text) and isinstance(window, Text)
    *before, last = value.fragments
    name, *rest = window.fragments
    assert isinstance(last, str) and isinstance(name, str)
    function = re.sub(r"\bOVER\b[^)]*\)?\s*$", "OVER ", last, flags=re.IGNORECASE)
    return Text((*before, function, name[name.index("(") :], *rest))


def order_dependence(query: Query, call: exp.Window) -> str | None:
    """Why rows that tie in the window's order may get different values, if they may."""
    name = first_word(query, call)
    if name in RANKS:
        return None
    if name not in DECOMPOSED | RECOMPUTED:
        return f"the value of {name or 'a call'}() depends on the order of rows that tie"
    spec = definition(call).args.get("spec")
    if spec is not None and str(spec.args.get("kind", "")).upper() != "RANGE":
        return "a frame of ROWS depends on the order of rows that tie"
    return None
