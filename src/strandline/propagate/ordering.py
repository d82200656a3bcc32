"""The order in which the inputs of a node are taken to change: MinWorkSingle, on a store that keeps versions.

A term reads the inputs before its own in the order after the change, those behind it before. So those that shrink come
first: they are read when they are small.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from strandline.algebra.plan import Join, Plan, children
from strandline.propagate.strategies.orderings import by_growth
from strandline.propagate.strategies.sizes import Size


def order_of_changes(body: Plan, changed: Sequence[str], growth: Callable[[str], int]) -> tuple[str, ...]:
    """*changed* inputs in their order; none where no join reads two of them, or all grow alike."""
    if len(changed) < 2 or not _joins(body):
        return ()
    sizes = {name: Size.growing(max(0, -grown), grown) for name in changed for grown in [growth(name)]}
    if len({size.growth for size in sizes.values()}) == 1:
        return ()
    return by_growth(changed, sizes)


def _joins(plan: Plan) -> bool:
    return isinstance(plan, Join) or any(_joins(child) for child in children(plan))
