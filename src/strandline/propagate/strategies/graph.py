"""The VDAG as strategies see it: views, and the views that each is defined on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from strandline.errors import RefreshError
from strandline.propagate.vdag import Vdag, sorted_by_inputs


@dataclass(frozen=True)
class ViewGraph:
    """For each view, in the order of declaration, what it is defined on: ``src(V)``, empty for a base view.

    Views that are *unchanged* have empty deltas, which are neither propagated nor installed (footnote 5). They are
    still read.
    """

    defined_on: Mapping[str, tuple[str, ...]]
    unchanged: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        read = {source for sources in self.defined_on.values() for source in sources}
        if unknown := (read | self.unchanged) - self.defined_on.keys():
            raise RefreshError(
                "STRATEGY_GRAPH",
                f"{_listed(unknown)} is no view of the graph; it has {_listed(self.defined_on)}; list base views too.",
            )
        for view, sources in self.defined_on.items():
            if len(set(sources)) < len(sources):
                raise RefreshError(
                    "STRATEGY_GRAPH",
                    f"{view} is defined on {', '.join(sources)}; a view that it reads twice is one edge: name it once.",
                )
        sorted_by_inputs(self.defined_on)

    @classmethod
    def of(cls, vdag: Vdag) -> ViewGraph:
        """The nodes of a warehouse over its leaves, which are the base views."""
        leaves = dict.fromkeys(vdag.leaves(), ())
        return cls({**leaves, **{name: tuple(dict.fromkeys(node.inputs)) for name, node in vdag.nodes.items()}})

    def alone(self, view: str) -> ViewGraph:
        """*view* over what it is defined on, as if those were base views: its strategies are view strategies."""
        sources = self.defined_on[view]
        return ViewGraph({**dict.fromkeys(sources, ()), view: sources}, self.still & {view, *sources})

    def holding(self, views: Iterable[str]) -> ViewGraph:
        """The graph if *views* do not change either."""
        return replace(self, unchanged=self.unchanged | frozenset(views))

    @property
    def views(self) -> tuple[str, ...]:
        return tuple(self.defined_on)

    @cached_property
    def bottom_up(self) -> tuple[str, ...]:
        """The views so that each stands after what it is defined on."""
        return sorted_by_inputs(self.defined_on)

    @property
    def derived(self) -> tuple[str, ...]:
        """The views that are defined on views."""
        return tuple(view for view, sources in self.defined_on.items() if sources)

    @property
    def used(self) -> tuple[str, ...]:
        """The views that some view is defined on."""
        read = {source for sources in self.defined_on.values() for source in sources}
        return tuple(view for view in self.views if view in read)

    @cached_property
    def still(self) -> frozenset[str]:
        """The unchanged views, and those that are defined on such views alone."""
        found = set(self.unchanged)
        for view in self.bottom_up:
            if (sources := self.defined_on[view]) and found.issuperset(sources):
                found.add(view)
        return frozenset(found)

    @property
    def changing(self) -> tuple[str, ...]:
        """The views with a delta: each is to be installed."""
        return tuple(view for view in self.views if view not in self.still)

    def changing_sources(self, view: str) -> tuple[str, ...]:
        """What *view* is defined on and has a delta: each is to be propagated, unless *view* itself stays as it is."""
        if view in self.still:
            return ()
        return tuple(source for source in self.defined_on[view] if source not in self.still)

    @cached_property
    def levels(self) -> Mapping[str, int]:
        """``Level(V)``: the longest way from each view to a base view."""
        found: dict[str, int] = {}
        for view in self.bottom_up:
            found[view] = max((found[source] + 1 for source in self.defined_on[view]), default=0)
        return found

    @property
    def is_tree(self) -> bool:
        """Whether no view is used by more than one other (Definition 3.5.1)."""
        return sum(map(len, self.defined_on.values())) == len(self.used)

    @property
    def is_uniform(self) -> bool:
        """Whether each derived view is defined on views of the level just below its own (Definition 3.5.2)."""
        return all(
            self.levels[source] + 1 == self.levels[view]
            for view, sources in self.defined_on.items()
            for source in sources
        )


def _listed(views: Iterable[str]) -> str:
    return ", ".join(sorted(views)) or "none"
