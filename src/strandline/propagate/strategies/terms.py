"""The terms of a step: a view's definition with deltas, and states of relations, in the places of its sources."""

from __future__ import annotations

from dataclasses import replace

from strandline.algebra.plan import At, Change, Plan, Scan, map_scans
from strandline.algebra.term import Term, substitute_now
from strandline.propagate.strategies.expressions import Comp
from strandline.propagate.strategies.multi_version import PinnedComp


def comp_terms(definition: Plan, step: Comp) -> tuple[Plan, ...]:
    """The terms of a Comp, to be added up: each source that it propagates as its delta or as it is, but not all as is.

    What is read as it is is read before its changes, so that no term is subtracted.
    """
    changes = {source: Change(source) for source in step.over}
    return tuple(term.plan for term in substitute_now(Term(definition), changes))


def pinned_term(definition: Plan, step: PinnedComp) -> Plan:
    """The term of a step over pinned versions."""
    operands: dict[str, At | Change] = {at.relation: at for at in step.reads}
    operands[step.delta.relation] = step.delta

    def bound(scan: Scan) -> Scan:
        assert isinstance(scan.operand, At)
        return replace(scan, operand=operands[scan.operand.relation])

    return map_scans(definition, bound)
