"""SC, store copies (Zhuge et al., section 1.2): every relation is kept at the warehouse, and no query is sent.

Each update is applied alone and in order, so every state of the sources is shown.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

from strandline.algebra.differentiate import differentiate
from strandline.algebra.plan import At, Bag, Change, Plan, Scan, UnionAll, map_scans
from strandline.algebra.term import Term
from strandline.integrate.algorithm import Algorithm, unknown_query
from strandline.integrate.expressions import total
from strandline.integrate.messages import VIEW, Answer, Install, Messages, Update, delta
from strandline.integrate.state import part_of_states
from strandline.sql.statements import Consistency


def copy_of(relation: str) -> Bag:
    """The bag that holds the copy of a relation."""
    return Bag(f"copy {relation}")


@part_of_states
@dataclass(frozen=True)
class ScState:
    """Nothing: the copies are all it needs."""


class Sc(Algorithm[ScState]):
    """``MV += V<U_i>`` over the copies; then the copies take the update."""

    name: ClassVar[str] = "sc"
    promises: ClassVar[Consistency | None] = "COMPLETE"

    def start(self) -> ScState:
        return ScState()

    def kept(self) -> Mapping[Bag, Plan]:
        copies: dict[Bag, Plan] = {copy_of(r): replace(self._scan(r), operand=At(r)) for r in self.view.relations}
        return {**super().kept(), **copies}

    def on_update(self, update: Update) -> Messages:
        terms = differentiate(self.view.plan, update.relations)
        changed = total(tuple(Term(self._over_copies(term.plan, update), term.sign) for term in terms))
        copies = ((copy_of(r), replace(self._scan(r), operand=delta(update.number, r))) for r in update.relations)
        return (Install((*(((VIEW, changed),) if changed is not None else ()), *copies), update.number),)

    def on_answer(self, answer: Answer) -> Messages:
        raise unknown_query(answer)

    def _scan(self, relation: str) -> Scan:
        return replace(self.view.scans[self.view.places({relation})[0]], alias="")

    def _over_copies(self, plan: Plan, update: Update) -> Plan:
        """A term over states before and after the update, read from the copies, which are at the state before."""

        def bound(scan: Scan) -> Plan:
            operand = scan.operand
            assert isinstance(operand, At | Change)
            changed = replace(scan, operand=delta(update.number, operand.relation))
            if isinstance(operand, Change):
                return changed
            before = replace(scan, operand=copy_of(operand.relation))
            if operand.state == "post" and operand.relation in update.relations:
                return UnionAll((before, changed))
            return before

        return map_scans(plan, bound)
