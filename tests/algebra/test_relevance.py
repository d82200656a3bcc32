"""Which rows of a relation cannot matter to a view."""

from __future__ import annotations

import pytest

from strandline.algebra.plan import At, Exists, Filter, Join, OuterJoin, Plan, Scan, UnionAll
from strandline.algebra.relevance import selections
from strandline.algebra.scalar import Call, Col, Lit, Scalar, equality
from tests.algebra.views import bigints


def scan(alias: str, relation: str = "r") -> Scan:
    return Scan(At(relation), alias, bigints("a", "b"))


def above(column: str, value: int) -> Scalar:
    return Call(">", (Col(column), Lit(value)))


X, Y, S = scan("x"), scan("y"), scan("s", "s")
ON = equality("x.a", "s.a")


@pytest.mark.parametrize(
    ("body", "found"),
    [
        (Filter(X, above("x.a", 1)), [(above("x.a", 1),)]),
        (Join((X, S), (ON, above("x.b", 2))), [(above("x.b", 2),)]),
        (Filter(Join((X, S), (ON,)), Call("and", (above("x.a", 1), above("s.a", 1)))), [(above("x.a", 1),)]),
        (Join((Filter(X, above("x.a", 1)), Filter(Y, above("y.a", 2))), ()), [(above("x.a", 1),), (above("y.a", 2),)]),
        (Filter(Exists(X, S, ((Col("x.a"), Col("s.a")),)), above("x.a", 1)), [(above("x.a", 1),)]),
        (UnionAll((Filter(X, above("x.a", 1)), Filter(Y, above("y.a", 2)))), [(above("x.a", 1),), (above("y.a", 2),)]),
        (OuterJoin(S, Filter(X, above("x.a", 1)), ((Col("s.a"), Col("x.a")),)), [(above("x.a", 1),)]),
    ],
)
def test_conditions_on_one_relation_are_its_local_selection(body: Plan, found: list[tuple[Scalar, ...]]) -> None:
    assert [conditions for _, conditions in selections(body, "r")] == found


@pytest.mark.parametrize(
    "body",
    [
        X,
        Join((X, S), (ON,)),
        Join((Filter(X, above("x.a", 1)), Y), ()),
        Filter(OuterJoin(S, X, ((Col("s.a"), Col("x.a")),)), Call("is null", (Col("x.a"),))),
        Filter(Exists(S, X, ((Col("s.a"), Col("x.a")),), negated=True), above("s.a", 1)),
        Filter(Join((X, S), ()), Call("or", (above("x.a", 1), above("s.a", 1)))),
    ],
)
def test_every_row_may_matter_where_some_occurrence_has_no_selection_of_its_own(body: Plan) -> None:
    assert selections(body, "r") == ()
