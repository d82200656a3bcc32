"""Random graphs of views with sizes, as Hypothesis strategies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from hypothesis import settings
from hypothesis import strategies as st

from strandline.propagate.strategies.graph import ViewGraph
from strandline.propagate.strategies.sizes import Size

MODEST = settings(max_examples=40, deadline=None, derandomize=True)


@st.composite
def sizes_of(draw: st.DrawFn) -> Size:
    before, deleted, inserted = draw(st.integers(0, 300)), draw(st.integers(0, 60)), draw(st.integers(0, 60))
    deleted = min(deleted, before)
    return Size(before, before - deleted + inserted, deleted + inserted)


@st.composite
def graphs(draw: st.DrawFn, most_derived: int = 3) -> ViewGraph:
    """Two or three base views, and derived views over at most three of all that are there."""
    views = {f"B{number}": () for number in range(draw(st.integers(2, 3)))}
    return _grown(draw, views, draw(st.integers(1, most_derived)))


def _grown(draw: st.DrawFn, base: Mapping[str, tuple[str, ...]], derived: int) -> ViewGraph:
    views = dict(base)
    for number in range(derived):
        views[f"D{number}"] = draw(_some(tuple(views)))
    return ViewGraph(views)


def _some(views: Sequence[str]) -> st.SearchStrategy[tuple[str, ...]]:
    return st.lists(st.sampled_from(views), min_size=1, max_size=3, unique=True).map(tuple)


@st.composite
def trees(draw: st.DrawFn) -> ViewGraph:
    """Graphs in which no view is used twice."""
    free = [f"B{number}" for number in range(draw(st.integers(2, 5)))]
    views: dict[str, tuple[str, ...]] = dict.fromkeys(free, ())
    for number in range(draw(st.integers(1, 3))):
        sources = draw(_some(tuple(free)))
        views[f"D{number}"] = sources
        free = [view for view in free if view not in sources] + [f"D{number}"]
    return ViewGraph(views)


@st.composite
def uniform_graphs(draw: st.DrawFn) -> ViewGraph:
    """Graphs in which each view is defined on views of the level just below."""
    below = tuple(f"L0{number}" for number in range(draw(st.integers(2, 3))))
    views: dict[str, tuple[str, ...]] = dict.fromkeys(below, ())
    for level in range(1, draw(st.integers(2, 3))):
        own = {f"L{level}{number}": draw(_some(below)) for number in range(draw(st.integers(1, 2)))}
        views |= own
        below = tuple(own)
    return ViewGraph(views)


Sized = tuple[ViewGraph, dict[str, Size]]


@st.composite
def sized(draw: st.DrawFn, graph: st.SearchStrategy[ViewGraph]) -> Sized:
    """A graph with sizes of its views."""
    found = draw(graph)
    return found, {view: draw(sizes_of()) for view in found.views}
