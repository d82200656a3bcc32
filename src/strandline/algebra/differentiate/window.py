"""Window functions, strategy *affected partitions*: those that a change touches are computed before and after it."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from strandline.algebra.plan import Output, Plan, Project, SemiJoin, Window
from strandline.algebra.schema import Column
from strandline.algebra.term import Sum, Term, as_plan, bind

STRATEGY = "affected partitions"


def delta(node: Window, below: Sum, changed: Collection[str]) -> Sum:
    """``Δ(ω E) = ω(E⁺ ⋉ K) - ω(E⁻ ⋉ K)``, K being the partitions in ΔE; without any, all of E."""
    touched = as_plan(below)
    if touched is None:
        return ()

    def at(state: str) -> Plan:
        rows = bind(node.input, "post" if state == "post" else "pre", changed)
        if not node.partition:
            return replace(node, input=rows)
        keys = Project(
            touched, tuple(Output(Column(f"key {n + 1}", ""), value) for n, value in enumerate(node.partition))
        )
        return replace(node, input=SemiJoin(rows, node.partition, keys))

    return (Term(at("post")), Term(at("pre"), -1))
