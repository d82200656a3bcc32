"""Group by below other operators, without a table: strategy *affected groups*.

It costs no state; the input is read for the groups in question. Where there are sums and counts alone, it is read as it
was, and the change is added; else it is read at both versions. Only aggregates that come out the same whenever they are
computed over the same rows will do.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from strandline.algebra.plan import COUNT, GroupBy, MergeSummary, Output, Plan, Project, SemiJoin, State
from strandline.algebra.schema import Column, names
from strandline.algebra.term import Sum, Term, as_plan, bind

STRATEGY = "affected groups"

_EXACT = ("tinyint", "smallint", "int", "bigint", "decimal", "string", "date", "timestamp", "boolean", "binary")


def repeatable(node: GroupBy) -> bool:
    """Whether the groups come out the same whenever they are computed over the same rows."""
    return all(p.kind != "opaque" and p.column.type.startswith(_EXACT) for p in node.partials)


def delta(node: GroupBy, below: Sum, changed: Collection[str]) -> Sum:
    """``Δ(γ E) = γ(E⁺ ⋉ K) - γ(E⁻ ⋉ K)``, K being the groups in ΔE; without keys, all of E.

    What can be added up needs E⁻ alone: ``γ(E⁺ ⋉ K)`` is what there was and ``γ(ΔE)``.
    """
    touched = as_plan(below)
    if touched is None:
        return ()
    groups = [Output(Column(f"key {n + 1}", ""), key.value) for n, key in enumerate(node.keys)]

    def at(state: State) -> Plan:
        rows = bind(node.input, state, changed)
        if node.keys:
            rows = SemiJoin(rows, tuple(key.value for key in node.keys), Project(touched, tuple(groups)))
        return replace(node, input=rows)

    if all(partial.invertible for partial in node.partials) and any(p.name == COUNT for p in node.partials):
        summary = replace(node, input=touched, keep_empty=True)
        return (Term(MergeSummary(at("pre"), summary, names(key.column for key in node.keys), node.partials)),)
    return (Term(at("post")), Term(at("pre"), -1))
