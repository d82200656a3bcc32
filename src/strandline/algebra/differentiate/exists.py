"""Semi and anti join, strategy *affected keys*.

It is linear in its left input. When the right input changes, the rows of the left one whose keys the change names may
come or go: those are decided anew, once over the right input before the change and once after it.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from strandline.algebra.plan import Exists, Output, Plan, Project, SemiJoin
from strandline.algebra.schema import Column
from strandline.algebra.term import Sum, Term, as_plan, bind

STRATEGY = "affected keys"


def delta(node: Exists, left: Sum, right: Sum, changed: Collection[str]) -> Sum:
    """``Δ(L ⋉ R) = ΔL ⋉ R⁺ + (L⁻ ⋉ K) ⋉ R⁺ - (L⁻ ⋉ K) ⋉ R⁻``, K being the keys in ΔR."""
    after, before = bind(node.right, "post", changed), bind(node.right, "pre", changed)
    terms = [Term(replace(node, left=term.plan, right=after), term.sign) for term in left]
    touched = as_plan(right)
    if touched is not None:
        rows = bind(node.left, "pre", changed)
        if node.keys:
            rows = SemiJoin(rows, tuple(ours for ours, _ in node.keys), _keys(node, touched))
        terms.append(Term(replace(node, left=rows, right=after)))
        terms.append(Term(replace(node, left=rows, right=before), -1))
    return tuple(terms)


def _keys(node: Exists, touched: Plan) -> Plan:
    return Project(
        touched, tuple(Output(Column(f"key {n + 1}", ""), theirs) for n, (_, theirs) in enumerate(node.keys))
    )
