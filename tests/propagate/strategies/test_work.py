"""The linear work metric."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strandline.propagate.strategies.dual_stage import dual_stage
from strandline.propagate.strategies.enumeration import choices, every_sort
from strandline.propagate.strategies.expression_graph import graph_of
from strandline.propagate.strategies.expressions import Comp, comp
from strandline.propagate.strategies.graph import ViewGraph
from strandline.propagate.strategies.sizes import Size
from strandline.propagate.strategies.work import LinearWork
from tests.propagate.strategies.figures import FIGURE_3_3, SIZES_3_3, over, parsed
from tests.propagate.strategies.random_graphs import MODEST, Sized, graphs, sized

TWO = ViewGraph({"V2": (), "V3": (), "V4": ("V2", "V3")})
EXAMPLE_3_4_1 = LinearWork(TWO, {"V2": Size.growing(100, 10), "V3": Size.growing(1_000, -50), "V4": Size(500, 500, 30)})


def test_a_comp_costs_the_operands_of_its_terms() -> None:
    """Example 3.3.2."""
    v2, v3 = 100, 1_000
    assert EXAMPLE_3_4_1.operands(comp("V4", "V2"), ()) == 10 + v3
    assert EXAMPLE_3_4_1.operands(comp("V4", "V2", "V3"), ()) == (10 + v3) + (v2 + 50) + (10 + 50)
    assert EXAMPLE_3_4_1.by_step(parsed("Inst(V4)")) == (30,)


@pytest.mark.parametrize(
    ("strategy", "computed", "total"),
    [
        ("Comp(V4,{V2}), Inst(V2), Comp(V4,{V3}), Inst(V3), Inst(V4)", (1_010, 160), 1_260),
        ("Comp(V4,{V3}), Inst(V3), Comp(V4,{V2}), Inst(V2), Inst(V4)", (150, 960), 1_200),
        ("Comp(V4,{V2,V3}), Inst(V2), Inst(V3), Inst(V4)", (1_220,), 1_310),
    ],
)
def test_the_order_of_expressions_decides_what_a_comp_reads(
    strategy: str, computed: tuple[int, ...], total: int
) -> None:
    """Example 3.4.1, with numbers."""
    steps = parsed(strategy)
    work = EXAMPLE_3_4_1.by_step(steps)
    assert tuple(cost for step, cost in zip(steps, work, strict=True) if isinstance(step, Comp)) == computed
    assert EXAMPLE_3_4_1.of(steps) == total


@MODEST
@given(sized(st.integers(1, 5).map(over)))
def test_a_comp_costs_as_much_as_its_terms_written_out(case: Sized) -> None:
    graph, sizes = case
    sources = graph.defined_on["V"]
    for chosen in product((False, True), repeat=len(sources)):
        changed = [source for source, own in zip(sources, chosen, strict=True) if own]
        if not changed:
            continue
        installed = [source for source in sources if source not in changed][:1]
        current = {source: sizes[source].after if source in installed else sizes[source].before for source in sources}
        expected = 0
        for deltas in product((False, True), repeat=len(changed)):
            as_delta = {source for source, own in zip(changed, deltas, strict=True) if own}
            if as_delta:
                expected += sum(sizes[s].delta if s in as_delta else current[s] for s in sources)
        assert LinearWork(graph, sizes).operands(comp("V", *changed), installed) == expected


@MODEST
@given(sized(st.integers(1, 6).map(over)))
def test_dual_stage_costs_what_the_formula_says(case: Sized) -> None:
    graph, sizes = case
    half = 2 ** (len(graph.defined_on["V"]) - 1)
    computing = sum(half * sizes[view].delta + (half - 1) * sizes[view].before for view in graph.defined_on["V"])
    assert LinearWork(graph, sizes).of(dual_stage(graph)) == computing + sum(size.delta for size in sizes.values())


@MODEST
@given(sized(graphs(most_derived=2)))
def test_all_sequences_of_one_choice_cost_the_same(case: Sized) -> None:
    graph, sizes = case
    metric = LinearWork(graph, sizes)
    for choice in list(choices(graph))[::7]:
        sorts = every_sort(graph_of(graph, choice, graph.views))
        assert len({metric.of(strategy) for strategy, _ in zip(sorts, range(20), strict=False)}) <= 1


def test_constants_weigh_computing_and_installing() -> None:
    strategy = dual_stage(FIGURE_3_3)
    assert LinearWork(FIGURE_3_3, SIZES_3_3).of(strategy) == 840 + 5_620 + 405
    assert LinearWork(FIGURE_3_3, SIZES_3_3, compute=2, install=3).of(strategy) == 2 * (840 + 5_620) + 3 * 405
