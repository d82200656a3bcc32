"""Dual-stage strategies: all changes are computed, each view's from all of its sources at once, then all are installed.

Every Comp has ``2^n - 1`` terms. It is the conventional strategy (propagate, then install), and the one with the fewest
expressions that wait for each other.
"""

from __future__ import annotations

from strandline.propagate.strategies.expressions import Comp, Inst, Strategy
from strandline.propagate.strategies.graph import ViewGraph


def dual_stage(graph: ViewGraph) -> Strategy:
    """The dual-stage strategy of *graph*."""
    comps = (Comp(view, frozenset(over)) for view in graph.bottom_up if (over := graph.changing_sources(view)))
    return (*comps, *map(Inst, graph.changing))
