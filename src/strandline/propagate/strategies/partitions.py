"""View strategies as ordered partitions: a Comp for each block, its Insts before the next Comp (section 3.3.1).

The order of Insts inside a block changes no work. Strategies that differ in it alone are one class, and Table 3.1
counts classes: 1, 3, 13, 75, 541, 4683 for one to six views.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations, permutations
from math import comb, factorial

from strandline.propagate.strategies.expressions import Comp, Expression, Inst, Strategy
from strandline.propagate.strategies.graph import ViewGraph

Blocks = tuple[frozenset[str], ...]
"""What each Comp of a view propagates, in order."""

Choice = Mapping[str, Blocks]
"""A class of view strategies for each derived view that changes."""


def one_way_blocks(views: Sequence[str]) -> Blocks:
    """The changes of one view at a time, in this order."""
    return tuple(frozenset({view}) for view in views)


def ordered_partitions(views: Sequence[str]) -> Iterator[Blocks]:
    """Every class of strategies over *views*."""
    if not views:
        yield ()
    for size in range(1, len(views) + 1):
        for first in combinations(views, size):
            for rest in ordered_partitions([view for view in views if view not in first]):
                yield (frozenset(first), *rest)


def one_way_partitions(views: Sequence[str]) -> Iterator[Blocks]:
    """Every class of 1-way strategies over *views*."""
    return map(one_way_blocks, permutations(views))


def view_strategy(view: str, blocks: Blocks) -> Strategy:
    """The strategy of *view* that installs each block, in the order of names, right after its Comp."""
    steps: list[Expression] = []
    for block in blocks:
        steps += [Comp(view, block), *map(Inst, sorted(block))]
    return (*steps, Inst(view))


def choice_of(graph: ViewGraph, strategy: Strategy) -> Choice:
    """The classes of the view strategies that a correct *strategy* uses."""
    return {
        view: tuple(e.over for e in strategy if isinstance(e, Comp) and e.view == view)
        for view in graph.changing
        if graph.defined_on[view]
    }


def number_of_classes(n: int) -> int:
    """The ordered partitions of n views: ``a(n) = sum of C(n, k) a(n - k)`` over k from 1 on."""
    return 1 if n == 0 else sum(comb(n, k) * number_of_classes(n - k) for k in range(1, n + 1))


def number_of_sequences(blocks: Blocks) -> int:
    """The strategies of one class: Insts of a block in any order; the view's own goes with those of the last."""
    *others, last = [len(block) for block in blocks] or [0]
    found = factorial(last + 1)
    for size in others:
        found *= factorial(size)
    return found
