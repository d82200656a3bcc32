"""Differentiation: from a plan and the relations that changed to the sum of terms that is its delta.

One module per operator, each with the rule and the name of its strategy.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from strandline.algebra.constraints import NOTHING, Assumed, Use, joins, simplified
from strandline.algebra.differentiate import exists as _exists
from strandline.algebra.differentiate import filter as _filter
from strandline.algebra.differentiate import foreign_keys as _foreign_keys
from strandline.algebra.differentiate import groups_in_place as _groups
from strandline.algebra.differentiate import join as _join
from strandline.algebra.differentiate import outer_join as _outer_join
from strandline.algebra.differentiate import project as _project
from strandline.algebra.differentiate import repeat as _repeat
from strandline.algebra.differentiate import scan as _scan
from strandline.algebra.differentiate import union_all as _union_all
from strandline.algebra.differentiate import window as _window
from strandline.algebra.plan import (
    Exists,
    Filter,
    Generate,
    GroupBy,
    Join,
    OuterJoin,
    Plan,
    Project,
    Repeat,
    Scan,
    UnionAll,
    Values,
    Window,
    children,
    relations,
    scans,
)
from strandline.algebra.term import Sum, Term


def strategies(plan: Plan) -> tuple[str, ...]:
    """The strategies of the operators of a body, each once, from the bottom up."""
    below = [name for child in children(plan) for name in strategies(child)]
    if isinstance(plan, Join) and sum(any(scans(child)) for child in plan.inputs) < 2:
        return tuple(dict.fromkeys(below))
    own = {
        Join: _join.STRATEGY,
        Exists: _exists.STRATEGY,
        OuterJoin: _outer_join.STRATEGY,
        Window: _window.STRATEGY,
        GroupBy: _groups.STRATEGY,
    }.get(type(plan), _scan.STRATEGY)
    return tuple(dict.fromkeys([*below, *own.split(", ")]))


def monotone(plan: Plan) -> bool:
    """Whether a body gains rows, and loses none, when its inputs only gain rows."""
    if isinstance(plan, OuterJoin | Window | GroupBy) or (isinstance(plan, Exists) and plan.negated):
        return False
    return all(monotone(child) for child in children(plan))


def relied_on(body: Plan, assumed: Assumed) -> tuple[Use, ...]:
    """The constraints, of those *assumed*, that the delta of a body makes use of."""
    plan, uses = simplified(body, assumed)
    return tuple(dict.fromkeys((*uses, *(use for join in joins(plan) for use in _foreign_keys.uses(join, assumed)))))


def differentiate(
    plan: Plan,
    changed: Collection[str],
    assumed: Assumed = NOTHING,
    order: Sequence[str] = (),
    known: Mapping[Plan, Plan | None] | None = None,
) -> Sum:
    """The delta of the body of a block over the interval (pre, post], where the constraints *assumed* hold.

    In joins, relations change in *order*; a join that foreign keys link has one of its own. Of plans in *known* the
    delta is there already, or None if it is empty.

    Grouping on top of a block is differentiated there (:mod:`strandline.algebra.block`).
    """

    def below(child: Plan) -> Sum:
        return differentiate(child, changed, assumed, order, known)

    if known and plan in known:
        there = known[plan] if any(relation in changed for relation in relations(plan)) else None
        return () if there is None else (Term(there),)

    match plan:
        case Scan():
            return _scan.delta(plan, changed)
        case Values():
            return ()
        case Filter():
            return _filter.delta(plan, below(plan.input))
        case Project():
            return _project.delta(plan, below(plan.input))
        case UnionAll():
            return _union_all.delta(plan, tuple(below(child) for child in plan.inputs))
        case Join():
            deltas = tuple(below(child) for child in plan.inputs)
            linked = _foreign_keys.ordered(plan, assumed)
            if linked.links:
                return _foreign_keys.delta(plan, deltas, changed, linked, assumed)
            return _join.delta(plan, deltas, changed, order)
        case Exists():
            left, right = below(plan.left), below(plan.right)
            return _exists.delta(plan, left, right, changed)
        case OuterJoin():
            return below(_outer_join.parts(plan))
        case Window():
            return _window.delta(plan, below(plan.input), changed)
        case GroupBy():
            return _groups.delta(plan, below(plan.input), changed)
        case Repeat() | Generate():
            return _repeat.delta(plan, below(plan.input))
        case _:
            raise TypeError(f"{type(plan).__name__} does not stand in the body of a block")
