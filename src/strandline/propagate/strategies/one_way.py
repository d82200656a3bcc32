"""1-way strategies: the changes of one source at a time, and orderings of views that they follow (sections 3.4 to 3.6).

All of a graph have the same expressions: a Comp with a single term for each edge, and an Inst for each view.
"""

from __future__ import annotations

from strandline.propagate.strategies.expression_graph import construct_eg
from strandline.propagate.strategies.expressions import Comp, Inst, Strategy, used
from strandline.propagate.strategies.graph import ViewGraph
from strandline.propagate.strategies.orderings import Ordering


def one_way(graph: ViewGraph, ordering: Ordering) -> Strategy | None:
    """A 1-way strategy consistent with *ordering*, or None if there is none."""
    return construct_eg(graph, ordering).sort()


def is_one_way(strategy: Strategy) -> bool:
    """Whether every Comp propagates the changes of one view."""
    return all(len(expression.over) == 1 for expression in strategy if isinstance(expression, Comp))


def consistent(graph: ViewGraph, strategy: Strategy, ordering: Ordering) -> bool:
    """Whether *strategy* is 1-way, and for each view the Insts of what it is defined on follow *ordering*."""
    return is_one_way(strategy) and all(
        _follows(_installs(used(graph, strategy, view), set(graph.defined_on[view])), ordering)
        for view in graph.derived
    )


def strongly_consistent(strategy: Strategy, ordering: Ordering) -> bool:
    """Whether *strategy* is 1-way, and all its Insts follow *ordering*."""
    return is_one_way(strategy) and _follows(_installs(strategy, set(ordering)), ordering)


def _installs(strategy: Strategy, views: set[str]) -> list[str]:
    return [step.view for step in strategy if isinstance(step, Inst) and step.view in views]


def _follows(views: list[str], ordering: Ordering) -> bool:
    places = [ordering.index(view) for view in views]
    return places == sorted(places)
