"""Group by below other operators, without a table: strategy *affected groups*, at both versions.

It costs no state; the input is read twice for the groups in question. Only aggregates that come out the same whenever
they are computed over the same rows will do.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from strandline.algebra.plan import GroupBy, Output, Plan, Project, SemiJoin, State
from strandline.algebra.schema import Column
from strandline.algebra.term import Sum, Term, as_plan, bind

STRATEGY = "affected groups"

_EXACT = ("tinyint", "smallint", "int", "bigint", "decimal", "string", "date", "timestamp", "boolean", "binary")


def repeatable(node: GroupBy) -> bool:
    """Whether the groups come out the same whenever they are computed over the same rows."""
    return all(p.kind != "opaque" and p.column.type.startswith(_EXACT) for p in node.partials)


def delta(node: GroupBy, below: Sum, changed: Collection[str]) -> Sum:
    """``Δ(γ E) = γ(E⁺ ⋉ K) - γ(E⁻ ⋉ K)``, K being the groups in ΔE; without keys, all of E."""
    touched = as_plan(below)
    if touched is None:
        return ()
    names = [Output(Column(f"key {n + 1}", ""), key.value) for n, key in enumerate(node.keys)]

    def at(state: State) -> Plan:
        rows = bind(node.input, state, changed)
        if node.keys:
            rows = SemiJoin(rows, tuple(key.value for key in node.keys), Project(touched, tuple(names)))
        return replace(node, input=rows)

    return (Term(at("post")), Term(at("pre"), -1))
