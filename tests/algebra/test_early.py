"""Semi joins that go down to the input which has their keys."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strandline.algebra.bag import SignedBag
from strandline.algebra.early import early
from strandline.algebra.evaluate import evaluate
from strandline.algebra.plan import (
    At,
    Change,
    Exists,
    Filter,
    Join,
    Negate,
    Operand,
    OuterJoin,
    Output,
    Plan,
    Project,
    Scan,
    SemiJoin,
    UnionAll,
)
from strandline.algebra.scalar import Call, Col, Lit
from strandline.algebra.schema import Column

A, B = Column("a", "int"), Column("b", "int")
R, S, T = (Scan(At(name), name, (A, B)) for name in "rst")
K = Scan(Change("k"), "", (A,))
TWO = Scan(Change("two"), "", (A, B))
RS = Join((R, S), (Call("=", (Col("r.b"), Col("s.b"))),))
POSITIVE = Call(">", (Col("r.a"), Lit(0)))


def asked(plan: Plan, *values: str, keys: Plan = K) -> SemiJoin:
    return SemiJoin(plan, tuple(map(Col, values)), keys)


def named(plan: Plan, **columns: str) -> Project:
    return Project(plan, tuple(Output(Column(name, "int"), Col(column)) for name, column in columns.items()))


CASES: dict[str, tuple[Plan, Plan]] = {
    "the input that has the key": (asked(RS, "r.a"), Join((asked(R, "r.a"), S), RS.conditions)),
    "another input": (asked(RS, "s.a"), Join((R, asked(S, "s.a")), RS.conditions)),
    "a key of two columns": (
        asked(RS, "s.a", "s.b", keys=TWO),
        Join((R, asked(S, "s.a", "s.b", keys=TWO)), RS.conditions),
    ),
    "through a selection": (
        asked(Filter(RS, POSITIVE), "s.a"),
        Filter(Join((R, asked(S, "s.a")), RS.conditions), POSITIVE),
    ),
    "not below a selection from the input itself": (
        asked(Join((Filter(R, POSITIVE), S), RS.conditions), "r.a"),
        Join((asked(Filter(R, POSITIVE), "r.a"), S), RS.conditions),
    ),
    "through new names": (
        asked(named(RS, x="r.b", y="s.a"), "y"),
        named(Join((R, asked(S, "s.a")), RS.conditions), x="r.b", y="s.a"),
    ),
    "a join in a join": (
        asked(Join((RS, T), ()), "s.a"),
        Join((Join((R, asked(S, "s.a")), RS.conditions), T), ()),
    ),
    "each side of a union, by place": (
        asked(UnionAll((named(RS, x="r.a", y="s.a"), named(T, u="t.a", v="t.b"))), "y"),
        UnionAll(
            (
                named(Join((R, asked(S, "s.a")), RS.conditions), x="r.a", y="s.a"),
                asked(named(T, u="t.a", v="t.b"), "v"),
            )
        ),
    ),
    "the left side of an anti join": (
        asked(Exists(R, S, ((Col("r.b"), Col("s.b")),), negated=True), "r.a"),
        Exists(asked(R, "r.a"), S, ((Col("r.b"), Col("s.b")),), negated=True),
    ),
    "the left side of an outer join": (
        asked(OuterJoin(R, S, ((Col("r.b"), Col("s.b")),)), "r.a"),
        OuterJoin(asked(R, "r.a"), S, ((Col("r.b"), Col("s.b")),)),
    ),
}
STAYING: dict[str, Plan] = {
    "a table": asked(R, "r.a"),
    "a selection from a table": asked(Filter(R, POSITIVE), "r.a"),
    "a union of tables": asked(UnionAll((R, R)), "r.a"),
    "a key of two inputs": asked(RS, "r.a", "s.a", keys=TWO),
    "a computed key": SemiJoin(RS, (Call("+", (Col("r.a"), Lit(1))),), K),
    "a key that is computed below": asked(
        Project(RS, (Output(Column("x", "int"), Call("+", (Col("r.a"), Lit(1)))),)), "x"
    ),
    "the right side of an outer join": asked(OuterJoin(R, S, ((Col("r.b"), Col("s.b")),)), "s.a"),
    "a full outer join": asked(OuterJoin(R, S, ((Col("r.b"), Col("s.b")),), full=True), "r.a"),
    "what is negated": asked(Negate(R), "r.a"),
}


@pytest.mark.parametrize("case", CASES)
def test_keys_are_asked_of_the_input_that_has_them(case: str) -> None:
    plan, expected = CASES[case]
    assert early(plan) == expected


@pytest.mark.parametrize("case", STAYING)
def test_where_no_input_of_a_join_has_them_keys_stay(case: str) -> None:
    assert early(STAYING[case]) is STAYING[case]


values = st.sampled_from([None, 0, 1, 2])
bags = st.lists(st.tuples(values, values), max_size=5).map(lambda rows: SignedBag((row, 1) for row in rows))


@pytest.mark.parametrize("case", [*CASES, *STAYING])
@given(r=bags, s=bags, t=bags, two=bags)
def test_the_rows_are_the_same(case: str, r: SignedBag, s: SignedBag, t: SignedBag, two: SignedBag) -> None:
    k = SignedBag(((row[0],), count) for row, count in two.items())
    rows: dict[Operand, SignedBag] = {
        At("r"): r, At("s"): s, At("t"): t, Change("k"): k, Change("two"): two
    }  # fmt: skip
    plan = CASES[case][0] if case in CASES else STAYING[case]
    assert evaluate(early(plan), rows.__getitem__) == evaluate(plan, rows.__getitem__)


def test_a_part_that_stands_in_two_places_does_so_afterwards() -> None:
    plan = asked(RS, "r.a")
    found = early(UnionAll((plan, plan)))
    assert isinstance(found, UnionAll)
    assert found.inputs[0] != plan
    assert found.inputs[0] is found.inputs[1]
