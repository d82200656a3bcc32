"""What can run side by side (section 8.1): a strategy as a sequence of sets.

Each expression stands in the earliest set that what it waits for allows.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from typing import TypeVar

from strandline.propagate.strategies.expression_graph import graph_of
from strandline.propagate.strategies.expressions import Expression, Strategy
from strandline.propagate.strategies.graph import ViewGraph
from strandline.propagate.strategies.partitions import choice_of

Step = TypeVar("Step", bound=Hashable)


def stages(graph: ViewGraph, strategy: Strategy) -> tuple[frozenset[Expression], ...]:
    """The expressions of a correct *strategy*, on a store that keeps one version of a table."""
    waits_for: dict[Expression, set[Expression]] = {expression: set() for expression in strategy}
    for edge in graph_of(graph, choice_of(graph, strategy), graph.views).edges:
        waits_for[edge.after].add(edge.before)
    return earliest(waits_for)


def earliest(waits_for: Mapping[Step, Iterable[Step]]) -> tuple[frozenset[Step], ...]:
    """Steps by the number of steps, one after another, that have to precede them.

    Each step is listed after those that it waits for.
    """
    stage: dict[Step, int] = {}
    for step, before in waits_for.items():
        stage[step] = max((stage[each] + 1 for each in before), default=0)
    return tuple(
        frozenset(step for step, own in stage.items() if own == number)
        for number in range(max(stage.values(), default=-1) + 1)
    )
