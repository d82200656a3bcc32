"""The linear work metric (Definition 3.3.5): what a strategy reads and writes, in rows.

An Inst costs the rows of its delta. A Comp costs the sum over its terms of the sizes of their operands: deltas, and
views as they are installed by then, so that the order of expressions matters.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from strandline.propagate.strategies.expressions import Comp, Expression, Inst, Strategy
from strandline.propagate.strategies.graph import ViewGraph
from strandline.propagate.strategies.sizes import Sizes


@dataclass(frozen=True)
class LinearWork:
    """The metric for a graph of views of some sizes; *compute* and *install* are its constants c and i.

    All correct strategies of a graph have the same Insts, so that the constants change no choice between them.
    """

    graph: ViewGraph
    sizes: Sizes
    compute: float = 1
    install: float = 1

    def of(self, strategy: Strategy) -> float:
        """The work of a whole strategy."""
        return sum(self.by_step(strategy))

    def by_step(self, strategy: Strategy) -> tuple[float, ...]:
        """The work of each expression, in the state that those before it leave."""
        return tuple(self._work(expression, strategy[:place]) for place, expression in enumerate(strategy))

    def _work(self, expression: Expression, before: Strategy) -> float:
        if isinstance(expression, Inst):
            return self.install * self.sizes[expression.view].delta
        return self.compute * self.operands(expression, {done.view for done in before if isinstance(done, Inst)})

    def operands(self, comp: Comp, installed: Collection[str]) -> int:
        """The sizes of all operands of all terms of *comp*.

        A view whose changes it propagates is a delta in ``2^(k-1)`` of its ``2^k - 1`` terms, and is read as it is in
        the others; another view that is read is read in all.
        """
        terms = 2 ** len(comp.over) - 1
        as_delta = 2 ** (len(comp.over) - 1)
        total = 0
        for source in self.graph.defined_on[comp.view]:
            size = self.sizes[source]
            current = size.after if source in installed else size.before
            if source in comp.over:
                total += as_delta * size.delta + (terms - as_delta) * current
            else:
                total += terms * current
        return total
