"""ECA-Local (Zhuge et al., section 5.5): updates that view and update alone decide are done here, others by queries.

The paper leaves the details open. This is tagged LCA in which a local update asks for nothing of its own. It still
compensates the queries that are open, and it waits for its turn, so that it meets the view as it was just before it.
Complete, one source.
"""

from __future__ import annotations

from typing import ClassVar, Literal

from strandline.algebra.plan import Negate, Plan
from strandline.algebra.scalar import Scalar, equality
from strandline.algebra.term import Sum
from strandline.integrate.expressions import bag, with_keys
from strandline.integrate.lca import Lca, Settling
from strandline.integrate.messages import VIEW, Update
from strandline.integrate.view import ForeignKey, View, column_of

Locality = Literal["irrelevant", "key-delete", "foreign-key"]


def locality(view: View, update: Update) -> Locality | None:
    """Why the effect of *update* follows from the view and the update alone; None if it does not.

    A view of a single relation is no case of its own: the terms of its updates have no relation in them.
    """
    if not update.deltas:
        return "irrelevant"
    if not update.inserts and all(view.key_outputs(p) is not None for p in view.places(update.deletes)):
        return "key-delete"
    if not update.deletes and len(update.deltas) == 1 and _is_referred_to(view, update.relations[0]):
        return "foreign-key"
    return None


def _is_referred_to(view: View, relation: str) -> bool:
    """Whether each place of *relation* is joined by a foreign key that refers to it: no row refers to a new one."""
    keys = [key for key in view.foreign_keys if key.refers_to == relation and key.relation != relation]
    return all(any(_joined_by(view, place, key) for key in keys) for place in view.places({relation}))


def _joined_by(view: View, place: int, key: ForeignKey) -> bool:
    for child in view.places({key.relation}):
        wanted: list[Scalar] = []
        for own, theirs in zip(key.columns, key.key, strict=True):
            left, right = column_of(view.scans[child], own), column_of(view.scans[place], theirs)
            wanted.append(equality(left, right) if equality(left, right) in view.conditions else equality(right, left))
        if all(condition in view.conditions for condition in wanted):
            return True
    return False


class EcaLocal(Lca):
    """Tagged LCA in which local updates send no query of their own."""

    name: ClassVar[str] = "eca-local"

    def _asked(self, update: Update) -> Sum:
        return () if locality(self.view, update) else super()._asked(update)

    def _effect(self, settled: Settling) -> Plan | None:
        if locality(self.view, settled.update) == "key-delete":
            return Negate(with_keys(bag(VIEW, self.view.columns), self.view, settled.update))
        return super()._effect(settled)
