"""MinWorkSingle is optimal over all strategies of a view."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from strandline.propagate.strategies.correctness import is_correct
from strandline.propagate.strategies.expressions import written
from strandline.propagate.strategies.min_work_single import min_work_single
from strandline.propagate.strategies.one_way import consistent
from strandline.propagate.strategies.orderings import by_growth
from strandline.propagate.strategies.partitions import one_way_blocks, ordered_partitions, view_strategy
from strandline.propagate.strategies.work import LinearWork
from tests.propagate.strategies.figures import FIGURE_3_3, SIZES_3_3, over
from tests.propagate.strategies.random_graphs import MODEST, Sized, sized


@MODEST
@given(sized(st.integers(1, 5).map(over)))
def test_no_strategy_of_a_view_costs_less(case: Sized) -> None:
    graph, sizes = case
    metric = LinearWork(graph, sizes)
    found = min_work_single(graph, sizes, "V")
    assert is_correct(graph, found)
    everything = (view_strategy("V", blocks) for blocks in ordered_partitions(graph.defined_on["V"]))
    assert metric.of(found) == min(map(metric.of, everything))


def test_it_follows_the_growth_of_the_sources() -> None:
    found = min_work_single(FIGURE_3_3, SIZES_3_3, "V5")
    assert written(found) == "Comp(V5,{V4}), Inst(V4), Comp(V5,{V1}), Inst(V1), Inst(V5)"
    assert consistent(FIGURE_3_3.alone("V5"), found, ("V4", "V2", "V1", "V3", "V5"))


def test_sources_that_do_not_change_are_left_out() -> None:
    found = min_work_single(FIGURE_3_3.holding(["V1"]), SIZES_3_3, "V5")
    assert written(found) == "Comp(V5,{V4}), Inst(V4), Inst(V5)"


@MODEST
@given(sized(st.integers(2, 5).map(over)), st.data())
def test_splitting_a_comp_is_never_dearer(case: Sized, data: st.DataObject) -> None:
    """The *separator* step of Theorem 3.4.1."""
    graph, sizes = case
    sources = graph.defined_on["V"]
    whole = data.draw(st.sets(st.sampled_from(sources), min_size=2))
    first = data.draw(st.sets(st.sampled_from(sorted(whole)), min_size=1, max_size=len(whole) - 1))
    rest = one_way_blocks([source for source in sources if source not in whole])
    metric = LinearWork(graph, sizes)
    together = metric.of(view_strategy("V", (frozenset(whole), *rest)))
    split = metric.of(view_strategy("V", (frozenset(first), frozenset(whole - first), *rest)))
    assert split <= together


@MODEST
@given(sized(st.integers(2, 5).map(over)), st.data())
def test_exchanging_neighbours_by_growth_is_never_dearer(case: Sized, data: st.DataObject) -> None:
    """The *swap* step of Theorem 3.4.2."""
    graph, sizes = case
    order = data.draw(st.permutations(graph.defined_on["V"]))
    place = data.draw(st.integers(0, len(order) - 2))
    metric = LinearWork(graph, sizes)
    exchanged = [*order[:place], *by_growth(order[place : place + 2], sizes), *order[place + 2 :]]
    before, after = (metric.of(view_strategy("V", one_way_blocks(views))) for views in (order, exchanged))
    assert after <= before
