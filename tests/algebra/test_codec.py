"""Blocks survive the catalog, and a fingerprint names what a block computes."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from strandline.algebra.block import Block, delta_of
from strandline.algebra.codec import fingerprint, from_json, to_json
from strandline.algebra.plan import COUNT, At, Filter, Join, Output, Partial, Project, Scan, UnionAll
from strandline.algebra.scalar import Call, Col, Lit, Scalar, Text, Value
from strandline.algebra.schema import Column
from strandline.algebra.term import Term
from tests.algebra.views import bigints, databases, view_dags

cases = settings(max_examples=80, deadline=None, derandomize=True)


def through_text(value: object) -> object:
    return from_json(json.loads(json.dumps(to_json(value))))


@st.composite
def drawn_views(draw: st.DrawFn) -> tuple[Block, ...]:
    leaves, _ = draw(databases())
    return draw(view_dags(leaves))


@cases
@given(drawn_views())
def test_a_block_comes_back_as_it_was(views: tuple[Block, ...]) -> None:
    for block in views:
        back = through_text(block)
        assert back == block
        assert isinstance(back, Block)
        assert fingerprint(back) == fingerprint(block)


@cases
@given(drawn_views(), st.booleans())
def test_the_plan_of_a_delta_comes_back_as_it_was(views: tuple[Block, ...], insert_only: bool) -> None:
    for block in views:
        delta = delta_of(block, set(block.inputs), insert_only=insert_only)
        assert delta is not None
        assert through_text(delta.plan) == delta.plan


@cases
@given(drawn_views(), drawn_views())
def test_fingerprints_are_equal_where_blocks_are(some: tuple[Block, ...], others: tuple[Block, ...]) -> None:
    for one in some:
        for other in others:
            same = replace(one, node="v") == replace(other, node="v")
            assert (fingerprint(one) == fingerprint(other)) == same


@cases
@given(drawn_views())
def test_the_name_of_the_node_does_not_matter(views: tuple[Block, ...]) -> None:
    for block in views:
        assert fingerprint(replace(block, node="another")) == fingerprint(block)


@pytest.mark.parametrize(
    "value", [None, True, False, 0, -1, 2**62, 1.5, 1e300, "", "is", "Δ 'quoted' \\", Decimal("12.50")]
)
def test_a_constant_comes_back_with_its_type(value: Value) -> None:
    back = through_text(Lit(value))
    assert isinstance(back, Lit)
    assert back.value == value
    assert type(back.value) is type(value)
    assert str(back.value) == str(value)


R = Scan(At("r"), "r", bigints("a", "b"), ("a",))
S = Scan(At("s"), "s", bigints("a", "b"))
A = Output(Column("a", "bigint"), Col("r.a"))
B = Output(Column("b", "bigint"), Col("r.b"))
COUNT_OF_ROWS = Partial(Column(COUNT, "bigint", False), "count")
SUM = Partial(Column("s", "bigint"), "sum", Col("r.b"))
N = Output(Column("n", "bigint"), Col(COUNT))
SOME: Scalar = Call(">", (Col("r.a"), Lit(1)))

BLOCK = Block("v", Filter(R, SOME), (A,), (COUNT_OF_ROWS, SUM), Call(">", (Col(COUNT), Lit(1))), (N,))

OTHERS = {
    "no having": replace(BLOCK, having=None),
    "another constant": replace(BLOCK, having=Call(">", (Col(COUNT), Lit(2)))),
    "another type of constant": replace(BLOCK, having=Call(">", (Col(COUNT), Lit(Decimal(1))))),
    "another operator": replace(BLOCK, having=Call(">=", (Col(COUNT), Lit(1)))),
    "another key": replace(BLOCK, keys=(B,)),
    "more keys": replace(BLOCK, keys=(A, B)),
    "another order of keys": replace(BLOCK, keys=(B, A)),
    "no key": replace(BLOCK, keys=()),
    "another name of a key": replace(BLOCK, keys=(replace(A, column=Column("k", "bigint")),)),
    "another type of a key": replace(BLOCK, keys=(replace(A, column=Column("a", "int")),)),
    "fewer partials": replace(BLOCK, partials=(COUNT_OF_ROWS,)),
    "another aggregate": replace(BLOCK, partials=(COUNT_OF_ROWS, replace(SUM, kind="min"))),
    "another argument": replace(BLOCK, partials=(COUNT_OF_ROWS, replace(SUM, argument=Col("r.a")))),
    "a partial with where": replace(BLOCK, partials=(COUNT_OF_ROWS, replace(SUM, where=SOME))),
    "other outputs": replace(BLOCK, outputs=(Output(Column("a", "bigint"), Col("a")), N)),
    "no filter": replace(BLOCK, body=R),
    "another relation": replace(BLOCK, body=Filter(replace(R, operand=At("q")), SOME)),
    "another state": replace(BLOCK, body=Filter(replace(R, operand=At("r", 3)), SOME)),
    "no declared key": replace(BLOCK, body=Filter(replace(R, key=()), SOME)),
    "a column may not be null": replace(
        BLOCK, body=Filter(replace(R, fields=(Column("a", "bigint", False), R.fields[1])), SOME)
    ),
    "a join": replace(BLOCK, body=Join((R, S), (SOME,))),
    "a join the other way round": replace(BLOCK, body=Join((S, R), (SOME,))),
    "a union": replace(BLOCK, body=UnionAll((R, S))),
    "the user's text": replace(BLOCK, body=Filter(R, Text((Col("r.a"), " > 1"), SOME))),
    "another text": replace(BLOCK, body=Filter(R, Text(("1 < ", Col("r.a")), SOME))),
    "not grouped": Block("v", Project(R, (A,))),
}


@pytest.mark.parametrize("change", OTHERS)
def test_any_other_change_gives_another_fingerprint(change: str) -> None:
    assert fingerprint(OTHERS[change]) != fingerprint(BLOCK)


def test_no_two_of_these_blocks_share_a_fingerprint() -> None:
    assert len({fingerprint(block) for block in OTHERS.values()}) == len(OTHERS)


def test_a_fingerprint_stays_the_same_from_run_to_run() -> None:
    # Stored tables are named by it.
    assert fingerprint(Block("v", Filter(R, SOME))) == "fb8820e09995f89e"


@dataclass(frozen=True)
class Waiting:
    terms: tuple[Term, ...]


def test_terms_come_back_and_so_do_dataclasses_that_are_named() -> None:
    waiting = Waiting((Term(Scan(At("r"), "r", bigints("a")), -1),))
    text = json.dumps(to_json(waiting))
    assert from_json(json.loads(text), {"Waiting": Waiting}) == waiting
