"""Deltas inside a body that are stored before its own: which, and that the view is the same."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strandline.algebra.bag import SignedBag
from strandline.algebra.block import Block
from strandline.algebra.constraints import simplified
from strandline.algebra.inner import candidates
from strandline.algebra.plan import Exists, Filter, Join, OuterJoin, Output, Plan, Project, children
from strandline.algebra.prune import narrowed
from strandline.algebra.scalar import Call, Col, Lit
from strandline.algebra.schema import Column, names
from tests.algebra.referring import FOREIGN_KEYS, Case, cases
from tests.algebra.replay import computed, refreshed
from tests.algebra.test_constraints import changes, known
from tests.algebra.test_incremental import EXAMPLES, campaign
from tests.algebra.test_shared import sharing
from tests.algebra.views import History, Relation, bigints, histories

CUSTOMERS = Relation("customers", bigints("c", "balance"))
AVERAGE = Relation("average", bigints("a"))
ORDERS = Relation("orders", bigints("o", "c"))

RICH = Filter(
    Join((CUSTOMERS.scan("c"), AVERAGE.scan("a")), ()),
    Call(">", (Col("c.balance"), Col("a.a"))),
)
IDLE = Exists(RICH, ORDERS.scan("o"), ((Col("c.c"), Col("o.c")),), negated=True)


def plans(body: Plan, changed: list[str]) -> list[Plan]:
    return [candidate.plan for candidate in candidates(body, changed)]


def test_an_input_that_is_computed_can_be_stored_before_it_is_matched() -> None:
    (found,) = candidates(IDLE, ["average"])
    assert found.plan == RICH
    assert found.meets == ((IDLE.right, (Col("o.c"),), (Col("c.c"),)),)
    assert plans(IDLE, ["orders"]) == []


def test_a_right_input_meets_the_rows_that_it_had_too() -> None:
    busy = Exists(ORDERS.scan("o"), RICH, ((Col("o.c"), Col("c.c")),))
    (found,) = candidates(busy, ["average"])
    assert found.plan == RICH
    assert [plan for plan, _, _ in found.meets] == [busy.left, RICH]


def test_a_selection_of_rows_is_stored_already() -> None:
    chosen = Filter(CUSTOMERS.scan("c"), Call(">", (Col("c.balance"), Lit(0))))
    assert plans(Exists(chosen, ORDERS.scan("o"), IDLE.keys), ["customers", "orders"]) == []


@pytest.mark.parametrize("kind", ["variant", "map<string,map<string,int>>", "void", "interval day to second"])
def test_rows_that_cannot_be_netted_or_stored_are_not(kind: str) -> None:
    odd = Relation("odd", (Column("c", "bigint"), Column("odd", kind)))
    joined = Join((odd.scan("c"), AVERAGE.scan("a")), ())
    assert plans(Exists(joined, ORDERS.scan("o"), IDLE.keys), ["odd"]) == []


def test_inputs_below_others_come_first() -> None:
    twice = OuterJoin(IDLE, ORDERS.scan("p"), ((Col("c.c"), Col("p.c")),))
    assert plans(twice, ["customers"]) == [RICH, IDLE]


def test_columns_that_are_compared_and_no_more_are_left_out_before_rows_are_matched() -> None:
    shown = tuple(Output(column, Col(column.name)) for column in IDLE.columns if column.name == "c.balance")
    body = narrowed(Block("idle", Project(IDLE, shown))).body
    (asked,) = children(body)
    assert isinstance(asked, Exists)
    assert names(asked.left.columns) == ("c.c", "c.balance")


def test_a_new_average_leaves_the_rows_between_it_and_the_old_one() -> None:
    shown = tuple(Output(column, Col(column.name)) for column in IDLE.columns if column.name.startswith("c."))
    block = narrowed(Block("idle", Project(IDLE, shown)))
    leaves = {
        "customers": SignedBag.of((number, 10 * number) for number in range(10)),
        "average": SignedBag.of([(45,)]),
        "orders": SignedBag.of([(1, 5), (2, 9)]),
    }
    step = {"average": SignedBag([((45,), -1), ((65,), 1)])}
    done = refreshed([block], computed([block], leaves), step, inside=True)
    assert done.visible_deltas["inner 1 of idle"] == SignedBag([((5, 50), -1), ((6, 60), -1)])
    assert done.stored_deltas["idle"] == SignedBag([((6, 60), -1)])


@pytest.mark.parametrize("only_near", [False, True])
@campaign(EXAMPLES // 3)
@given(history=histories())
def test_views_are_the_same_whether_or_not_deltas_inside_are_stored(history: History, only_near: bool) -> None:
    contents, leaves = computed(history.blocks, history.start), dict(history.start)
    for step in history.steps:
        contents = refreshed(history.blocks, contents, step, inside=True, only_near=only_near).after
        leaves.update({name: leaves[name] + delta for name, delta in step.items()})
        fresh = computed(history.blocks, leaves)
        assert contents.stored == fresh.stored
        assert {name: contents.visible[name] for name in fresh.visible} == fresh.visible


@campaign(EXAMPLES // 3)
@given(case=cases(), data=st.data())
def test_deltas_inside_go_together_with_shared_ones_and_constraints(case: Case, data: st.DataObject) -> None:
    contents = computed([case.block], case.states[0])
    for before, after in pairwise(case.states):
        delta = changes(before, after)
        assumed = known((*FOREIGN_KEYS, *case.not_null), delta)
        simple = replace(case.block, body=simplified(case.block.body, assumed)[0])
        shared = {case.block.node: sharing(data, simple)}
        contents = refreshed([case.block], contents, delta, assumed=assumed, sharing=shared, inside=True).after
        assert contents.stored == computed([case.block], after).stored
