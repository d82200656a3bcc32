"""Strategies on data: correct ones end in the right state, and a violation of each condition can end in a wrong one."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strandline.algebra.bag import Row, SignedBag
from strandline.algebra.differentiate import differentiate
from strandline.algebra.evaluate import evaluate
from strandline.algebra.plan import At, Change, Join, Operand, Output, Project, Scan, scans
from strandline.algebra.scalar import Col, equality
from strandline.algebra.schema import Column
from strandline.algebra.term import as_plan
from strandline.propagate.strategies.dual_stage import dual_stage
from strandline.propagate.strategies.enumeration import choices, combined, correct_strategies
from strandline.propagate.strategies.expressions import comp
from strandline.propagate.strategies.flattening import flatten
from strandline.propagate.strategies.graph import ViewGraph
from strandline.propagate.strategies.min_work import min_work
from strandline.propagate.strategies.multi_version import PinnedComp, multi_version, pinned_stages
from strandline.propagate.strategies.prune import prune
from strandline.propagate.strategies.stages import stages
from tests.propagate.strategies.execution import Warehouse, chain, random_case, scanned, written_out
from tests.propagate.strategies.figures import CONFLICT, FIGURE_3_3, FIGURE_3_11, over, parsed
from tests.propagate.strategies.random_graphs import MODEST, Sized, graphs, sized
from tests.propagate.strategies.test_correctness import SMALLEST_VIOLATIONS


@pytest.mark.parametrize("graph", [over(1), over(2), over(3)], ids=["1", "2", "3"])
def test_every_correct_strategy_of_a_view_ends_in_the_right_state(graph: ViewGraph) -> None:
    case = random_case(graph, Random(graph.views[-2]))
    assert all(case.ends_right((step,) for step in strategy) for strategy in correct_strategies(graph))


@pytest.mark.parametrize("graph", [FIGURE_3_3, FIGURE_3_11, CONFLICT], ids=["3.3", "3.11", "conflict"])
def test_every_correct_strategy_of_a_graph_ends_in_the_right_state(graph: ViewGraph) -> None:
    case = random_case(graph, Random(1))
    for strategy in combined(graph, choices(graph)):
        assert case.ends_right((step,) for step in strategy)
        assert case.ends_right(stages(graph, strategy))


@MODEST
@given(sized(graphs()), st.integers(0, 1_000))
def test_the_strategies_of_all_algorithms_end_in_the_right_state(found: Sized, seed: int) -> None:
    graph, sizes = found
    case = random_case(graph, Random(seed))
    for strategy in (min_work(graph, sizes), prune(graph, sizes), dual_stage(graph)):
        assert case.ends_right((step,) for step in strategy)
        assert case.ends_right(stages(graph, strategy))
    pinned = multi_version(graph, sizes)
    assert case.ends_right((step,) for step in pinned)
    assert case.ends_right(pinned_stages(pinned))


@MODEST
@given(sized(graphs()), st.integers(0, 1_000))
def test_empty_deltas_can_be_left_out(found: Sized, seed: int) -> None:
    graph, sizes = found
    graph = graph.holding([graph.views[seed % 2]])
    case = random_case(graph, Random(seed))
    for strategy in (min_work(graph, sizes), prune(graph, sizes), dual_stage(graph)):
        assert case.ends_right((step,) for step in strategy)


@pytest.mark.parametrize(("condition", "graph", "text"), SMALLEST_VIOLATIONS)
def test_a_violation_can_end_in_a_wrong_state(condition: str, graph: ViewGraph, text: str) -> None:
    cases = [random_case(graph, Random(seed)) for seed in range(20)]
    assert not all(case.ends_right((step,) for step in parsed(text)) for case in cases), condition


def test_each_condition_is_broken_by_some_of_these() -> None:
    assert {condition for condition, _, _ in SMALLEST_VIOLATIONS} == {"C1", "C2", "C3", "C4", "C5", "C6", "C8"}


@pytest.mark.parametrize("seed", range(10))
def test_pinned_terms_are_those_of_the_join_rule(seed: int) -> None:
    graph = over(3)
    case = random_case(graph, Random(seed))
    order = Random(seed).sample(graph.defined_on["V"], 3)
    steps = [
        PinnedComp(
            "V",
            Change(source),
            tuple(At(other, "post" if order.index(other) < place else "pre") for other in order if other != source),
        )
        for place, source in enumerate(order)
    ]
    rule = differentiate(chain(graph.defined_on["V"], scanned(graph.defined_on["V"])), order, order=order)
    assert {frozenset(scan.operand for scan in scans(term.plan)) for term in rule} == {
        frozenset({step.delta, *step.reads}) for step in steps
    }

    def rows(operand: Operand) -> SignedBag:
        match operand:
            case Change(relation):
                return case.changes[relation]
            case At(relation, "pre"):
                return case.base[relation]
            case At(relation, "post"):
                return case.base[relation] + case.changes[relation]
        raise AssertionError(operand)

    delta = as_plan(rule)
    assert delta is not None
    assert evaluate(delta, rows) == case.right()["V"] - case.warehouse().contents["V"]


@pytest.mark.parametrize("seed", range(10))
def test_a_flattened_view_ends_as_it_would_have(seed: int) -> None:
    case = random_case(FIGURE_3_11, Random(seed))
    graph = flatten(FIGURE_3_11, "V5", "V4")
    flat = replace(case, graph=graph, definitions={**case.definitions, "V5": written_out(FIGURE_3_11, "V5", "V4")})
    assert flat.right() == case.right()
    assert flat.warehouse().contents == case.warehouse().contents
    assert flat.ends_right(stages(graph, dual_stage(graph)))


AB, BC = (Column("a", "bigint"), Column("b", "bigint")), (Column("b", "bigint"), Column("c", "string"))


def signed(*rows: tuple[int, Row]) -> SignedBag:
    return SignedBag((row, count) for count, row in rows)


def worked_example() -> Warehouse:
    """``V4(a, b, c) = V2(a, b) ⋈ V3(b, c)``, with a change of both."""
    joined = Join((Scan(At("V2"), "V2", AB), Scan(At("V3"), "V3", BC)), (equality("V2.b", "V3.b"),))
    columns = [("a", "V2.a"), ("b", "V2.b"), ("c", "V3.c")]
    plan = Project(joined, tuple(Output(Column(name, "bigint"), Col(column)) for name, column in columns))
    return Warehouse(
        {"V4": plan},
        {
            "V2": SignedBag.of([(1, 10), (2, 20), (3, 10)]),
            "V3": SignedBag.of([(10, "x"), (20, "y")]),
            "V4": SignedBag.of([(1, 10, "x"), (2, 20, "y"), (3, 10, "x")]),
        },
        {
            "V2": signed((-1, (1, 10)), (1, (4, 20))),
            "V3": signed((-1, (10, "x")), (1, (10, "z"))),
            "V4": SignedBag(),
        },
    )


GONE_1X, NEW_4Y = (-1, (1, 10, "x")), (1, (4, 20, "y"))
GONE_3X, NEW_3Z = (-1, (3, 10, "x")), (1, (3, 10, "z"))
RIGHT = signed(GONE_1X, GONE_3X, NEW_3Z, NEW_4Y)


@pytest.mark.parametrize(
    ("strategy", "parts", "delta"),
    [
        (
            "Comp(V4,{V2}), Inst(V2), Comp(V4,{V3}), Inst(V3), Inst(V4)",
            [signed(GONE_1X, NEW_4Y), signed(GONE_3X, NEW_3Z)],
            RIGHT,
        ),
        (
            "Comp(V4,{V3}), Inst(V3), Comp(V4,{V2}), Inst(V2), Inst(V4)",
            [signed(GONE_1X, (1, (1, 10, "z")), GONE_3X, NEW_3Z), signed((-1, (1, 10, "z")), NEW_4Y)],
            RIGHT,
        ),
        ("Comp(V4,{V2,V3}), Inst(V2), Inst(V3), Inst(V4)", [RIGHT], RIGHT),
        (
            "Comp(V4,{V2}), Comp(V4,{V3}), Inst(V2), Inst(V3), Inst(V4)",
            [signed(GONE_1X, NEW_4Y), signed(GONE_1X, (1, (1, 10, "z")), GONE_3X, NEW_3Z)],
            RIGHT + signed(GONE_1X, (1, (1, 10, "z"))),
        ),
        (
            "Inst(V2), Inst(V3), Comp(V4,{V2}), Comp(V4,{V3}), Inst(V4)",
            [signed((-1, (1, 10, "z")), NEW_4Y), signed(GONE_3X, NEW_3Z)],
            RIGHT - signed(GONE_1X, (1, (1, 10, "z"))),
        ),
    ],
    ids=["V2 then V3", "V3 then V2", "both at once", "C4 broken", "C3 broken"],
)
def test_the_worked_example(strategy: str, parts: list[SignedBag], delta: SignedBag) -> None:
    warehouse = worked_example()
    found = []
    for step in parsed(strategy):
        before = warehouse.deltas["V4"]
        warehouse.carry_out(step)
        if step in (comp("V4", "V2"), comp("V4", "V3"), comp("V4", "V2", "V3")):
            found.append(warehouse.deltas["V4"] - before)
    assert found == parts
    assert warehouse.deltas["V4"] == delta
    right = SignedBag.of([(2, 20, "y"), (3, 10, "z"), (4, 20, "y")])
    assert (warehouse.contents["V4"] == right) == (delta == RIGHT)
