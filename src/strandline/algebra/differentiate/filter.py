"""Filter, strategy *linear*: a selection keeps multiplicities."""

from __future__ import annotations

from strandline.algebra.plan import Filter
from strandline.algebra.term import Sum, Term

STRATEGY = "linear"


def delta(node: Filter, below: Sum) -> Sum:
    """``Δ(σ E) = σ ΔE``."""
    return tuple(Term(Filter(term.plan, node.condition), term.sign) for term in below)
