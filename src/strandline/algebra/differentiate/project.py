"""Project, strategy *linear*: a projection that keeps duplicates keeps multiplicities."""

from __future__ import annotations

from strandline.algebra.plan import Project
from strandline.algebra.term import Sum, Term

STRATEGY = "linear"


def delta(node: Project, below: Sum) -> Sum:
    """``Δ(π E) = π ΔE``."""
    return tuple(Term(Project(term.plan, node.outputs), term.sign) for term in below)
