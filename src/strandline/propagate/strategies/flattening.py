"""Flattening (section 8.1): a view is taken as if it were defined on what another view below it is defined on.

Then neither has to wait for the other's delta. It takes a definition that can be written without the view in between,
and it costs more in total: more sources, so more and larger terms.
"""

from __future__ import annotations

from dataclasses import replace

from strandline.propagate.strategies.graph import ViewGraph


def flatten(graph: ViewGraph, view: str, through: str) -> ViewGraph:
    """*graph* with *view* defined on the sources of *through* in place of *through* itself."""
    sources = dict.fromkeys(
        found
        for source in graph.defined_on[view]
        for found in (graph.defined_on[through] if source == through else (source,))
    )
    return replace(graph, defined_on={**graph.defined_on, view: tuple(sources)})


def flattened(graph: ViewGraph) -> ViewGraph:
    """*graph* with every derived view defined on base views."""
    for view in graph.bottom_up:
        for source in graph.defined_on[view]:
            if graph.defined_on[source]:
                graph = flatten(graph, view, source)
    return graph
