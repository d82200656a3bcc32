"""Inner join, strategy *bilinear*.

Where both states of every input can be read, the delta of an n-way join telescopes into n terms: inputs left
of the delta are read before the change, inputs right of it after. A self-join is no special case, because
each occurrence is an input of its own.
"""

from __future__ import annotations

from collections.abc import Collection

from strandline.algebra.plan import Join
from strandline.algebra.term import Sum, Term, bind

STRATEGY = "bilinear"


def delta(node: Join, below: tuple[Sum, ...], changed: Collection[str]) -> Sum:
    """``Δ(E1 ⋈ ... ⋈ En) = Σi  E1⁻ ⋈ ... ⋈ Ei-1⁻ ⋈ ΔEi ⋈ Ei+1⁺ ⋈ ... ⋈ En⁺``."""
    terms = []
    for place, deltas in enumerate(below):
        before = tuple(bind(child, "pre", changed) for child in node.inputs[:place])
        after = tuple(bind(child, "post", changed) for child in node.inputs[place + 1 :])
        for term in deltas:
            terms.append(Term(Join((*before, term.plan, *after), node.conditions), term.sign))
    return tuple(terms)
