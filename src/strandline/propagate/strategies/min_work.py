"""MinWork (Algorithm 3.5.1): the 1-way strategy that follows the desired ordering of all views, if there is one.

It is optimal over all strategies of the graph if the expression graph of that ordering is acyclic (Theorem 3.5.4), as
it always is for trees and uniform graphs. Otherwise the ordering is modified by level, which always works
(Theorem 3.5.5) and may cost more than need be.
"""

from __future__ import annotations

from strandline.propagate.strategies.expressions import Strategy
from strandline.propagate.strategies.graph import ViewGraph
from strandline.propagate.strategies.one_way import one_way
from strandline.propagate.strategies.orderings import desired_ordering, modify_ordering
from strandline.propagate.strategies.sizes import Sizes


def min_work(graph: ViewGraph, sizes: Sizes) -> Strategy:
    """The MinWork strategy of *graph*."""
    ordering = desired_ordering(graph, sizes)
    strategy = one_way(graph, ordering)
    if strategy is None:
        strategy = one_way(graph, modify_ordering(graph, ordering))
    assert strategy is not None, "an ordering by level has an acyclic expression graph"
    return strategy
