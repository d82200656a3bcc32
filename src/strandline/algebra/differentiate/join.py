"""Inner join, strategy *bilinear*.

Where both states of every input can be read, the delta of an n-way join telescopes into n terms, whatever the order in
which the inputs are taken to change: beside the delta of one, those before it in the order are read after the change,
those behind it before. A self-join is no special case, because each occurrence is an input of its own.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from strandline.algebra.plan import Join, Plan, relations
from strandline.algebra.term import Sum, Term, bind

STRATEGY = "bilinear"


def delta(node: Join, below: tuple[Sum, ...], changed: Collection[str], order: Sequence[str] = ()) -> Sum:
    """``Δ(E1 ⋈ ... ⋈ En) = Σi  E1⁻ ⋈ ... ⋈ Ei-1⁻ ⋈ ΔEi ⋈ Ei+1⁺ ⋈ ... ⋈ En⁺``, the E numbered against the order.

    Inputs that *order* does not name, or names together, change from the last to the first.
    """
    places = sorted(reversed(range(len(node.inputs))), key=lambda place: _rank(node.inputs[place], order))
    turn = {place: number for number, place in enumerate(places)}
    terms = []
    for place, deltas in enumerate(below):
        others = [
            bind(child, "post" if turn[other] < turn[place] else "pre", changed)
            for other, child in enumerate(node.inputs)
        ]
        for term in deltas:
            inputs = (*others[:place], term.plan, *others[place + 1 :])
            terms.append(Term(Join(inputs, node.conditions), term.sign))
    return tuple(terms)


def _rank(child: Plan, order: Sequence[str]) -> int:
    """When an input changes: with the first of the relations that it reads."""
    named = [order.index(relation) for relation in relations(child) if relation in order]
    return min(named, default=len(order))
