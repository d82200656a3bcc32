"""Repeating rows, and rows that a function makes of each row: strategy *linear*."""

from __future__ import annotations

from dataclasses import replace

from strandline.algebra.plan import Generate, Repeat
from strandline.algebra.term import Sum, Term

STRATEGY = "linear"


def delta(node: Repeat | Generate, below: Sum) -> Sum:
    """``Δ(ρ E) = ρ ΔE``."""
    return tuple(Term(replace(node, input=term.plan), term.sign) for term in below)
