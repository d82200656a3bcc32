"""Graphs of views as strategies see them."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given

from strandline.catalog import ViewRecord
from strandline.errors import RefreshError, SqlError
from strandline.propagate.strategies.graph import ViewGraph
from strandline.propagate.strategies.sizes import Size
from strandline.propagate.vdag import Vdag
from strandline.store.node import Node
from tests.propagate.strategies.figures import FIGURE_3_3, FIGURE_3_11, TPC_D
from tests.propagate.strategies.random_graphs import MODEST, trees, uniform_graphs


def node(name: str, *inputs: str) -> Node:
    created = datetime(2026, 1, 1, tzinfo=UTC)
    return Node(ViewRecord(1, name, "view", "", {}, None, "", (), inputs, "", None, created), None, None, "/nowhere")


def test_leaves_of_a_warehouse_are_base_views() -> None:
    vdag = Vdag([node("best", "revenue"), node("revenue", "lake.orders", "lake.customers")])
    assert ViewGraph.of(vdag) == ViewGraph(
        {"lake.orders": (), "lake.customers": (), "revenue": ("lake.orders", "lake.customers"), "best": ("revenue",)}
    )


def test_levels_are_longest_ways_to_a_base_view() -> None:
    assert FIGURE_3_3.levels == {"V1": 0, "V2": 0, "V3": 0, "V4": 1, "V5": 2}


def test_trees_and_uniform_graphs_are_told_apart() -> None:
    assert (FIGURE_3_3.is_tree, FIGURE_3_3.is_uniform) == (True, False)
    assert (TPC_D.is_tree, TPC_D.is_uniform) == (False, True)
    assert (FIGURE_3_11.is_tree, FIGURE_3_11.is_uniform) == (False, False)


@MODEST
@given(trees())
def test_drawn_trees_are_trees(graph: ViewGraph) -> None:
    assert graph.is_tree


@MODEST
@given(uniform_graphs())
def test_drawn_uniform_graphs_are_uniform(graph: ViewGraph) -> None:
    assert graph.is_uniform


def test_views_that_others_are_defined_on_are_used() -> None:
    assert FIGURE_3_3.used == ("V1", "V2", "V3", "V4")
    assert TPC_D.used == ("C", "O", "L", "S", "N", "R")


def test_what_is_defined_on_unchanged_views_alone_does_not_change() -> None:
    graph = FIGURE_3_3.holding(["V2", "V3"])
    assert graph.still == {"V2", "V3", "V4"}
    assert graph.changing == ("V1", "V5")
    assert graph.changing_sources("V5") == ("V1",)
    assert graph.changing_sources("V4") == ()


def test_a_view_alone_is_over_base_views() -> None:
    assert FIGURE_3_3.alone("V5") == ViewGraph({"V1": (), "V4": (), "V5": ("V1", "V4")})
    assert FIGURE_3_3.holding(["V2", "V3"]).alone("V5").still == {"V4"}


def test_a_graph_lists_all_its_views_and_has_no_circle() -> None:
    with pytest.raises(RefreshError, match=r"\[STRATEGY_GRAPH\] T is no view of the graph; it has V"):
        ViewGraph({"V": ("T",)})
    with pytest.raises(RefreshError, match=r"\[STRATEGY_GRAPH\] X is no view"):
        FIGURE_3_3.holding(["X"])
    with pytest.raises(RefreshError, match=r"\[STRATEGY_GRAPH\] V is defined on T, T"):
        ViewGraph({"T": (), "V": ("T", "T")})
    with pytest.raises(SqlError, match="CYCLIC_VIEWS"):
        ViewGraph({"V": ("W",), "W": ("V",)})


def test_a_delta_has_at_least_the_rows_that_come_or_go() -> None:
    assert Size(100, 90, 10).growth == -10
    assert Size.growing(100, -10) == Size(100, 90, 10)
    with pytest.raises(RefreshError, match=r"\[STRATEGY_SIZE\] 9 changed rows cannot make 90 rows of 100"):
        Size(100, 90, 9)
    with pytest.raises(RefreshError, match=r"\[STRATEGY_SIZE\]"):
        Size(5, -1, 6)
