"""View orderings: in which order views would best be installed (sections 3.4 and 3.5)."""

from __future__ import annotations

from collections.abc import Iterable

from strandline.propagate.strategies.graph import ViewGraph
from strandline.propagate.strategies.sizes import Sizes

Ordering = tuple[str, ...]


def by_growth(views: Iterable[str], sizes: Sizes) -> Ordering:
    """*views* by ``|V'| - |V|``, increasing; equal ones stay as they were.

    A view that shrinks is cheaper to read once its delta is installed, one that grows is cheaper before.
    """
    return tuple(sorted(views, key=lambda view: sizes[view].growth))


def desired_ordering(graph: ViewGraph, sizes: Sizes) -> Ordering:
    """All views of *graph* by growth: a 1-way strategy consistent with it is optimal (Theorem 3.5.2)."""
    return by_growth(graph.views, sizes)


def modify_ordering(graph: ViewGraph, ordering: Ordering) -> Ordering:
    """ModifyOrdering (Algorithm 3.5.2): by level; views of one level stay in the order of *ordering*."""
    return tuple(sorted(ordering, key=lambda view: graph.levels[view]))
