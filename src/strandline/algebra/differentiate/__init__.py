"""Differentiation: from a plan and the relations that changed to the sum of terms that is its delta.

One module per operator, each with the rule and the name of its strategy.
"""

from __future__ import annotations

from collections.abc import Collection

from strandline.algebra.differentiate import filter as _filter
from strandline.algebra.differentiate import join as _join
from strandline.algebra.differentiate import project as _project
from strandline.algebra.differentiate import scan as _scan
from strandline.algebra.differentiate import union_all as _union_all
from strandline.algebra.plan import Filter, Join, Plan, Project, Scan, UnionAll
from strandline.algebra.term import Sum


def differentiate(plan: Plan, changed: Collection[str]) -> Sum:
    """The delta of a select-project-join-union plan over the interval (pre, post].

    Operators that are not linear in their input stand on top of a block and are differentiated there
    (:mod:`strandline.algebra.block`).
    """
    match plan:
        case Scan():
            return _scan.delta(plan, changed)
        case Filter():
            return _filter.delta(plan, differentiate(plan.input, changed))
        case Project():
            return _project.delta(plan, differentiate(plan.input, changed))
        case UnionAll():
            return _union_all.delta(plan, tuple(differentiate(child, changed) for child in plan.inputs))
        case Join():
            return _join.delta(plan, tuple(differentiate(child, changed) for child in plan.inputs), changed)
        case _:
            raise TypeError(f"{type(plan).__name__} is not a select-project-join-union operator")
