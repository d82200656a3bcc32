"""All correct strategies of a graph of views, for graphs that are small.

A strategy uses a view strategy for each view. A choice of them can be combined if its expression graph is acyclic; then
every topological sort is a strategy. All sorts of one choice cost the same, because they fix what each Comp reads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import product

from strandline.propagate.strategies.expression_graph import ExpressionGraph, graph_of
from strandline.propagate.strategies.expressions import Strategy
from strandline.propagate.strategies.graph import ViewGraph
from strandline.propagate.strategies.partitions import Blocks, Choice, one_way_partitions, ordered_partitions


def choices(graph: ViewGraph) -> Iterator[Choice]:
    """Every choice of a class of view strategies for each view, whether they can be combined or not."""
    return _choices(graph, ordered_partitions)


def one_way_choices(graph: ViewGraph) -> Iterator[Choice]:
    """Every choice of 1-way view strategies."""
    return _choices(graph, one_way_partitions)


def _choices(graph: ViewGraph, partitions: Callable[[Sequence[str]], Iterable[Blocks]]) -> Iterator[Choice]:
    views = [view for view in graph.changing if graph.defined_on[view]]
    for blocks in product(*(list(partitions(graph.changing_sources(view))) for view in views)):
        yield dict(zip(views, blocks, strict=True))


def combined(graph: ViewGraph, candidates: Iterable[Choice]) -> Iterator[Strategy]:
    """One strategy for each of *candidates* that can be combined."""
    for choice in candidates:
        strategy = graph_of(graph, choice, graph.views).sort()
        if strategy is not None:
            yield strategy


def correct_strategies(graph: ViewGraph) -> Iterator[Strategy]:
    """Every correct strategy of *graph*."""
    for choice in choices(graph):
        yield from every_sort(graph_of(graph, choice, graph.views))


def every_sort(expressions: ExpressionGraph) -> Iterator[Strategy]:
    """Every topological sort of an expression graph; none if it has a cycle."""
    places = {node: place for place, node in enumerate(expressions.nodes)}
    waits_for: list[set[int]] = [set() for _ in places]
    for edge in expressions.edges:
        waits_for[places[edge.after]].add(places[edge.before])
    for order in _extended((), waits_for):
        yield tuple(expressions.nodes[place] for place in order)


def _extended(begun: tuple[int, ...], waits_for: Sequence[set[int]]) -> Iterator[tuple[int, ...]]:
    if len(begun) == len(waits_for):
        yield begun
    for place, before in enumerate(waits_for):
        if place not in begun and before.issubset(begun):
            yield from _extended((*begun, place), waits_for)
