"""Prune finds the best 1-way strategy, which need not be the best of all."""

from __future__ import annotations

from itertools import permutations

from hypothesis import given

from strandline.propagate.strategies.correctness import is_correct
from strandline.propagate.strategies.enumeration import choices, combined, every_sort, one_way_choices
from strandline.propagate.strategies.expression_graph import construct_seg
from strandline.propagate.strategies.expressions import written
from strandline.propagate.strategies.min_work import min_work
from strandline.propagate.strategies.one_way import is_one_way, strongly_consistent
from strandline.propagate.strategies.prune import prune
from strandline.propagate.strategies.work import LinearWork
from tests.propagate.strategies.figures import CONFLICT, FIGURE_3_11, SIZES_3_11, SIZES_CONFLICT, parsed
from tests.propagate.strategies.random_graphs import MODEST, Sized, graphs, sized


@MODEST
@given(sized(graphs(most_derived=2)))
def test_no_one_way_strategy_costs_less(case: Sized) -> None:
    graph, sizes = case
    metric = LinearWork(graph, sizes)
    found = prune(graph, sizes)
    assert is_correct(graph, found)
    assert is_one_way(found)
    assert metric.of(found) == min(map(metric.of, combined(graph, one_way_choices(graph))))
    assert metric.of(found) <= metric.of(min_work(graph, sizes))


def test_prune_on_figure_3_11() -> None:
    metric = LinearWork(FIGURE_3_11, SIZES_3_11)
    found = prune(FIGURE_3_11, SIZES_3_11)
    assert metric.of(found) == 2_654 == min(map(metric.of, combined(FIGURE_3_11, choices(FIGURE_3_11))))
    printed = parsed(
        "Comp(V4,{V3}), Inst(V3), Comp(V4,{V2}), Comp(V5,{V4}), Inst(V4), "
        "Comp(V5,{V2}), Inst(V2), Comp(V5,{V1}), Inst(V1), Inst(V5)"
    )
    assert strongly_consistent(printed, ("V3", "V4", "V2", "V1", "V5"))
    assert construct_seg(FIGURE_3_11, ("V3", "V4", "V2", "V1", "V5")).sort() == printed
    assert metric.by_step(printed) == (110, 10, 115, 600, 400, 705, 5, 700, 5, 4)


def test_the_works_of_the_orderings_of_figure_3_11() -> None:
    metric = LinearWork(FIGURE_3_11, SIZES_3_11)
    sorts = [construct_seg(FIGURE_3_11, (*first, "V5")).sort() for first in permutations(FIGURE_3_11.used)]
    works = [metric.of(strategy) for strategy in sorts if strategy is not None]
    assert len(works) == 16
    assert sorted(set(works)) == [2_654, 2_664, 3_034, 3_049, 3_069, 3_439, 3_449, 3_454, 3_464]


def test_strategies_that_follow_one_ordering_cost_the_same() -> None:
    """Theorem 3.6.1."""
    metric = LinearWork(FIGURE_3_11, SIZES_3_11)
    for first in permutations(FIGURE_3_11.used):
        sorts = every_sort(construct_seg(FIGURE_3_11, (*first, "V5")))
        assert len({metric.of(strategy) for strategy in sorts}) <= 1


def test_a_mixed_strategy_can_cost_less_than_any_one_way_strategy() -> None:
    metric = LinearWork(CONFLICT, SIZES_CONFLICT)
    found = prune(CONFLICT, SIZES_CONFLICT)
    assert written(found) == (
        "Comp(W,{A}), Comp(X,{A}), Inst(A), Comp(W,{B}), Comp(X,{W}), Inst(W), Comp(X,{B}), Inst(B), Inst(X)"
    )
    assert metric.of(found) == 27_080
    best = parsed(
        "Comp(W,{A,B}), Comp(X,{W}), Inst(W), Comp(X,{A}), Inst(A), Comp(X,{B}), Inst(B), Inst(X)",
    )
    assert is_correct(CONFLICT, best)
    assert metric.by_step(best) == (2_040, 3_000, 1_000, 10_010, 10, 10_000, 10, 50)
    assert metric.of(best) == 26_120 == min(map(metric.of, combined(CONFLICT, choices(CONFLICT))))
    acyclic = [construct_seg(CONFLICT, (*first, "X")).acyclic for first in permutations(CONFLICT.used)]
    assert (len(acyclic), sum(acyclic)) == (6, 4)
