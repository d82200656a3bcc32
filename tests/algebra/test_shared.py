"""Joins that views have in common: how they are found, and that a view computed from their delta is the same view."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strandline.algebra.block import Block, delta_of
from strandline.algebra.constraints import simplified
from strandline.algebra.plan import Change, Filter, Join, Plan, scans
from strandline.algebra.scalar import Call, Col, Lit, Scalar
from strandline.algebra.shared import Shape, SharedJoin, common, fields_of, folded, holds, shapes, shared_join
from tests.algebra.referring import FOREIGN_KEYS, Case, cases
from tests.algebra.replay import computed, refreshed
from tests.algebra.test_constraints import changes, known
from tests.algebra.test_incremental import EXAMPLES, campaign
from tests.algebra.views import History, Relation, bigints, histories

CUSTOMERS = Relation("customers", bigints("c", "region"))
ORDERS = Relation("orders", bigints("o", "c", "day"))
LINES = Relation("lines", bigints("o", "p", "qty"))
PARTS = Relation("parts", bigints("p", "kind"))

LINES_ORDERS = Shape(frozenset({"lines", "orders"}), frozenset({(("lines", "o"), ("orders", "o"))}))


def equal(one: str, other: str) -> Scalar:
    return Call("=", (Col(one), Col(other)))


def by_region(old: int = 0) -> Join:
    orders = Filter(ORDERS.scan("o"), Call(">", (Col("o.day"), Lit(old))))
    conditions = (equal("c.c", "o.c"), equal("l.o", "o.o"), Call("<", (Col("l.qty"), Col("o.day"))))
    return Join((CUSTOMERS.scan("c"), orders, LINES.scan("l")), conditions)


def by_kind() -> Join:
    conditions = (equal("placed.o", "x.o"), equal("x.p", "p.p"))
    return Join((ORDERS.scan("placed"), LINES.scan("x"), PARTS.scan("p")), conditions)


def shape_of(plan: Plan) -> Shape:
    return next(shapes(plan))


def test_a_shape_does_not_depend_on_aliases_order_or_selections() -> None:
    assert list(common(shape_of(by_region()), shape_of(by_kind()))) == [LINES_ORDERS]
    assert holds(by_region(), LINES_ORDERS) and holds(by_kind(), LINES_ORDERS)
    assert not holds(Join((ORDERS.scan("o"), LINES.scan("l")), (equal("o.day", "l.o"),)), LINES_ORDERS)


def test_views_with_more_in_common_share_the_whole_and_may_share_each_pair() -> None:
    found = list(common(shape_of(by_region()), shape_of(by_region(1))))
    relations = [sorted(shape.relations) for shape in found]
    assert relations == [["customers", "lines", "orders"], ["customers", "orders"], ["lines", "orders"]]
    assert found[0].equal == shape_of(by_region()).equal


def test_a_relation_that_stands_twice_in_a_join_is_not_shared() -> None:
    twice = Join((ORDERS.scan("a"), ORDERS.scan("b"), LINES.scan("l")), (equal("a.o", "l.o"), equal("b.o", "l.o")))
    assert list(shapes(twice)) == []
    assert not holds(twice, LINES_ORDERS)


def test_relations_that_nothing_connects_are_not_shared() -> None:
    product = Join((CUSTOMERS.scan("c"), PARTS.scan("p")), ())
    assert list(common(shape_of(product), shape_of(product))) == []


def test_a_shared_join_has_the_fields_of_all_its_readers() -> None:
    narrow = Relation("lines", bigints("o", "qty"))
    bodies = (Join((ORDERS.scan("o"), narrow.scan("l")), (equal("o.o", "l.o"),)), by_kind())
    found = shared_join("lines ⋈ orders", LINES_ORDERS, bodies)
    assert [c.name for c in found.plan.columns] == ["lines.o", "lines.qty", "lines.p"] + [
        f"orders.{name}" for name in ("o", "c", "day")
    ]
    assert found.shape == LINES_ORDERS
    assert fields_of(bodies[0], "lines") == narrow.fields


def test_the_body_keeps_its_columns_and_reads_the_stored_delta_once() -> None:
    shared = shared_join("lines ⋈ orders", LINES_ORDERS, [by_region(), by_kind()])
    body, known = folded(by_region(), [shared])
    assert body.columns == by_region().columns and len(known) == 1
    delta = delta_of(Block("v", by_region()), ["lines", "orders"], insert_only=False, shared=[shared])
    assert delta is not None
    read = [s.operand for term in delta.terms for s in scans(term.plan)]
    assert [o for o in read if isinstance(o, Change)] == [Change(shared.name)] and len(delta.terms) == 1
    assert [str(o) for o in read] == ["Δlines ⋈ orders(pre,post]", "customers@post"]


def test_a_view_whose_part_did_not_change_does_not_read_it() -> None:
    shared = shared_join("lines ⋈ orders", LINES_ORDERS, [by_region()])
    delta = delta_of(Block("v", by_region()), ["customers"], insert_only=False, shared=[shared])
    assert delta is not None and len(delta.terms) == 1
    assert all(not isinstance(s.operand, Change) or s.operand.relation == "customers" for s in scans(delta.plan))
    assert delta_of(Block("v", by_region()), ["parts"], insert_only=False, shared=[shared]) is None


@pytest.mark.parametrize("parts", [("a", "b", "c"), ("c", "b", "a")])
def test_of_overlapping_joins_a_view_reads_the_first(parts: Sequence[str]) -> None:
    rows = {name: Relation(name, bigints("x")) for name in parts}
    body = Join(tuple(rows[n].scan(n) for n in parts), tuple(equal(f"{n}.x", "b.x") for n in parts if n != "b"))
    both = [shared_join(" ⋈ ".join(sorted(s.relations)), s, [body]) for s in common(shape_of(body), shape_of(body))]
    pairs = [each for each in both if len(each.shape.relations) == 2]
    assert [each.name for each in pairs] == ["a ⋈ b", "b ⋈ c"]
    delta = delta_of(Block("v", body), ["a", "b", "c"], insert_only=False, shared=pairs)
    assert delta is not None and len(delta.terms) == 2
    read = {s.operand.relation for s in scans(delta.plan) if isinstance(s.operand, Change)}
    assert read == {"a ⋈ b", "c"}


def sharing(data: st.DataObject, block: Block) -> list[SharedJoin]:
    """Some of the joins that a block could share."""
    found = [part for shape in shapes(block.body) for part in common(shape, shape)]
    chosen = data.draw(st.lists(st.sampled_from(found), unique=True, max_size=2)) if found else []
    return [shared_join(f"{block.node} {n}", shape, [block.body]) for n, shape in enumerate(chosen)]


@campaign(EXAMPLES // 3)
@given(histories(), st.data())
def test_a_view_that_reads_shared_deltas_equals_its_recomputation(history: History, data: st.DataObject) -> None:
    contents, leaves = computed(history.blocks, history.start), dict(history.start)
    for step in history.steps:
        shared = {block.node: sharing(data, block) for block in history.blocks}
        contents = refreshed(history.blocks, contents, step, sharing=shared).after
        leaves.update({name: leaves[name] + delta for name, delta in step.items()})
        fresh = computed(history.blocks, leaves)
        assert contents.stored == fresh.stored
        assert {name: contents.visible[name] for name in fresh.visible} == fresh.visible


@campaign(EXAMPLES // 3)
@given(case=cases(), data=st.data())
def test_shared_deltas_and_constraints_go_together(case: Case, data: st.DataObject) -> None:
    contents = computed([case.block], case.states[0])
    for before, after in pairwise(case.states):
        delta = changes(before, after)
        assumed = known((*FOREIGN_KEYS, *case.not_null), delta)
        simple = replace(case.block, body=simplified(case.block.body, assumed)[0])
        shared = sharing(data, simple)
        done = refreshed([case.block], contents, delta, assumed=assumed, sharing={case.block.node: shared})
        contents = done.after
        assert contents.stored == computed([case.block], after).stored
