"""Terms: a view's plan with some operands replaced by deltas.

ECA's ``V<U>``, a sweep, ``R1 R2[a,b] R3`` of rolling propagation and ``Comp(V, {Vi})`` of a VDAG strategy are
all sums of signed terms. A term made only of deltas never needs a source.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from itertools import combinations, count

from strandline.algebra.plan import At, Change, Negate, Plan, Scan, State, UnionAll, children, map_scans, scans


@dataclass(frozen=True)
class Term:
    """A plan whose scans are bound to operands, with a sign."""

    plan: Plan
    sign: int = 1

    def __neg__(self) -> Term:
        return replace(self, sign=-self.sign)

    @property
    def deltas(self) -> tuple[str, ...]:
        """The relations that stand in this term as deltas."""
        return tuple(s.operand.relation for s in scans(self.plan) if isinstance(s.operand, Change))

    @property
    def only_deltas(self) -> bool:
        """Whether the term can be evaluated without reading any relation."""
        return all(isinstance(s.operand, Change) for s in scans(self.plan))


Sum = tuple[Term, ...]


def substitute(term: Term, relation: str, delta: Change) -> Sum:
    """*term* with *relation* replaced by *delta*: empty if it stands there as a delta already.

    A relation that occurs several times (a self-join) is replaced once per occurrence; the terms are those of
    the join rule (before on the left, after on the right), so that their sum is the whole difference. A term is free of
    unions: those are sums of terms.
    """
    if _has_union(term.plan):
        raise ValueError("a term holds no union; differentiate it into a sum of terms first")
    if relation in term.deltas:
        return ()
    occurrences = sum(isinstance(s.operand, At) and s.operand.relation == relation for s in scans(term.plan))
    return tuple(Term(_telescoped(term.plan, relation, at, delta), term.sign) for at in range(occurrences))


def _has_union(plan: Plan) -> bool:
    return isinstance(plan, UnionAll) or any(_has_union(child) for child in children(plan))


def _telescoped(plan: Plan, relation: str, at: int, delta: Change) -> Plan:
    """Occurrence *at* becomes the delta; those left of it are read before, those right of it after."""
    seen = count()

    def bound(scan: Scan) -> Scan:
        if not isinstance(scan.operand, At) or scan.operand.relation != relation:
            return scan
        place = next(seen)
        if place == at:
            return replace(scan, operand=delta)
        return replace(scan, operand=At(relation, delta.after if place < at else delta.upto))

    return map_scans(plan, bound)


def substitute_now(term: Term, changes: Mapping[str, Change]) -> Sum:
    """What *changes*, made at once, did to *term*, where relations can only be read as they are after them.

    ``T[before] = T[after] - T<changes>[after]``. With a single occurrence of a single relation, this is *term* with
    the delta in its place. Several occurrences, of one relation or of several, may be delta at once, and what two
    terms have in common is taken off again: inclusion and exclusion. Occurrences that stand as deltas already stay.
    """
    if _has_union(term.plan):
        raise ValueError("a term holds no union; differentiate it into a sum of terms first")
    open_places = [
        place
        for place, scan in enumerate(scans(term.plan))
        if isinstance(scan.operand, At) and scan.operand.relation in changes
    ]
    return tuple(
        Term(_with_deltas(term.plan, chosen, changes), term.sign if size % 2 else -term.sign)
        for size in range(1, len(open_places) + 1)
        for chosen in combinations(open_places, size)
    )


def _with_deltas(plan: Plan, chosen: Collection[int], changes: Mapping[str, Change]) -> Plan:
    seen = count()

    def bound(scan: Scan) -> Scan:
        if next(seen) not in chosen or not isinstance(scan.operand, At):
            return scan
        return replace(scan, operand=changes[scan.operand.relation])

    return map_scans(plan, bound)


def bind(plan: Plan, state: State, changed: Collection[str]) -> Plan:
    """*plan* with its relations at *state*; a relation that did not change is always read at ``post``."""

    def bound(scan: Scan) -> Scan:
        if not isinstance(scan.operand, At):
            return scan
        relation = scan.operand.relation
        return replace(scan, operand=At(relation, state if relation in changed else "post"))

    return map_scans(plan, bound)


def as_plan(terms: Sum) -> Plan | None:
    """The sum of *terms* as one plan, or None for the empty sum."""
    plans = tuple(term.plan if term.sign > 0 else Negate(term.plan) for term in terms)
    if not plans:
        return None
    return plans[0] if len(plans) == 1 else UnionAll(plans)
