"""When a strategy is correct: well-formed expressions and the conditions C1 to C8 (Definitions 3.3.1 and 3.3.3).

C7, that every view is updated by a correct view strategy, is the conditions C1 to C5 of each view. That no view is
propagated to another twice follows from C3 and C4.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from typing import Literal

from strandline.propagate.strategies.expressions import Comp, Expression, Inst, Strategy, used
from strandline.propagate.strategies.graph import ViewGraph

Condition = Literal["C6", "form", "C1", "C2", "C3", "C4", "C5", "C8"]


@dataclass(frozen=True)
class Violation:
    """A condition that does not hold, the view whose strategy breaks it, and how."""

    condition: Condition
    view: str
    says: str

    def __str__(self) -> str:
        return f"{self.condition}, {self.view}: {self.says}"


def is_correct(graph: ViewGraph, strategy: Strategy) -> bool:
    """Whether *strategy* is a correct strategy for *graph*."""
    return next(_violations(graph, strategy), None) is None


def violations(graph: ViewGraph, strategy: Strategy) -> tuple[Violation, ...]:
    """All that is wrong with *strategy*: C6 and malformed expressions first, then C1 to C5 by view, then C8."""
    return tuple(_violations(graph, strategy))


def _violations(graph: ViewGraph, strategy: Strategy) -> Iterator[Violation]:
    yield from _repeated(strategy)
    yield from _malformed(graph, strategy)
    for view in graph.views:
        own = used(graph, strategy, view)
        yield from _not_propagated(graph, own, view)
        yield from _not_installed(graph, own, view)
        yield from _installed_too_soon(graph, own, view)
        yield from _not_installed_between(own, view)
        yield from _computed_too_late(own, view)
    yield from _read_before_computed(strategy)


def _repeated(strategy: Strategy) -> Iterator[Violation]:
    """C6: no expression occurs twice."""
    for expression in dict.fromkeys(strategy):
        if (times := strategy.count(expression)) > 1:
            yield Violation("C6", expression.view, f"{expression} occurs {times} times")


def _malformed(graph: ViewGraph, strategy: Strategy) -> Iterator[Violation]:
    """Expressions are about views of the graph, and a Comp is over some of the views that its view is defined on."""
    for expression in strategy:
        view = expression.view
        if view not in graph.defined_on:
            yield Violation("form", view, f"{expression}: the graph has no view {view}")
        elif view in graph.still:
            yield Violation("form", view, f"{expression}: {view} does not change")
        elif isinstance(expression, Comp):
            yield from _malformed_comp(graph, expression)


def _malformed_comp(graph: ViewGraph, expression: Comp) -> Iterator[Violation]:
    view, sources = expression.view, graph.changing_sources(expression.view)
    if not graph.defined_on[view]:
        yield Violation("form", view, f"{expression}: {view} is a base view")
    elif not expression.over:
        yield Violation("form", view, f"{expression} is over no view")
    elif stray := sorted(expression.over.difference(sources)):
        yield Violation("form", view, f"{expression}: {view} gets no changes of {', '.join(stray)}")


def _not_propagated(graph: ViewGraph, own: Strategy, view: str) -> Iterator[Violation]:
    """C1: the changes of every source are propagated."""
    propagated = frozenset[str]().union(*(comp.over for comp in _comps(own)))
    for source in graph.changing_sources(view):
        if source not in propagated:
            yield Violation("C1", view, f"no Comp propagates the changes of {source}")


def _not_installed(graph: ViewGraph, own: Strategy, view: str) -> Iterator[Violation]:
    """C2: the changes of the view are installed, and those of its sources, which are views of the graph too."""
    if view not in graph.still and Inst(view) not in own:
        yield Violation("C2", view, f"there is no Inst({view})")


def _installed_too_soon(graph: ViewGraph, own: Strategy, view: str) -> Iterator[Violation]:
    """C3: a source is installed after all Comps that propagate its changes."""
    for source in graph.changing_sources(view):
        for comp in _comps(own):
            if source in comp.over and _precedes(own, Inst(source), comp):
                yield Violation("C3", view, f"Inst({source}) is before {comp}")


def _not_installed_between(own: Strategy, view: str) -> Iterator[Violation]:
    """C4: what an earlier Comp propagated is installed before a later one."""
    for earlier, later in combinations(_comps(own), 2):
        for source in sorted(earlier.over):
            if Inst(source) in own and not _precedes(own, Inst(source), later):
                yield Violation("C4", view, f"{earlier} is before {later}, and Inst({source}) is not")


def _computed_too_late(own: Strategy, view: str) -> Iterator[Violation]:
    """C5: a view is installed after all its Comps."""
    for comp in _comps(own):
        if _precedes(own, Inst(view), comp):
            yield Violation("C5", view, f"Inst({view}) is before {comp}")


def _read_before_computed(strategy: Strategy) -> Iterator[Violation]:
    """C8: the changes of a view are propagated after they are computed."""
    for reading, late in combinations(_comps(strategy), 2):
        if late.view in reading.over:
            yield Violation("C8", reading.view, f"{reading} is before {late}")


def _comps(strategy: Strategy) -> list[Comp]:
    return [expression for expression in strategy if isinstance(expression, Comp)]


def _precedes(strategy: Strategy, first: Expression, second: Expression) -> bool:
    """Whether *first* occurs before *second*, which does occur."""
    return first in strategy[: strategy.index(second)]
