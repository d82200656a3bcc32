"""Semi and anti join, strategy *affected keys*.

It is linear in its left input. When the right input changes, rows of the left one come or go with those keys that the
right one did not have before and has after it, or the other way round.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from strandline.algebra.constraints import column_of
from strandline.algebra.equality import kept_apart
from strandline.algebra.plan import (
    COUNT,
    Exists,
    Filter,
    GroupBy,
    Join,
    MergeSummary,
    Net,
    Output,
    Partial,
    Plan,
    Project,
    SemiJoin,
)
from strandline.algebra.scalar import Call, Col, Scalar
from strandline.algebra.scalar import columns as columns_of
from strandline.algebra.schema import Column, names
from strandline.algebra.term import Sum, Term, as_plan, bind

STRATEGY = "affected keys"

_COUNTED = (Partial(Column(COUNT, "bigint", nullable=False), "count"),)


def delta(node: Exists, left: Sum, right: Sum, changed: Collection[str]) -> Sum:
    """``Δ(L ⋉ R) = ΔL ⋉ R⁺ + (L⁻ ⋉ K) ⋈ ΔD``, K being the keys in ΔR, and D those of R, each once.

    Where rows match by more than keys, ``(L⁻ ⋉ K) ⋉ R⁺ - (L⁻ ⋉ K) ⋉ R⁻`` takes the place of the second term: the right
    input is read before the change and after it.
    """
    after, before = bind(node.right, "post", changed), bind(node.right, "pre", changed)
    terms = [Term(replace(node, left=term.plan, right=after), term.sign) for term in left]
    touched = as_plan(right)
    if touched is None:
        return tuple(terms)
    rows = bind(node.left, "pre", changed)
    if node.keys:
        rows = SemiJoin(rows, tuple(ours for ours, _ in node.keys), _keys(node, touched))
    columns = _key_columns(node)
    if columns is not None:
        found = _changed_keys(node, before, touched, columns)
        equal = (Call("=", (ours, Col(column.name))) for (ours, _), column in zip(node.keys, columns, strict=True))
        met = Join((rows, found), tuple(equal))
        shown = Project(met, tuple(Output(column, Col(column.name)) for column in node.columns))
        return (*terms, Term(shown, -1 if node.negated else 1))
    return (*terms, Term(replace(node, left=rows, right=after)), Term(replace(node, left=rows, right=before), -1))


def _keys(node: Exists, touched: Plan) -> Plan:
    return Project(
        touched, tuple(Output(Column(f"key {n + 1}", ""), theirs) for n, (_, theirs) in enumerate(node.keys))
    )


def _key_columns(node: Exists) -> tuple[Column, ...] | None:
    """Columns for the keys of the right input, each of which meets other rows of the left one than the next.

    None if rows match by more than that, or it is not known of the types that are compared.
    """
    here, there = ({column.name: column.type for column in side.columns} for side in (node.left, node.right))
    kinds = [(here.get(column_of(a) or ""), there.get(column_of(b) or "")) for a, b in node.keys]
    alone = all(columns_of(condition) <= there.keys() for condition in node.conditions)
    found = [theirs for ours, theirs in kinds if ours and theirs and kept_apart(theirs, ours)]
    if not alone or not found or len(found) < len(kinds):
        return None
    return tuple(Column(f"matched {n + 1}", kind) for n, kind in enumerate(found))


def _changed_keys(node: Exists, before: Plan, touched: Plan, columns: tuple[Column, ...]) -> Plan:
    """``ΔD``: the keys that come and go, from the rows that there were of those in ΔR, counted, and the change."""
    keys = tuple(Output(column, theirs) for column, (_, theirs) in zip(columns, node.keys, strict=True))
    near = SemiJoin(before, tuple(theirs for _, theirs in node.keys), _keys(node, touched))
    old = GroupBy(_chosen(near, node.conditions), keys, _COUNTED)
    summary = GroupBy(_chosen(touched, node.conditions), keys, _COUNTED, keep_empty=True)
    counted = MergeSummary(old, summary, names(columns), _COUNTED)
    return Net(Project(counted, tuple(Output(column, Col(column.name)) for column in columns)))


def _chosen(plan: Plan, conditions: tuple[Scalar, ...]) -> Plan:
    for condition in conditions:
        plan = Filter(plan, condition)
    return plan
