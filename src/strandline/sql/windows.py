"""Window functions of a SELECT list: which are taken, and by which columns their partitions are told apart."""

from __future__ import annotations

from sqlglot import exp

from strandline.sql.coverage import Uncovered
from strandline.sql.functions import DECOMPOSED, RECOMPUTED, first_word
from strandline.sql.statements import Query

RANKS = frozenset({"rank", "dense_rank", "percent_rank", "cume_dist"})
"""Functions of the order of rows that give equal rows equal values."""


def window_calls(node: exp.Expr) -> list[exp.Window]:
    """The window calls in an expression."""
    return list(node.find_all(exp.Window))


def check_window(query: Query, node: exp.Window) -> None:
    """Raise Uncovered where rows that are equal in the window's order could get different values.

    The rows of a partition are computed before and after a change; what they were must come out as it was stored.
    """
    name = first_word(query, node)
    if node.args.get("alias") is not None or node.args.get("first") is not None:
        raise Uncovered("WINDOW_FUNCTION", "a named window is not maintained incrementally; write it out")
    if name in RANKS:
        return
    if name not in DECOMPOSED | RECOMPUTED:
        raise Uncovered("ORDER_DEPENDENT", f"the value of {name or 'a call'}() depends on the order of equal rows")
    spec = node.args.get("spec")
    if spec is not None and str(spec.args.get("kind", "")).upper() != "RANGE":
        raise Uncovered("ORDER_DEPENDENT", "a frame of ROWS depends on the order of equal rows")
