"""Where Spark binds operators otherwise than the parser.

To Spark all comparisons are of one level, from left to right, and IN, BETWEEN, LIKE and IS take all that stands before
them. The parser takes ``a = b < c`` for ``a = (b < c)``, and ``a = b IN (...)`` for ``a = (b IN (...))``.
"""

from __future__ import annotations

from sqlglot import exp

COMPARISONS = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.NullSafeEQ, exp.NullSafeNEQ)
_PREDICATES = (exp.In, exp.Between, exp.Like, exp.ILike, exp.RegexpLike, exp.Is, exp.Not)


def bound_otherwise(node: exp.Expr) -> bool:
    """Whether a comparison may not be one of the two sides that the parser found."""
    if not isinstance(node, COMPARISONS):
        return False
    left, right = node.this, node.expression
    return isinstance(right, COMPARISONS) or any(isinstance(side, _PREDICATES) for side in (left, right))
