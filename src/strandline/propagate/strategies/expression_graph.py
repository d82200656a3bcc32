"""Expression graphs: which expression has to wait for which (sections 3.5.2 and 3.6).

An edge a -> b says that a comes after b. The graph of an ordering has one Comp for each edge of the VDAG; its
topological sorts are the 1-way strategies consistent with the ordering. The *strong* graph asks besides that all Insts
follow the ordering. (ConstructSEG as printed leaves out the edges between Comps, and with them those of C4; then a sort
can break C4, and the ordering of Figure 3.11 that has no strongly consistent strategy would have one.)

The same edges hold for any choice of view strategies, with blocks of views in place of single ones.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from heapq import heapify, heappop, heappush
from itertools import combinations
from typing import Literal

from strandline.propagate.strategies.expressions import Comp, Expression, Inst, Strategy
from strandline.propagate.strategies.graph import ViewGraph
from strandline.propagate.strategies.orderings import Ordering
from strandline.propagate.strategies.partitions import Choice, one_way_blocks

Label = Literal["ordering", "C3", "C4", "C5", "C8", "strong"]


@dataclass(frozen=True)
class Edge:
    """*after* has to wait for *before*, because of *label*."""

    after: Expression
    before: Expression
    label: Label

    def __str__(self) -> str:
        return f"{self.after} -{self.label}-> {self.before}"


@dataclass(frozen=True)
class ExpressionGraph:
    """Expressions and what each waits for. Of those that are ready, a sort takes the first in the order of *nodes*."""

    nodes: tuple[Expression, ...]
    edges: tuple[Edge, ...]

    @property
    def acyclic(self) -> bool:
        return len(self._sorted) == len(self.nodes)

    def sort(self) -> Strategy | None:
        """A topological sort, or None if there is a cycle."""
        return self._sorted if self.acyclic else None

    @cached_property
    def _sorted(self) -> Strategy:
        """As much of a topological sort as there is."""
        places = {node: place for place, node in enumerate(self.nodes)}
        waits_for = dict.fromkeys(self.nodes, 0)
        waiting: dict[Expression, list[Expression]] = {node: [] for node in self.nodes}
        for edge in self.edges:
            waits_for[edge.after] += 1
            waiting[edge.before].append(edge.after)
        ready = [places[node] for node, count in waits_for.items() if not count]
        heapify(ready)
        found: list[Expression] = []
        while ready:
            found.append(self.nodes[heappop(ready)])
            for node in waiting[found[-1]]:
                waits_for[node] -= 1
                if not waits_for[node]:
                    heappush(ready, places[node])
        return tuple(found)

    def cycle(self) -> tuple[Edge, ...]:
        """Edges in a circle, each beginning where the one before it ends; none if the graph is acyclic."""
        stuck = set(self.nodes) - set(self._sorted)
        onward = {edge.after: edge for edge in self.edges if {edge.after, edge.before} <= stuck}
        way: dict[Expression, Edge] = {}
        node = next((node for node in self.nodes if node in stuck), None)
        while node is not None and node not in way:
            way[node] = onward[node]
            node = onward[node].before
        circle = list(way.values())
        return tuple(circle[[edge.after for edge in circle].index(node) :]) if node is not None else ()


def construct_eg(graph: ViewGraph, ordering: Ordering) -> ExpressionGraph:
    """ConstructEG (Algorithm 3.5.3): its sorts are the 1-way strategies consistent with *ordering*."""
    return graph_of(graph, _one_way_choice(graph, ordering), ordering)


def construct_seg(graph: ViewGraph, ordering: Ordering) -> ExpressionGraph:
    """ConstructSEG (Algorithm 3.6.1): its sorts are the 1-way strategies strongly consistent with *ordering*."""
    weak = construct_eg(graph, ordering)
    installs = [Inst(view) for view in ordering if view in graph.changing]
    strong = (Edge(later, earlier, "strong") for earlier, later in combinations(installs, 2))
    return ExpressionGraph(weak.nodes, (*weak.edges, *strong))


def graph_of(graph: ViewGraph, choice: Choice, ordering: Ordering) -> ExpressionGraph:
    """The expressions of a *choice* of view strategies: its sorts are the strategies of *graph* that use them.

    Of ready expressions an Inst comes first, by *ordering*, then the Comp whose first source is first in *ordering*.
    """
    declared = {view: place for place, view in enumerate(graph.views)}
    ranked = {view: place for place, view in enumerate(ordering)}
    installs = sorted(map(Inst, graph.changing), key=lambda inst: ranked[inst.view])
    comps = sorted(
        (Comp(view, block) for view, blocks in choice.items() for block in blocks),
        key=lambda comp: (min(ranked[source] for source in comp.over), declared[comp.view]),
    )
    return ExpressionGraph((*installs, *comps), tuple(_edges(choice)))


def _one_way_choice(graph: ViewGraph, ordering: Ordering) -> Choice:
    return {
        view: one_way_blocks(sorted(graph.changing_sources(view), key=ordering.index))
        for view in graph.changing
        if graph.defined_on[view]
    }


def _edges(choice: Choice) -> Iterator[Edge]:
    for view, blocks in choice.items():
        comps = [Comp(view, block) for block in blocks]
        for comp in comps:
            for source in sorted(comp.over):
                yield Edge(Inst(source), comp, "C3")
                for below in choice.get(source, ()):
                    yield Edge(comp, Comp(source, below), "C8")
            yield Edge(Inst(view), comp, "C5")
        for earlier, later in combinations(comps, 2):
            yield Edge(later, earlier, "ordering")
            for source in sorted(earlier.over):
                yield Edge(later, Inst(source), "C4")
