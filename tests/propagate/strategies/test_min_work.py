"""MinWork and the modified ordering."""

from __future__ import annotations

import pytest
from hypothesis import given

from strandline.propagate.strategies.correctness import is_correct
from strandline.propagate.strategies.dual_stage import dual_stage
from strandline.propagate.strategies.enumeration import choices, combined
from strandline.propagate.strategies.expression_graph import construct_eg
from strandline.propagate.strategies.expressions import Strategy, written
from strandline.propagate.strategies.graph import ViewGraph
from strandline.propagate.strategies.min_work import min_work
from strandline.propagate.strategies.orderings import Ordering, desired_ordering, modify_ordering
from strandline.propagate.strategies.partitions import choice_of, one_way_blocks
from strandline.propagate.strategies.sizes import Sizes
from strandline.propagate.strategies.work import LinearWork
from tests.propagate.strategies.figures import (
    CONFLICT,
    FIGURE_3_3,
    FIGURE_3_11,
    SIZES_3_3,
    SIZES_3_11,
    SIZES_CONFLICT,
    parsed,
)
from tests.propagate.strategies.random_graphs import MODEST, Sized, graphs, sized, trees, uniform_graphs


def least(graph: ViewGraph, sizes: Sizes) -> float:
    """The least work of any strategy."""
    return min(map(LinearWork(graph, sizes).of, combined(graph, choices(graph))))


def test_examples_3_5_1_and_3_5_2() -> None:
    assert desired_ordering(FIGURE_3_3, SIZES_3_3) == ("V4", "V2", "V1", "V3", "V5")
    strategy = min_work(FIGURE_3_3, SIZES_3_3)
    assert written(strategy) == (
        "Comp(V4,{V2}), Inst(V2), Comp(V4,{V3}), Inst(V3), Comp(V5,{V4}), Inst(V4), Comp(V5,{V1}), Inst(V1), Inst(V5)"
    )
    metric = LinearWork(FIGURE_3_3, SIZES_3_3)
    assert metric.by_step(strategy) == (250, 50, 470, 20, 1_300, 300, 3_710, 10, 25)
    assert metric.of(strategy) == least(FIGURE_3_3, SIZES_3_3) == 6_135


@pytest.mark.parametrize(
    ("v4", "v5", "work"), [("23", "41", 6_135), ("32", "41", 6_205), ("23", "14", 6_445), ("32", "14", 6_515)]
)
def test_the_other_orders_of_figure_3_3(v4: str, v5: str, work: int) -> None:
    choice = {view: one_way_blocks([f"V{n}" for n in order]) for view, order in (("V4", v4), ("V5", v5))}
    (strategy,) = combined(FIGURE_3_3, [choice])
    assert choice_of(FIGURE_3_3, strategy) == choice
    assert LinearWork(FIGURE_3_3, SIZES_3_3).of(strategy) == work


def test_dual_stage_of_figure_3_3() -> None:
    strategy = dual_stage(FIGURE_3_3)
    assert is_correct(FIGURE_3_3, strategy)
    assert LinearWork(FIGURE_3_3, SIZES_3_3).of(strategy) == 6_865


@pytest.mark.parametrize(
    ("ordering", "modified", "strategy"),
    [
        (
            ("V4", "V1", "V2", "V3", "V5"),
            ("V1", "V2", "V3", "V4", "V5"),
            "Comp(V5,{V1}), Inst(V1), Comp(V4,{V2}), Comp(V5,{V2}), Inst(V2), "
            "Comp(V4,{V3}), Inst(V3), Comp(V5,{V4}), Inst(V4), Inst(V5)",
        ),
        (
            ("V4", "V2", "V1", "V3", "V5"),
            ("V2", "V1", "V3", "V4", "V5"),
            "Comp(V4,{V2}), Comp(V5,{V2}), Inst(V2), Comp(V5,{V1}), Inst(V1), "
            "Comp(V4,{V3}), Inst(V3), Comp(V5,{V4}), Inst(V4), Inst(V5)",
        ),
    ],
)
def test_a_cyclic_ordering_of_figure_3_11_is_modified_by_level(
    ordering: Ordering, modified: Ordering, strategy: str
) -> None:
    assert modify_ordering(FIGURE_3_11, ordering) == modified
    assert construct_eg(FIGURE_3_11, modified).sort() == parsed(strategy)


def test_the_modified_ordering_can_cost_more() -> None:
    assert desired_ordering(FIGURE_3_11, SIZES_3_11) == ("V4", "V2", "V5", "V1", "V3")
    strategy = min_work(FIGURE_3_11, SIZES_3_11)
    assert written(strategy) == (
        "Comp(V4,{V2}), Comp(V5,{V2}), Inst(V2), Comp(V5,{V1}), Inst(V1), "
        "Comp(V4,{V3}), Inst(V3), Comp(V5,{V4}), Inst(V4), Inst(V5)"
    )
    metric = LinearWork(FIGURE_3_11, SIZES_3_11)
    assert metric.by_step(strategy) == (105, 1_105, 5, 1_100, 5, 105, 10, 600, 400, 4)
    assert metric.of(strategy) == 3_439
    assert least(FIGURE_3_11, SIZES_3_11) == 2_654


def test_conflicting_wishes_are_settled_by_level() -> None:
    assert desired_ordering(CONFLICT, SIZES_CONFLICT) == ("W", "X", "A", "B")
    strategy = min_work(CONFLICT, SIZES_CONFLICT)
    assert written(strategy) == (
        "Comp(W,{A}), Comp(X,{A}), Inst(A), Comp(W,{B}), Comp(X,{B}), Inst(B), Comp(X,{W}), Inst(W), Inst(X)"
    )
    assert LinearWork(CONFLICT, SIZES_CONFLICT).of(strategy) == 28_070


@MODEST
@given(sized(trees() | uniform_graphs()))
def test_min_work_is_optimal_for_trees_and_uniform_graphs(case: Sized) -> None:
    graph, sizes = case
    assert LinearWork(graph, sizes).of(min_work(graph, sizes)) == least(graph, sizes)


@MODEST
@given(sized(graphs()))
def test_min_work_is_correct_and_optimal_where_the_desired_ordering_has_strategies(case: Sized) -> None:
    graph, sizes = case
    strategy: Strategy = min_work(graph, sizes)
    assert is_correct(graph, strategy)
    if construct_eg(graph, desired_ordering(graph, sizes)).acyclic:
        assert LinearWork(graph, sizes).of(strategy) == least(graph, sizes)


@MODEST
@given(sized(graphs(most_derived=5)))
def test_an_ordering_by_level_always_has_strategies(case: Sized) -> None:
    """Theorem 3.5.5."""
    graph, sizes = case
    assert construct_eg(graph, modify_ordering(graph, desired_ordering(graph, sizes))).acyclic
