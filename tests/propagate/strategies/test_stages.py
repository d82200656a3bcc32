"""What can run side by side, on one version of each table."""

from __future__ import annotations

import pytest
from hypothesis import given

from strandline.propagate.strategies.dual_stage import dual_stage
from strandline.propagate.strategies.expression_graph import construct_eg
from strandline.propagate.strategies.expressions import Strategy
from strandline.propagate.strategies.flattening import flatten, flattened
from strandline.propagate.strategies.graph import ViewGraph
from strandline.propagate.strategies.min_work import min_work
from strandline.propagate.strategies.stages import stages
from strandline.propagate.strategies.work import LinearWork
from tests.propagate.strategies.figures import FIGURE_3_3, FIGURE_3_11, SIZES_3_3, SIZES_3_11, parsed
from tests.propagate.strategies.random_graphs import MODEST, Sized, graphs, sized

FLAT = flatten(FIGURE_3_11, "V5", "V4")


def sort(graph: ViewGraph, *ordering: str) -> Strategy:
    found = construct_eg(graph, ordering).sort()
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("graph", "strategy", "expected"),
    [
        (
            FIGURE_3_3,
            min_work(FIGURE_3_3, SIZES_3_3),
            [
                "Comp(V4,{V2})",
                "Inst(V2)",
                "Comp(V4,{V3})",
                "Inst(V3), Comp(V5,{V4})",
                "Inst(V4)",
                "Comp(V5,{V1})",
                "Inst(V1), Inst(V5)",
            ],
        ),
        (
            FIGURE_3_3,
            dual_stage(FIGURE_3_3),
            ["Comp(V4,{V2,V3})", "Inst(V2), Inst(V3), Comp(V5,{V1,V4})", "Inst(V1), Inst(V4), Inst(V5)"],
        ),
        (
            FIGURE_3_11,
            sort(FIGURE_3_11, "V2", "V1", "V3", "V4", "V5"),
            [
                "Comp(V4,{V2}), Comp(V5,{V2})",
                "Inst(V2)",
                "Comp(V4,{V3}), Comp(V5,{V1})",
                "Inst(V1), Inst(V3)",
                "Comp(V5,{V4})",
                "Inst(V4), Inst(V5)",
            ],
        ),
        (
            FIGURE_3_11,
            dual_stage(FIGURE_3_11),
            ["Comp(V4,{V2,V3})", "Inst(V3), Comp(V5,{V1,V2,V4})", "Inst(V1), Inst(V2), Inst(V4), Inst(V5)"],
        ),
        (
            FLAT,
            dual_stage(FLAT),
            ["Comp(V4,{V2,V3}), Comp(V5,{V1,V2,V3})", "Inst(V1), Inst(V2), Inst(V3), Inst(V4), Inst(V5)"],
        ),
    ],
    ids=["3.3 MinWork", "3.3 dual-stage", "3.11 MinWork", "3.11 dual-stage", "3.11 flattened"],
)
def test_each_expression_stands_in_the_earliest_set(graph: ViewGraph, strategy: Strategy, expected: list[str]) -> None:
    assert stages(graph, strategy) == tuple(frozenset(parsed(stage)) for stage in expected)


def test_flattening_looks_through_a_view() -> None:
    assert FLAT.defined_on == {**FIGURE_3_11.defined_on, "V5": ("V1", "V2", "V3")}
    assert flattened(FIGURE_3_11) == FLAT
    chain = ViewGraph({"A": (), "B": ("A",), "C": ("B",), "D": ("C", "A")})
    assert flattened(chain).defined_on == {"A": (), "B": ("A",), "C": ("A",), "D": ("A",)}


def test_more_side_by_side_can_be_more_work() -> None:
    sequential, parallel = min_work(FIGURE_3_3, SIZES_3_3), dual_stage(FIGURE_3_3)
    assert len(stages(FIGURE_3_3, parallel)) < len(stages(FIGURE_3_3, sequential))
    metric = LinearWork(FIGURE_3_3, SIZES_3_3)
    assert metric.of(parallel) > metric.of(sequential)


@MODEST
@given(sized(graphs()))
def test_flattened_dual_stage_has_two_stages_and_the_order_of_stages_is_a_strategy(case: Sized) -> None:
    graph, sizes = case
    flat = flattened(graph)
    assert set(flat.levels.values()) == {0, 1}
    assert len(stages(flat, dual_stage(flat))) == 2
    strategy = min_work(graph, sizes)
    sets = stages(graph, strategy)
    assert sorted(map(str, strategy)) == sorted(str(step) for each in sets for step in each)


def test_sizes_of_figure_3_11_are_dearer_at_once() -> None:
    metric, flat = LinearWork(FIGURE_3_11, SIZES_3_11), LinearWork(FLAT, SIZES_3_11)
    assert metric.of(min_work(FIGURE_3_11, SIZES_3_11)) < metric.of(dual_stage(FIGURE_3_11))
    assert flat.of(dual_stage(FLAT)) < metric.of(dual_stage(FIGURE_3_11))
