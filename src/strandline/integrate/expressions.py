"""Plans over bags that the algorithms build: sums, key-deletes and unions of sets."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from strandline.algebra.plan import COUNT, Bag, Exists, GroupBy, Negate, Output, Partial, Plan, Project, Scan, UnionAll
from strandline.algebra.scalar import Col
from strandline.algebra.schema import Column, Schema
from strandline.algebra.term import Sum, as_plan
from strandline.integrate.messages import Update, gone
from strandline.integrate.view import View


def bag(name: Bag, columns: Schema) -> Scan:
    """All rows of a bag."""
    return Scan(name, "", columns)


def total(*sums: Sum) -> Plan | None:
    """The sum of all terms; None for nothing."""
    return as_plan(tuple(term for terms in sums for term in terms))


def plus(*plans: Plan) -> Plan:
    """The sum of *plans*; flat, however many there are."""
    return plans[0] if len(plans) == 1 else UnionAll(plans)


def minus(first: Plan, second: Plan) -> Plan:
    """``first - second``."""
    return UnionAll((first, Negate(second)))


def distinct(plan: Plan) -> Plan:
    """Each row once."""
    keys = tuple(Output(column, Col(column.name)) for column in plan.columns)
    counted = GroupBy(plan, keys, (Partial(Column(COUNT, "bigint", False), "count"),))
    return Project(counted, keys)


def key_deleted(rows: Plan, view: View, updates: Iterable[Update]) -> Plan:
    """*rows* of the view without those that show the key of a row which one of *updates* deletes."""
    deleting = [update for update in updates if update.deletes]
    for place, relation in enumerate(view.relations):
        bags = [gone(update.number, relation) for update in deleting if relation in update.deletes]
        rows = without_keys(rows, view, place, bags)
    return rows


def without_keys(rows: Plan, view: View, place: int, deleted: Sequence[Bag]) -> Plan:
    """*rows* of the view without those that show, for the relation at *place*, the key of a row of *deleted*."""
    if not deleted:
        return rows
    keys = view.key_outputs(place)
    assert keys is not None, f"the view does not show the key of {view.relations[place]}"
    pairs = tuple((Col(shown), Col(own)) for shown, own in keys)
    return Exists(rows, plus(*(view.scan(place, each) for each in deleted)), pairs, negated=True)


def with_keys(rows: Plan, view: View, update: Update) -> Plan:
    """The rows of the view that show the key of a row which *update* deletes."""
    return minus(rows, key_deleted(rows, view, [update]))
