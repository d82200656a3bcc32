"""With versions each view follows its own best order; no strategy for one version costs less."""

from __future__ import annotations

from collections import Counter

from hypothesis import given

from strandline.algebra.plan import At, Change
from strandline.propagate.strategies.dual_stage import dual_stage
from strandline.propagate.strategies.enumeration import choices, combined
from strandline.propagate.strategies.expressions import Inst
from strandline.propagate.strategies.min_work import min_work
from strandline.propagate.strategies.min_work_single import min_work_single
from strandline.propagate.strategies.multi_version import PinnedComp, multi_version, pinned_stages, pinned_work
from strandline.propagate.strategies.prune import prune
from strandline.propagate.strategies.stages import stages
from strandline.propagate.strategies.work import LinearWork
from tests.propagate.strategies.figures import (
    CONFLICT,
    FIGURE_3_3,
    FIGURE_3_11,
    SIZES_3_3,
    SIZES_3_11,
    SIZES_CONFLICT,
)
from tests.propagate.strategies.random_graphs import MODEST, Sized, graphs, sized


def test_conflicting_wishes_are_both_granted() -> None:
    strategy = multi_version(CONFLICT, SIZES_CONFLICT)
    assert list(map(str, strategy)) == [
        "Inst(A)",
        "Inst(B)",
        "Comp(W: ΔA(pre,post], B@pre)",
        "Comp(W: ΔB(pre,post], A@post)",
        "Inst(W)",
        "Comp(X: ΔW(pre,post], A@pre, B@pre)",
        "Comp(X: ΔA(pre,post], B@pre, W@post)",
        "Comp(X: ΔB(pre,post], A@post, W@post)",
        "Inst(X)",
    ]
    assert pinned_work(SIZES_CONFLICT, strategy) == 1_010 + 1_000 + 3_000 + 10_010 + 10_000 + 1_070 == 26_090


def test_figure_3_11_costs_less_than_its_best_one_way_strategy() -> None:
    assert pinned_work(SIZES_3_11, multi_version(FIGURE_3_11, SIZES_3_11)) == 2_639
    assert LinearWork(FIGURE_3_11, SIZES_3_11).of(prune(FIGURE_3_11, SIZES_3_11)) == 2_654


def test_where_min_work_is_optimal_versions_gain_nothing_but_stages() -> None:
    strategy = multi_version(FIGURE_3_3, SIZES_3_3)
    assert pinned_work(SIZES_3_3, strategy) == 6_135
    assert pinned_stages(strategy) == (
        frozenset({*map(Inst, ("V1", "V2", "V3")), PinnedComp("V4", Change("V2"), (At("V3", "pre"),))}),
        frozenset({PinnedComp("V4", Change("V3"), (At("V2", "post"),))}),
        frozenset({Inst("V4"), PinnedComp("V5", Change("V4"), (At("V1", "pre"),))}),
        frozenset({PinnedComp("V5", Change("V1"), (At("V4", "post"),))}),
        frozenset({Inst("V5")}),
    )


@MODEST
@given(sized(graphs()))
def test_no_single_version_strategy_costs_less(case: Sized) -> None:
    graph, sizes = case
    metric = LinearWork(graph, sizes)
    bound = pinned_work(sizes, multi_version(graph, sizes))
    assert bound <= min(map(metric.of, combined(graph, choices(graph))))


@MODEST
@given(sized(graphs()))
def test_it_costs_what_each_view_costs_alone(case: Sized) -> None:
    graph, sizes = case
    installs = sum(size.delta for size in sizes.values())
    computed = 0.0
    for view in graph.derived:
        alone = graph.alone(view)
        computed += LinearWork(alone, sizes, install=0).of(min_work_single(alone, sizes, view))
    assert pinned_work(sizes, multi_version(graph, sizes)) == computed + installs


@MODEST
@given(sized(graphs(most_derived=4)))
def test_there_is_one_term_for_each_edge_and_one_install_for_each_view(case: Sized) -> None:
    graph, sizes = case
    strategy = multi_version(graph, sizes)
    terms = [(step.view, step.delta.relation) for step in strategy if isinstance(step, PinnedComp)]
    assert Counter(terms) == Counter((view, source) for view in graph.views for source in graph.defined_on[view])
    assert Counter(step.view for step in strategy if isinstance(step, Inst)) == Counter(graph.views)


@MODEST
@given(sized(graphs(most_derived=4)))
def test_what_a_step_reads_is_there_by_its_stage(case: Sized) -> None:
    graph, sizes = case
    strategy = multi_version(graph, sizes)
    sets = pinned_stages(strategy)
    stage = {step: number for number, steps in enumerate(sets) for step in steps}
    assert stage.keys() == set(strategy)
    for step in strategy:
        computed = step.view if isinstance(step, Inst) else step.delta.relation
        needed = [stage[other] for other in strategy if isinstance(other, PinnedComp) and other.view == computed]
        if isinstance(step, PinnedComp):
            needed += [stage[Inst(at.relation)] for at in step.reads if at.state == "post"]
        assert stage[step] == max(needed, default=-1) + 1


def test_unchanged_sources_are_read_and_no_more() -> None:
    graph = CONFLICT.holding(["A"])
    strategy = multi_version(graph, SIZES_CONFLICT)
    assert list(map(str, strategy)) == [
        "Inst(B)",
        "Comp(W: ΔB(pre,post], A@post)",
        "Inst(W)",
        "Comp(X: ΔW(pre,post], A@post, B@pre)",
        "Comp(X: ΔB(pre,post], A@post, W@post)",
        "Inst(X)",
    ]
    assert [len(steps) for steps in pinned_stages(strategy)] == [2, 2, 1, 1]


def test_versions_need_fewer_stages_than_one_way_strategies_and_more_than_dual_stage() -> None:
    assert len(stages(FIGURE_3_11, min_work(FIGURE_3_11, SIZES_3_11))) == 6
    assert len(pinned_stages(multi_version(FIGURE_3_11, SIZES_3_11))) == 5
    assert len(stages(FIGURE_3_11, dual_stage(FIGURE_3_11))) == 3
