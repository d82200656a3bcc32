"""Which rows of a relation cannot matter to a view."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import given

from strandline.algebra.bag import SignedBag
from strandline.algebra.block import Block, delta_of
from strandline.algebra.evaluate import Environment, compiled, evaluate
from strandline.algebra.plan import At, Backing, Change, Exists, Filter, Join, Operand, OuterJoin, Plan, Scan, UnionAll
from strandline.algebra.relevance import selections
from strandline.algebra.scalar import Call, Col, Lit, Scalar, equality
from tests.algebra.replay import Contents, computed, refreshed
from tests.algebra.test_incremental import EXAMPLES, campaign
from tests.algebra.views import History, bigints, histories


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


@campaign(EXAMPLES // 3)
@given(histories(most_blocks=1))
def test_a_relation_whose_changes_do_not_matter_did_not_change(history: History) -> None:
    block = history.blocks[0]
    contents = computed([block], history.start)
    for step in history.steps:
        done = refreshed([block], contents, step)
        kept = {name: delta for name, delta in step.items() if _matters(block, name, delta)}
        delta = delta_of(block, kept, insert_only=not any(d.deleted for d in kept.values()))
        rows = _operands(contents, done.after, kept)
        of_kept = SignedBag() if delta is None else evaluate(delta.plan, rows)
        assert of_kept == done.stored_deltas.get(block.node, SignedBag())
        contents = done.after


def _operands(before: Contents, after: Contents, deltas: Mapping[str, SignedBag]) -> Environment:
    def rows(operand: Operand) -> SignedBag:
        match operand:
            case Change(relation):
                return deltas[relation]
            case At(relation, state):
                return (before if state == "pre" else after).visible[relation]
            case Backing(node):
                return before.stored[node]
        raise AssertionError(f"a delta reads {operand}")

    return rows


def _matters(block: Block, relation: str, delta: SignedBag) -> bool:
    """Whether some changed row passes the local selection of some occurrence."""
    found = selections(block.body, relation)
    tests = [[compiled(condition, scan.columns) for condition in conditions] for scan, conditions in found]
    return not found or any(all(test(row) is True for test in group) for row in delta for group in tests)
