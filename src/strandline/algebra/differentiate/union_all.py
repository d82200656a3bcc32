"""Union all, strategy *linear*."""

from __future__ import annotations

from strandline.algebra.plan import Output, Plan, Project, UnionAll
from strandline.algebra.scalar import Col
from strandline.algebra.schema import Schema, names
from strandline.algebra.term import Sum, Term

STRATEGY = "linear"


def delta(node: UnionAll, below: tuple[Sum, ...]) -> Sum:
    """``Δ(E + F) = ΔE + ΔF``, with the column names of E, by which the operators above read."""
    return tuple(Term(_named(term.plan, node.columns), term.sign) for terms in below for term in terms)


def _named(plan: Plan, columns: Schema) -> Plan:
    if names(plan.columns) == names(columns):
        return plan
    pairs = zip(columns, plan.columns, strict=True)
    return Project(plan, tuple(Output(column, Col(read.name)) for column, read in pairs))
