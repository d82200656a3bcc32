"""How the rows of two inputs match: equalities between the two as keys, all else as conditions."""

from __future__ import annotations

from collections.abc import Sequence

from strandline.algebra.plan import Plan
from strandline.algebra.scalar import Call, Scalar
from strandline.algebra.scalar import columns as read
from strandline.algebra.schema import names
from strandline.sql.coverage import Uncovered

Keys = tuple[tuple[Scalar, Scalar], ...]


def matching(conditions: Sequence[Scalar], left: Plan, right: Plan) -> tuple[Keys, tuple[Scalar, ...]]:
    """*conditions* as pairs of equal values of the two sides, and what is left of them."""
    ours, theirs = set(names(left.columns)), set(names(right.columns))
    keys: list[tuple[Scalar, Scalar]] = []
    rest: list[Scalar] = []
    for condition in conditions:
        if not read(condition) <= ours | theirs:
            raise Uncovered("SUBQUERY", "a subquery reads columns of a query further out than the one around it")
        pair = _pair(condition, ours, theirs)
        if pair is None:
            rest.append(condition)
        else:
            keys.append(pair)
    return tuple(keys), tuple(rest)


def _pair(condition: Scalar, ours: set[str], theirs: set[str]) -> tuple[Scalar, Scalar] | None:
    if not isinstance(condition, Call) or condition.op != "=":
        return None
    first, second = condition.args
    for one, other in ((first, second), (second, first)):
        if read(one) and read(other) and read(one) <= ours and read(other) <= theirs:
            return one, other
    return None
