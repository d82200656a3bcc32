"""How many strategies there are, and which can be combined."""

from __future__ import annotations

from itertools import permutations
from math import factorial

import pytest
from hypothesis import given

from strandline.propagate.strategies.correctness import is_correct
from strandline.propagate.strategies.enumeration import (
    choices,
    combined,
    correct_strategies,
    every_sort,
    one_way_choices,
)
from strandline.propagate.strategies.expression_graph import graph_of
from strandline.propagate.strategies.expressions import Inst
from strandline.propagate.strategies.graph import ViewGraph
from strandline.propagate.strategies.one_way import is_one_way
from strandline.propagate.strategies.partitions import (
    choice_of,
    number_of_classes,
    number_of_sequences,
    one_way_blocks,
    one_way_partitions,
    ordered_partitions,
    view_strategy,
)
from tests.propagate.strategies.figures import CONFLICT, FIGURE_3_1, FIGURE_3_2, FIGURE_3_3, FIGURE_3_11, over
from tests.propagate.strategies.random_graphs import MODEST, graphs

CLASSES = {1: 1, 2: 3, 3: 13, 4: 75, 5: 541, 6: 4_683}
SEQUENCES = {1: 2, 2: 10, 3: 66, 4: 552, 5: 5_640, 6: 68_400}


@pytest.mark.parametrize("n", CLASSES)
def test_classes_of_view_strategies_are_those_of_table_3_1(n: int) -> None:
    views = over(n).defined_on["V"]
    found = set(ordered_partitions(views))
    assert len(found) == number_of_classes(n) == CLASSES[n]
    assert len(set(one_way_partitions(views))) == factorial(n)
    assert sum(number_of_sequences(blocks) for blocks in found) == SEQUENCES[n]


@pytest.mark.parametrize("n", SEQUENCES)
def test_every_sequence_of_every_class_is_enumerated_once(n: int) -> None:
    found = list(correct_strategies(over(n)))
    assert len(found) == SEQUENCES[n]
    assert sum(map(is_one_way, found)) == 2 * factorial(n)
    assert len(set(found[:10_000])) == len(found[:10_000])


@pytest.mark.parametrize("n", range(1, 6))
def test_dual_stage_strategies_install_in_any_order(n: int) -> None:
    graph = over(n)
    blocks = (frozenset(graph.defined_on["V"]),)
    found = list(every_sort(graph_of(graph, {"V": blocks}, graph.views)))
    assert len(found) == number_of_sequences(blocks) == factorial(n + 1)


def test_enumerated_view_strategies_are_correct() -> None:
    assert all(is_correct(over(4), strategy) for strategy in correct_strategies(over(4)))
    views = over(4).defined_on["V"]
    assert all(is_correct(over(4), view_strategy("V", blocks)) for blocks in ordered_partitions(views))


@MODEST
@given(graphs(most_derived=2))
def test_strategies_of_a_graph_are_correct_and_use_what_was_chosen(graph: ViewGraph) -> None:
    for choice in choices(graph):
        strategy = graph_of(graph, choice, graph.views).sort()
        if strategy is not None:
            assert is_correct(graph, strategy)
            assert choice_of(graph, strategy) == choice


def test_strategy_2_and_strategy_3_cannot_be_combined() -> None:
    one, other = (("C", "O", "L"), ("L", "CO"))
    choice = {"V": tuple(map(frozenset, one)), "V'": tuple(map(frozenset, other))}
    assert list(combined(FIGURE_3_2, [choice])) == []
    assert list(combined(FIGURE_3_2, [{**choice, "V": (frozenset("COL"),)}])) != []


@pytest.mark.parametrize(
    ("graph", "together", "feasible"),
    [(FIGURE_3_1, 13, 13), (FIGURE_3_2, 169, 73), (FIGURE_3_3, 9, 9), (FIGURE_3_11, 39, 31), (CONFLICT, 39, 21)],
    ids=["3.1", "3.2", "3.3", "3.11", "conflict"],
)
def test_some_view_strategies_cannot_be_combined(graph: ViewGraph, together: int, feasible: int) -> None:
    assert len(list(choices(graph))) == together
    assert len(list(combined(graph, choices(graph)))) == feasible


def test_every_choice_that_is_refused_has_no_strategy() -> None:
    """Example 3.1.2 for a smaller graph: all orders of its expressions are tried, the last two aside."""
    graph = ViewGraph({"A": (), "B": (), "V": ("A", "B"), "W": ("A", "B")})
    first, *_, opposite = (choice for choice in one_way_choices(graph) if choice["V"] == one_way_blocks("AB"))
    last = (Inst("V"), Inst("W"))
    tried = permutations(node for node in graph_of(graph, first, graph.views).nodes if node not in last)
    correct = [(*begun, *last) for begun in tried if is_correct(graph, (*begun, *last))]
    for choice in (first, opposite):
        found = {strategy for strategy in correct if choice_of(graph, strategy) == choice}
        sorts = every_sort(graph_of(graph, choice, graph.views))
        assert found == {strategy for strategy in sorts if strategy[-2:] == last}
        assert bool(found) == (choice["V"] == choice["W"])
