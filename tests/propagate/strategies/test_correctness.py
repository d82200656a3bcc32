"""Well-formedness and the conditions C1 to C8."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, combinations, permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strandline.propagate.strategies.correctness import is_correct, violations
from strandline.propagate.strategies.enumeration import correct_strategies
from strandline.propagate.strategies.expressions import Comp, Expression, Inst, Strategy, used, written
from strandline.propagate.strategies.graph import ViewGraph
from tests.propagate.strategies.figures import FIGURE_3_1, FIGURE_3_2, FIGURE_3_3, over, parsed
from tests.propagate.strategies.random_graphs import MODEST

SMALLEST_VIOLATIONS = [
    ("C1", over(2), "Comp(V,{V1}), Inst(V1), Inst(V2), Inst(V)"),
    ("C2", over(2), "Comp(V,{V1,V2}), Inst(V1), Inst(V)"),
    ("C3", over(2), "Inst(V1), Comp(V,{V1,V2}), Inst(V2), Inst(V)"),
    ("C4", over(2), "Comp(V,{V1}), Comp(V,{V2}), Inst(V1), Inst(V2), Inst(V)"),
    ("C5", over(2), "Comp(V,{V1}), Inst(V1), Inst(V), Comp(V,{V2}), Inst(V2)"),
    ("C6", over(2), "Comp(V,{V1,V2}), Inst(V1), Inst(V2), Inst(V), Inst(V)"),
    (
        "C8",
        FIGURE_3_3,
        "Comp(V5,{V4}), Comp(V4,{V2}), Inst(V2), Comp(V4,{V3}), Inst(V3), Inst(V4), Comp(V5,{V1}), Inst(V1), Inst(V5)",
    ),
    ("C4", over(3), "Comp(V,{V1,V2}), Inst(V2), Comp(V,{V1,V3}), Inst(V1), Inst(V3), Inst(V)"),
]

CORRECT = [
    (FIGURE_3_1, "Comp(V,{C,L,O}), Inst(C), Inst(O), Inst(L), Inst(V)"),
    (FIGURE_3_1, "Comp(V,{C}), Inst(C), Comp(V,{O}), Inst(O), Comp(V,{L}), Inst(L), Inst(V)"),
    (
        FIGURE_3_2,
        "Comp(V,{C,L,O}), Comp(V',{L}), Inst(L), Comp(V',{C,O}), Inst(C), Inst(O), Inst(V), Inst(V')",
    ),
    (
        FIGURE_3_3,
        "Comp(V4,{V2}), Inst(V2), Comp(V4,{V3}), Inst(V3), Comp(V5,{V4}), Inst(V4), Comp(V5,{V1}), Inst(V1), Inst(V5)",
    ),
]


@pytest.mark.parametrize(("condition", "graph", "text"), SMALLEST_VIOLATIONS)
def test_the_smallest_violation_breaks_one_condition(condition: str, graph: ViewGraph, text: str) -> None:
    found = violations(graph, parsed(text))
    assert {violation.condition for violation in found} == {condition}
    assert not is_correct(graph, parsed(text))


@pytest.mark.parametrize(("graph", "text"), CORRECT)
def test_the_strategies_of_the_literature_are_correct(graph: ViewGraph, text: str) -> None:
    strategy = parsed(text)
    assert written(strategy) == text
    assert violations(graph, strategy) == ()


@pytest.mark.parametrize(
    ("graph", "text", "says"),
    [
        (over(2), SMALLEST_VIOLATIONS[0][2], "C1, V: no Comp propagates the changes of V2"),
        (over(2), SMALLEST_VIOLATIONS[1][2], "C2, V2: there is no Inst(V2)"),
        (over(2), SMALLEST_VIOLATIONS[2][2], "C3, V: Inst(V1) is before Comp(V,{V1,V2})"),
        (over(2), SMALLEST_VIOLATIONS[3][2], "C4, V: Comp(V,{V1}) is before Comp(V,{V2}), and Inst(V1) is not"),
        (over(2), SMALLEST_VIOLATIONS[4][2], "C5, V: Inst(V) is before Comp(V,{V2})"),
        (over(2), SMALLEST_VIOLATIONS[5][2], "C6, V: Inst(V) occurs 2 times"),
        (FIGURE_3_3, SMALLEST_VIOLATIONS[6][2], "C8, V5: Comp(V5,{V4}) is before Comp(V4,{V2})"),
        (over(1), "Comp(V,{V1}), Inst(V1), Inst(V), Inst(W)", "form, W: Inst(W): the graph has no view W"),
        (over(1), "Comp(V1,{V1}), Comp(V,{V1}), Inst(V1), Inst(V)", "form, V1: Comp(V1,{V1}): V1 is a base view"),
        (over(1), "Comp(V,{}), Comp(V,{V1}), Inst(V1), Inst(V)", "form, V: Comp(V,{}) is over no view"),
        (over(1), "Comp(V,{V,V1}), Inst(V1), Inst(V)", "form, V: Comp(V,{V,V1}): V gets no changes of V"),
        (
            over(2).holding(["V2"]),
            "Comp(V,{V1}), Inst(V1), Inst(V2), Inst(V)",
            "form, V2: Inst(V2): V2 does not change",
        ),
    ],
)
def test_a_violation_says_what_is_wrong(graph: ViewGraph, text: str, says: str) -> None:
    assert str(violations(graph, parsed(text))[0]) == says


def test_a_strategy_uses_view_strategies() -> None:
    graph, text = CORRECT[3]
    strategy = parsed(text)
    assert written(used(graph, strategy, "V4")) == "Comp(V4,{V2}), Inst(V2), Comp(V4,{V3}), Inst(V3), Inst(V4)"
    assert written(used(graph, strategy, "V5")) == "Comp(V5,{V4}), Inst(V4), Comp(V5,{V1}), Inst(V1), Inst(V5)"
    assert written(used(graph, strategy, "V1")) == "Inst(V1)"
    for view in graph.derived:
        assert is_correct(graph.alone(view), used(graph, strategy, view))


def test_empty_deltas_are_neither_propagated_nor_installed() -> None:
    graph = over(2).holding(["V2"])
    assert is_correct(graph, parsed("Comp(V,{V1}), Inst(V1), Inst(V)"))
    assert not is_correct(graph, parsed("Comp(V,{V1,V2}), Inst(V1), Inst(V)"))
    assert is_correct(over(2).holding(["V1", "V2"]), ())


def expressions(graph: ViewGraph) -> list[Expression]:
    """Every well-formed expression."""
    comps = [
        Comp(view, frozenset(chosen))
        for view, sources in graph.defined_on.items()
        for size in range(1, len(sources) + 1)
        for chosen in combinations(sources, size)
    ]
    return [*comps, *map(Inst, graph.views)]


def arrangements(graph: ViewGraph, longest: int) -> Iterator[Strategy]:
    everything = expressions(graph)
    return chain.from_iterable(permutations(everything, length) for length in range(longest + 1))


@pytest.mark.parametrize(
    "graph", [over(1), over(2), ViewGraph({"V1": (), "V2": ("V1",), "V3": ("V2",)})], ids=["1", "2", "chain"]
)
def test_of_all_sequences_exactly_the_enumerated_ones_are_accepted(graph: ViewGraph) -> None:
    accepted = {strategy for strategy in arrangements(graph, len(expressions(graph))) if is_correct(graph, strategy)}
    assert accepted == set(correct_strategies(graph))


def test_of_all_sequences_over_three_views_with_the_expressions_of_a_strategy_66_are_accepted() -> None:
    graph = over(3)
    correct = set(correct_strategies(graph))
    accepted = {
        sequence
        for used_expressions in {frozenset(strategy) for strategy in correct}
        for sequence in permutations(used_expressions)
        if is_correct(graph, sequence)
    }
    assert accepted == correct
    assert len(accepted) == 66


STRATEGIES_3_3 = sorted(correct_strategies(FIGURE_3_3), key=written)
STRATEGIES_4 = sorted(correct_strategies(over(4)), key=written)


@st.composite
def nearly_correct(draw: st.DrawFn, graph: ViewGraph, correct: list[Strategy]) -> Strategy:
    """A correct strategy with a few expressions exchanged, dropped, put in or replaced."""
    sequence = list(draw(st.sampled_from(correct)))
    everything = expressions(graph)
    for _ in range(draw(st.integers(1, 3))):
        place, other = (draw(st.integers(0, len(sequence) - 1)) for _ in range(2))
        match draw(st.sampled_from(["exchange", "drop", "put in", "replace"])):
            case "exchange":
                sequence[place], sequence[other] = sequence[other], sequence[place]
            case "drop" if len(sequence) > 1:
                del sequence[place]
            case "put in":
                sequence.insert(place, draw(st.sampled_from(everything)))
            case _:
                sequence[place] = draw(st.sampled_from(everything))
    return tuple(sequence)


@MODEST
@given(nearly_correct(FIGURE_3_3, STRATEGIES_3_3))
def test_a_changed_strategy_of_a_graph_is_accepted_if_it_is_enumerated(strategy: Strategy) -> None:
    assert is_correct(FIGURE_3_3, strategy) == (strategy in set(STRATEGIES_3_3))


@MODEST
@given(nearly_correct(over(4), STRATEGIES_4))
def test_a_changed_strategy_of_a_view_is_accepted_if_it_is_enumerated(strategy: Strategy) -> None:
    assert is_correct(over(4), strategy) == (strategy in set(STRATEGIES_4))
