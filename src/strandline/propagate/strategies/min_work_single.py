"""MinWorkSingle (Algorithm 3.4.1): the best strategy for a view on its own.

It takes one source at a time, first those that shrink most. No strategy of the view costs less under the linear metric:
splitting a Comp never makes it dearer (Theorem 3.4.1), nor does exchanging neighbours whose growth is falling
(Theorem 3.4.2).
"""

from __future__ import annotations

from strandline.propagate.strategies.expressions import Strategy
from strandline.propagate.strategies.graph import ViewGraph
from strandline.propagate.strategies.orderings import by_growth
from strandline.propagate.strategies.partitions import one_way_blocks, view_strategy
from strandline.propagate.strategies.sizes import Sizes


def min_work_single(graph: ViewGraph, sizes: Sizes, view: str) -> Strategy:
    """An optimal view strategy for *view*."""
    return view_strategy(view, one_way_blocks(by_growth(graph.changing_sources(view), sizes)))
