"""Prune (Algorithm 3.6.2): the best 1-way strategy, found by trying orderings instead of strategies.

Every 1-way strategy is strongly consistent with one ordering, and all that are so with the same ordering cost the same
(Lemma 3.6.1, Theorem 3.6.1): one for each ordering is enough. When a view that no view is defined on is installed makes
no difference, so only the others are ordered. A strategy that is not 1-way may still cost less.
"""

from __future__ import annotations

from itertools import permutations

from strandline.propagate.strategies.expression_graph import construct_seg
from strandline.propagate.strategies.expressions import Strategy
from strandline.propagate.strategies.graph import ViewGraph
from strandline.propagate.strategies.sizes import Sizes
from strandline.propagate.strategies.work import LinearWork


def prune(graph: ViewGraph, sizes: Sizes) -> Strategy:
    """The 1-way strategy of *graph* with the least work, after m! expression graphs for m views below others."""
    metric = LinearWork(graph, sizes)
    last = tuple(view for view in graph.views if view not in graph.used)
    sorts = (construct_seg(graph, (*first, *last)).sort() for first in permutations(graph.used))
    return min((strategy for strategy in sorts if strategy is not None), key=metric.of)
