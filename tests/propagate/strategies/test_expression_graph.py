"""Expression graphs: edges, cycles, and for which orderings there are strategies."""

from __future__ import annotations

import re
from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strandline.propagate.strategies.correctness import is_correct, violations
from strandline.propagate.strategies.enumeration import correct_strategies, every_sort
from strandline.propagate.strategies.expression_graph import ExpressionGraph, construct_eg, construct_seg
from strandline.propagate.strategies.expressions import written
from strandline.propagate.strategies.graph import ViewGraph
from strandline.propagate.strategies.one_way import consistent, is_one_way, strongly_consistent
from strandline.propagate.strategies.orderings import Ordering
from tests.propagate.strategies.figures import FIGURE_3_3, FIGURE_3_11, TPC_D, over
from tests.propagate.strategies.random_graphs import MODEST, graphs, trees, uniform_graphs

DESIRED = ("V4", "V2", "V1", "V3", "V5")


def edges(graph: ExpressionGraph, *labels: str) -> set[str]:
    """Edges in short: ``I1->C(V5,V1)``."""
    return {
        re.sub(r"Inst\(V(\d)\)", r"I\1", re.sub(r"Comp\((\w+),{(\w+)}\)", r"C(\1,\2)", f"{edge.after}->{edge.before}"))
        for edge in graph.edges
        if edge.label in labels
    }


def test_the_graph_of_example_3_5_2() -> None:
    graph = construct_eg(FIGURE_3_3, DESIRED)
    assert (len(graph.nodes), len(graph.edges)) == (9, 14)
    assert edges(graph, "ordering") == {"C(V4,V3)->C(V4,V2)", "C(V5,V1)->C(V5,V4)"}
    assert edges(graph, "C3") == {"I1->C(V5,V1)", "I2->C(V4,V2)", "I3->C(V4,V3)", "I4->C(V5,V4)"}
    assert edges(graph, "C4") == {"C(V4,V3)->I2", "C(V5,V1)->I4"}
    assert edges(graph, "C5") == {"I4->C(V4,V2)", "I4->C(V4,V3)", "I5->C(V5,V1)", "I5->C(V5,V4)"}
    assert edges(graph, "C8") == {"C(V5,V4)->C(V4,V2)", "C(V5,V4)->C(V4,V3)"}


def test_the_sorts_of_example_3_5_2() -> None:
    graph = construct_eg(FIGURE_3_3, DESIRED)
    printed = graph.sort()
    assert printed is not None
    assert written(printed) == (
        "Comp(V4,{V2}), Inst(V2), Comp(V4,{V3}), Inst(V3), Comp(V5,{V4}), Inst(V4), Comp(V5,{V1}), Inst(V1), Inst(V5)"
    )
    assert consistent(FIGURE_3_3, printed, DESIRED)
    assert not strongly_consistent(printed, DESIRED)
    sorts = list(every_sort(graph))
    assert len(sorts) == len(set(sorts)) == 12
    assert printed in sorts


def test_the_graph_of_figure_a_1_and_its_cycle() -> None:
    graph = construct_eg(FIGURE_3_11, DESIRED)
    assert edges(graph, "C3") == {"I1->C(V5,V1)", "I2->C(V4,V2)", "I2->C(V5,V2)", "I3->C(V4,V3)", "I4->C(V5,V4)"}
    assert edges(graph, "C4") == {"C(V4,V3)->I2", "C(V5,V1)->I2", "C(V5,V1)->I4", "C(V5,V2)->I4"}
    assert edges(graph, "C8") == {"C(V5,V4)->C(V4,V2)", "C(V5,V4)->C(V4,V3)"}
    assert graph.sort() is None
    essential = ExpressionGraph(graph.nodes, tuple(e for e in graph.edges if e.label in ("C3", "C4", "C8")))
    assert {str(edge) for edge in essential.cycle()} == {
        "Comp(V5,{V4}) -C8-> Comp(V4,{V3})",
        "Comp(V4,{V3}) -C4-> Inst(V2)",
        "Inst(V2) -C3-> Comp(V5,{V2})",
        "Comp(V5,{V2}) -C4-> Inst(V4)",
        "Inst(V4) -C3-> Comp(V5,{V4})",
    }


def test_an_ordering_of_figure_3_11_has_no_strategy() -> None:
    ordering = ("V4", "V1", "V2", "V3", "V5")
    assert construct_seg(FIGURE_3_11, ordering).sort() is None
    assert construct_eg(FIGURE_3_11, ordering).sort() is None
    one_way = [strategy for strategy in correct_strategies(FIGURE_3_11) if is_one_way(strategy)]
    assert one_way
    assert not any(strongly_consistent(strategy, ordering) for strategy in one_way)


def test_the_strong_graph_as_printed_would_break_c4() -> None:
    """Without the edges between Comps and those of C4 a sort is possible that the correct graph refuses."""
    graph = over(2)
    strong = construct_seg(graph, ("V1", "V2", "V"))
    printed = ExpressionGraph(strong.nodes, tuple(e for e in strong.edges if e.label not in ("ordering", "C4")))
    wrong = [strategy for strategy in every_sort(printed) if not is_correct(graph, strategy)]
    assert "Comp(V,{V1}), Comp(V,{V2}), Inst(V1), Inst(V2), Inst(V)" in map(written, wrong)
    assert {violation.condition for strategy in wrong for violation in violations(graph, strategy)} == {"C4"}
    strong = construct_seg(FIGURE_3_11, ("V4", "V1", "V2", "V3", "V5"))
    printed = ExpressionGraph(strong.nodes, tuple(e for e in strong.edges if e.label not in ("ordering", "C4")))
    assert printed.acyclic
    assert not strong.acyclic


def before(ordering: Ordering, *views: str) -> bool:
    return [view for view in ordering if view in views] == list(views)


def test_which_orderings_of_figure_3_3_have_strategies() -> None:
    orderings = list(permutations(FIGURE_3_3.views))
    assert all(construct_eg(FIGURE_3_3, ordering).acyclic for ordering in orderings)
    assert sum(construct_seg(FIGURE_3_3, ordering).acyclic for ordering in orderings) == 44
    used = [(*first, "V5") for first in permutations(FIGURE_3_3.used)]
    strong = [ordering for ordering in used if construct_seg(FIGURE_3_3, ordering).acyclic]
    assert len(strong) == 16
    assert strong == [o for o in used if not (before(o, "V4", "V2") and before(o, "V4", "V3"))]


def test_which_orderings_of_figure_3_11_have_strategies() -> None:
    orderings = list(permutations(FIGURE_3_11.views))
    cyclic = [ordering for ordering in orderings if not construct_eg(FIGURE_3_11, ordering).acyclic]
    assert len(cyclic) == 20
    assert cyclic == [ordering for ordering in orderings if before(ordering, "V4", "V2", "V3")]
    assert sum(construct_seg(FIGURE_3_11, ordering).acyclic for ordering in orderings) == 38
    used = [(*first, "V5") for first in permutations(FIGURE_3_11.used)]
    assert sum(construct_seg(FIGURE_3_11, ordering).acyclic for ordering in used) == 16


@MODEST
@given(graphs(), st.data())
def test_sorts_are_correct_and_follow_the_ordering(graph: ViewGraph, data: st.DataObject) -> None:
    ordering = tuple(data.draw(st.permutations(graph.views)))
    weak, strong = construct_eg(graph, ordering).sort(), construct_seg(graph, ordering).sort()
    if weak is not None:
        assert is_correct(graph, weak)
        assert consistent(graph, weak, ordering)
    if strong is not None:
        assert is_correct(graph, strong)
        assert consistent(graph, strong, ordering)
        assert strongly_consistent(strong, ordering)


@pytest.mark.parametrize("graph", [over(2), FIGURE_3_3], ids=["one view", "3.3"])
def test_sorts_are_all_strategies_that_follow_the_ordering(graph: ViewGraph) -> None:
    one_way = [strategy for strategy in correct_strategies(graph) if is_one_way(strategy)]
    for ordering in list(permutations(graph.views))[::5]:
        weak, strong = construct_eg(graph, ordering), construct_seg(graph, ordering)
        assert set(every_sort(weak)) == {s for s in one_way if consistent(graph, s, ordering)}
        assert set(every_sort(strong)) == {s for s in one_way if strongly_consistent(s, ordering)}


@MODEST
@given(trees() | uniform_graphs(), st.data())
def test_trees_and_uniform_graphs_have_strategies_for_every_ordering(graph: ViewGraph, data: st.DataObject) -> None:
    """Lemmas 3.5.1 and 3.5.2."""
    assert construct_eg(graph, tuple(data.draw(st.permutations(graph.views)))).acyclic


@MODEST
@given(graphs(most_derived=4), st.data())
def test_cycles_mix_c8_with_pairs_of_c4_and_c3(graph: ViewGraph, data: st.DataObject) -> None:
    found = construct_eg(graph, tuple(data.draw(st.permutations(graph.views))))
    essential = ExpressionGraph(found.nodes, tuple(e for e in found.edges if e.label in ("C3", "C4", "C8")))
    assert essential.acyclic == found.acyclic
    labels = " ".join(edge.label for edge in essential.cycle())
    assert bool(labels) == (not found.acyclic)
    if labels:
        assert "C8" in labels
        assert re.search("C8 (.* )?C4 C3", f"{labels} {labels} ")


def test_the_graph_of_tpc_d_has_22_expressions() -> None:
    assert len(construct_eg(TPC_D, TPC_D.views).nodes) == 22
