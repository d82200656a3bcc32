"""Strategies for a store that keeps versions: every operand is pinned to the state before or after the refresh.

A Comp then reads what it wants whatever is installed, so that the conditions C3 and C4, and with them all conflicts
between the orders of different views, are gone. Each view takes its own MinWorkSingle order, one term for each source
that changes: sources before it in the order are read after the change, sources behind it before. That is always
feasible, and since every single-version strategy pays at least as much for each view, it is a lower bound for all.

Installs do not sit between computes. A step waits for what it reads to exist, never for readers: the delta of a source
needs the computes of that source, its state after the change needs its install, its state before is there.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from strandline.algebra.plan import At, Change
from strandline.propagate.strategies.expressions import Inst
from strandline.propagate.strategies.graph import ViewGraph
from strandline.propagate.strategies.orderings import by_growth
from strandline.propagate.strategies.sizes import Sizes
from strandline.propagate.strategies.stages import earliest


@dataclass(frozen=True)
class PinnedComp:
    """One term of the delta of *view*: the delta of one source, beside the other sources at pinned versions."""

    view: str
    delta: Change
    reads: tuple[At, ...]

    def __str__(self) -> str:
        return f"Comp({self.view}: {', '.join(map(str, (self.delta, *self.reads)))})"


PinnedStep = PinnedComp | Inst
PinnedStrategy = tuple[PinnedStep, ...]


def multi_version(graph: ViewGraph, sizes: Sizes) -> PinnedStrategy:
    """From the bottom up, the terms of each view in its best order, then its install."""
    steps: list[PinnedStep] = []
    for view in graph.bottom_up:
        if view not in graph.still:
            steps += [*_terms(graph, sizes, view), Inst(view)]
    return tuple(steps)


def _terms(graph: ViewGraph, sizes: Sizes, view: str) -> Iterator[PinnedComp]:
    order = by_growth(graph.changing_sources(view), sizes)
    for place, source in enumerate(order):
        behind = order[place + 1 :]
        others = (other for other in graph.defined_on[view] if other != source)
        yield PinnedComp(
            view, Change(source), tuple(At(other, "pre" if other in behind else "post") for other in others)
        )


def pinned_work(sizes: Sizes, strategy: PinnedStrategy) -> int:
    """The linear work of *strategy*."""
    return sum(_work(sizes, step) for step in strategy)


def _work(sizes: Sizes, step: PinnedStep) -> int:
    if isinstance(step, Inst):
        return sizes[step.view].delta
    read = (sizes[at.relation].after if at.state == "post" else sizes[at.relation].before for at in step.reads)
    return sizes[step.delta.relation].delta + sum(read)


def pinned_stages(strategy: PinnedStrategy) -> tuple[frozenset[PinnedStep], ...]:
    """The steps of *strategy* as a sequence of sets that can run in parallel."""
    terms: dict[str, list[PinnedStep]] = {}
    for step in strategy:
        if isinstance(step, PinnedComp):
            terms.setdefault(step.view, []).append(step)
    installed = {step.view for step in strategy if isinstance(step, Inst)}

    def waits_for(step: PinnedStep) -> list[PinnedStep]:
        if isinstance(step, Inst):
            return terms.get(step.view, [])
        after = [at.relation for at in step.reads if at.state == "post" and at.relation in installed]
        return [*terms.get(step.delta.relation, []), *map(Inst, after)]

    return earliest({step: waits_for(step) for step in strategy})
