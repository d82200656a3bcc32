"""Scan, strategy *linear*: the delta of a relation is its change over the interval."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from strandline.algebra.plan import At, Change, Scan
from strandline.algebra.term import Sum, Term

STRATEGY = "linear"


def delta(scan: Scan, changed: Collection[str]) -> Sum:
    """``Δ(R) = ΔR``; nothing where R did not change."""
    if not isinstance(scan.operand, At) or scan.operand.relation not in changed:
        return ()
    return (Term(replace(scan, operand=Change(scan.operand.relation))),)
