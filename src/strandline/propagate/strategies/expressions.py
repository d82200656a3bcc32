"""Expressions and strategies: ``Comp(V, {Vi, ..})``, ``Inst(V)``, and sequences of them (section 3.2)."""

from __future__ import annotations

from dataclasses import dataclass

from strandline.propagate.strategies.graph import ViewGraph


@dataclass(frozen=True)
class Comp:
    """Compute the part of the delta of *view* that is due to the changes of all views of *over*.

    It has ``2^k - 1`` terms for the k views of *over*: each as its delta or as it is, but not all as they are. The
    other views that *view* is defined on are read as they are. Parts gather in the delta of *view*.
    """

    view: str
    over: frozenset[str]

    def __str__(self) -> str:
        return f"Comp({self.view},{{{','.join(sorted(self.over))}}})"


@dataclass(frozen=True)
class Inst:
    """Install the delta of *view* into *view*."""

    view: str

    def __str__(self) -> str:
        return f"Inst({self.view})"


Expression = Comp | Inst
Strategy = tuple[Expression, ...]


def comp(view: str, *over: str) -> Comp:
    """``Comp(view, {over})``."""
    return Comp(view, frozenset(over))


def written(strategy: Strategy) -> str:
    """A strategy as the literature writes it."""
    return ", ".join(map(str, strategy))


def used(graph: ViewGraph, strategy: Strategy, view: str) -> Strategy:
    """The view strategy that *strategy* uses for *view* (Definition 3.3.2)."""
    installed = {view, *graph.defined_on[view]}
    return tuple(
        expression
        for expression in strategy
        if (expression.view == view if isinstance(expression, Comp) else expression.view in installed)
    )
